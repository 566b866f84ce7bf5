"""Judging a fault: its kernel in place of the right one, the same inputs, the named laws red."""

import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from trivet.faults._load import FaultError, kernel_of
from trivet.properties._collect import Found, load_file
from trivet.properties._compiled import record
from trivet.properties._engine import judge
from trivet.properties._law import Fault
from trivet.properties._laws import standard_laws
from trivet.properties._locks import locks_in
from trivet.properties._verdict import NotJudgedError, Verdict
from trivet.simulator.executors import executor_named

Suite = Callable[[Callable[..., Any]], None]


@dataclass(frozen=True, slots=True)
class FaultVerdict:
    """What the gates made of a fault.

    ``killed``: every expected law turned red while the original kept it; ``wrong_law``: only
    others did; ``survived``: none did; ``not_judged``: the fault could not be made or the original
    itself is red. ``conventional`` says whether the conventional suite sees it, None without one.
    """

    name: str
    number: int | None
    expected: tuple[str, ...]
    red: tuple[str, ...]
    conventional: bool | None
    verdict: Literal["killed", "survived", "wrong_law", "not_judged"]
    detail: str


def judge_fault(found: Found, fault: Fault, seed: int = 0) -> FaultVerdict:
    """Judge one fault of the contract ``found`` at the quick profile, without shrinking."""
    report = partial(FaultVerdict, fault.name, fault.number, fault.expects)
    try:
        kernel = kernel_of(fault, found.contract.kernel)
    except FaultError as error:
        return report((), None, "not_judged", str(error))
    seen = seen_by_convention(found, kernel)
    try:
        with _locked(found, fault):
            broken = _unkept(found, fault.expects, seed)
            if broken:
                return report((), seen, "not_judged", f"the original is not green: {broken}")
            verdicts = _verdicts(found, fault, kernel, seed)
    except NotJudgedError as error:
        return report((), seen, "not_judged", f"the original has no lock: {error}")
    # A red gate with a reason crashed or compared nothing: not what a fault is red for.
    red = [v for v in verdicts if v.state == "red" and v.reason is None]
    names = tuple(dict.fromkeys(v.law for v in red))
    text = "\n".join(v.failure.text for v in red if v.failure and v.law in fault.expects)
    if set(fault.expects) <= set(names):
        return report(names, seen, "killed", text)
    unsound = [v.failure.text for v in verdicts if v.state == "red" and v.reason and v.failure]
    if unsound:
        return report(names, seen, "not_judged", "\n".join(unsound))
    others = "\n".join(v.failure.text for v in red if v.failure)
    return report(names, seen, "wrong_law" if names else "survived", others)


def _verdicts(found: Found, fault: Fault, kernel: Callable[..., Any], seed: int) -> list[Verdict]:
    return judge(
        found.contract.with_kernel(kernel),
        name=found.name,
        seed=seed,
        executor=_executor(fault.expects),
        stop_when=fault.expects,
        shrink=False,
        source=found.source,
    )


def _executor(laws: tuple[str, ...]) -> str:
    """Return where the expected laws are judged: on the artifact where all of them are about it."""
    known = standard_laws()
    needs = {need for law in laws if law in known for need in known[law].needs}
    return "compile" if needs == {"artifact"} else "simulator"


@contextmanager
def _locked(found: Found, fault: Fault) -> Iterator[None]:
    """Lock the original's own metrics, of this very toolchain, where the fault is to move them."""
    if "perf_lock" not in fault.expects:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="trivet-lock-") as folder, locks_in(Path(folder)):
        record(found.contract, found.name, found.source)
        yield


def _unkept(found: Found, laws: tuple[str, ...], seed: int) -> str:
    """Judge the original at the expected laws, same seed; return what is not green."""
    verdicts = judge(
        found.contract,
        name=found.name,
        seed=seed,
        executor=_executor(laws),
        laws=laws,
        shrink=False,
        source=found.source,
    )
    bad = [v for v in verdicts if v.state in ("red", "not_judged")]
    return "; ".join(f"{v.law}[{v.dtype}] is {v.state}: {v.reason or 'see the gate'}" for v in bad)


def seen_by_convention(
    found: Found, kernel: Callable[..., Any], *, trusted: bool = False
) -> bool | None:
    """Return whether the conventional suite fails on ``kernel``.

    None when there is no suite, or one that fails on the original kernel as well; ``trusted``
    says that it is known not to.
    """
    suite = conventional_suite(found) if trusted else trusted_suite(found)
    return None if suite is None else _fails(suite, kernel)


def trusted_suite(found: Found) -> Suite | None:
    """Return the conventional suite of a contract, None without one that its original passes."""
    suite = conventional_suite(found)
    return None if suite is None or _fails(suite, found.contract.kernel) else suite


def _fails(suite: Suite, kernel: Callable[..., Any]) -> bool:
    run = executor_named("simulator", poison="zero").run(suite, {"kernel": kernel})
    return run.error is not None


def conventional_suite(found: Found) -> Suite | None:
    """Return ``conventional`` of the case's file under a ``conventional`` folder, None without."""
    # Contracts of one name are told apart by their files, behind the name.
    stem = found.name.partition(" ")[0].replace(".", "_")
    folders = [found.path.resolve().parent / "conventional", _examples() / "conventional"]
    for folder in folders:
        file = folder / f"{stem}.py"
        if file.exists():
            suite: object = load_file(file).conventional
            assert callable(suite)
            return suite
    return None


def _examples() -> Path:
    """The repository's examples folder; it is no part of the installed package."""
    spec = importlib.util.find_spec("trivet.faults")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parent.parent / "examples"
