"""pytest's view of a contract: one group, one test per law and dtype."""

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trivet.properties._contract import Contract
    from trivet.properties._verdict import Verdict


class GateFailedError(Exception):
    """A gate is red or could not be judged; the text is all that pytest shows."""


class ContractGroup(pytest.Collector):
    """The tests of one contract."""

    def __init__(self, *, contract: "Contract", **rest: Any) -> None:
        super().__init__(**rest)
        self.contract = contract
        self._verdicts: dict[str, dict[str, Verdict]] = {}

    def collect(self) -> Iterator["LawItem"]:
        """Yield one test per dtype and law."""
        from trivet.ci.gate import laws_of

        laws = laws_of(self.contract)
        for dtype in self.contract.dtypes():
            for law in laws:
                yield LawItem.from_parent(self, name=f"{law}[{dtype}]", law=law, dtype=dtype)

    def verdict(self, item: "LawItem") -> "Verdict":
        """Return the verdict of ``item``; all selected laws of its dtype are judged together."""
        if item.dtype not in self._verdicts:
            self._verdicts[item.dtype] = self._judge(item.dtype)
        return self._verdicts[item.dtype][item.law]

    def _judge(self, dtype: str) -> "dict[str, Verdict]":
        from trivet.properties._engine import judge

        selected = [
            item.law
            for item in self.session.items
            if isinstance(item, LawItem) and item.parent is self and item.dtype == dtype
        ]
        with warnings.catch_warnings():
            # A verdict must not depend on pytest's filters: "error" would turn a kernel's warning
            # into an exception of its host function. pytest still shows what was warned.
            warnings.simplefilter("default")
            verdicts = judge(
                self.contract,
                name=self.name,
                profile=self.config.getoption("--trivet-profile"),
                seed=self.config.getoption("--trivet-seed"),
                laws=selected,
                dtypes=(dtype,),
                source=f"{self.path}:{self.name}",
            )
        return {verdict.law: verdict for verdict in verdicts}


class LawItem(pytest.Item):
    """One law of one contract at one dtype."""

    def __init__(self, *, law: str, dtype: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.law = law
        self.dtype = dtype

    def runtest(self) -> None:
        """Pass on green, skip with the reason where there is nothing to judge here, else fail."""
        assert isinstance(self.parent, ContractGroup)
        verdict = self.parent.verdict(self)
        if verdict.state in ("elsewhere", "not_promised"):
            skipped = pytest.skip.Exception(
                f"{verdict.state.replace('_', ' ')}: {verdict.reason}", _use_item_location=True
            )
            raise skipped
        if verdict.state == "not_judged":
            raise GateFailedError(f"{self.parent.name} {self.name} not judged: {verdict.reason}")
        if verdict.state == "red":
            raise GateFailedError(verdict.failure.text if verdict.failure else verdict.reason)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the failure's own text and nothing else."""
        if isinstance(excinfo.value, GateFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the line where the contract is written down, and its law as the test."""
        assert isinstance(self.parent, ContractGroup)
        assignment = re.compile(rf"{self.parent.name}\s*[:=]")
        lines = self.path.read_text(errors="replace").splitlines()
        line = next((n for n, text in enumerate(lines) if assignment.match(text)), 0)
        return self.path, line, f"{self.parent.name}::{self.name}"
