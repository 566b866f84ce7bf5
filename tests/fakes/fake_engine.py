"""Stands in for torch and the engine, so that the commands' and the plugin's own work shows.

``install()`` puts fake modules in place; contracts made of ``Contract(laws)`` then bring the
verdicts they were given. A verdict is a state, or a callable that returns one.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from trivet.properties._verdict import Failure, Verdict

TEXT = """softmax breaks stays_in_bounds at float32
  Every access lies inside the argument's own view.
  load at element 3 of x (1, 3), program (0, 0, 0), case.py:13: x = tl.load(x_ptr + cols)
  smallest inputs found: M = 1, N = 3
    x = float32 (1, 3): [[0., 0., 0.]]
  replay: trivet replay .trivet/witnesses/softmax-stays_in_bounds-float32.json"""


@dataclass(eq=False)
class Contract:
    """What the commands ask of a contract, and the verdicts it brings."""

    verdicts: dict[str, Any]
    names: Sequence[str] = ("float32",)
    faults: list[Any] = field(default_factory=list)
    removed: dict[str, str] = field(default_factory=dict)

    def dtypes(self) -> Sequence[str]:
        return self.names

    def kernel(self) -> None: ...


def fault(name: str, verdict: str = "killed") -> SimpleNamespace:
    return SimpleNamespace(
        name=name, number=7, expects=("stays_in_bounds",), story="A story.", verdict=verdict
    )


def judge(
    contract: Contract,
    *,
    name: str,
    dtypes: Sequence[str],
    executor: str = "simulator",
    laws: Sequence[str] | None = None,
    profile: str = "quick",
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
    source: str = "",
) -> list[Verdict]:
    """Return the verdicts the contract was made with."""
    print(f"judging {source} at {dtypes[0]}: {profile}, seed {seed}", file=sys.stderr)
    if progress:
        progress(name, 1, 20)
    found = []
    for law, given in contract.verdicts.items():
        if laws is None or law in laws:
            state = given() if callable(given) else given
            found.append(_verdict(name, law, dtypes[0], executor, state))
    return found


def _verdict(name: str, law: str, dtype: str, executor: str, state: str) -> Verdict:
    return Verdict(
        contract=name,
        law=law,
        dtype=dtype,
        executor=executor,
        state=state,  # type: ignore[arg-type]
        reason=None if state in ("green", "red") else "a reason",
        examples=20,
        elements=1200,
        margin=0.96 if state == "green" else None,
        seconds=0.25,
        failure=Failure(TEXT) if state == "red" else None,
    )


def judge_fault(found: Any, fault: Any, seed: int) -> Any:
    """Return the verdict the fault was made with."""
    from trivet.faults._judge import FaultVerdict

    red = () if fault.verdict == "survived" else fault.expects
    return FaultVerdict(
        fault.name, fault.number, fault.expects, red, False, fault.verdict, "a detail"
    )


class UnknownNameError(ValueError):
    """As the collector's."""


def find(names: Sequence[str]) -> list[SimpleNamespace]:
    """Return the contracts of ``CONTRACTS`` called ``names``, or all."""
    wanted = list(names) or list(CONTRACTS)
    for name in wanted:
        if name not in CONTRACTS:
            raise UnknownNameError(f"{name}: no contract has this name; did you mean softmax?")
    return [
        SimpleNamespace(
            name=name,
            contract=CONTRACTS[name],
            path=Path("case.py"),
            variable=name,
            source=f"case.py:{name}",
        )
        for name in wanted
    ]


CONTRACTS: dict[str, Contract] = {}


def install() -> None:
    """Put the fakes where the commands and the plugin look."""
    from dataclasses import make_dataclass

    threads = SimpleNamespace(set_num_threads=lambda count: None, get_num_threads=lambda: 1)
    verdict = make_dataclass(
        "FaultVerdict",
        ["name", "number", "expected", "red", "conventional", "verdict", "detail"],
    )
    fakes: dict[str, dict[str, Any]] = {
        "torch": vars(threads),
        "trivet.properties._contract": {"Contract": Contract},
        "trivet.properties._engine": {"judge": judge},
        "trivet.properties._judges": {
            "Judges": lambda contract, executor: SimpleNamespace(laws=contract.verdicts)
        },
        "trivet.properties._collect": {
            "find": find,
            "UnknownNameError": UnknownNameError,
            "UnreadableFileError": UnknownNameError,
        },
        "trivet.faults._collect": {"plant_faults": lambda found: None},
        "trivet.faults._judge": {"judge_fault": judge_fault, "FaultVerdict": verdict},
    }
    for name, contents in fakes.items():
        module = ModuleType(name)
        vars(module).update(contents)
        sys.modules[name] = module
