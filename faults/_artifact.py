"""Whether a mutant that survives is the same kernel to a GPU: its PTX, as the launches made it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from trivet.faults._equivalence import kernel_pairs
from trivet.faults._warm import Warm
from trivet.simulator.alike import same_text
from trivet.simulator.binding import Launch
from trivet.simulator.compiled._child import Task
from trivet.simulator.compiled.compiler import compile_task
from trivet.simulator.compiled.request import request_of
from trivet.simulator.compiled.targets import CompilerError, device_named, missing, tool_path

TARGET = "sm_90"
SAME_PTX = f"the same PTX for {TARGET} in every specialisation that was launched"


def same_artifact(warm: Warm, kernel: Callable[..., Any]) -> bool:
    """Compare the PTX of a mutant's kernels with that of the original's, launch by launch.

    Each specialisation is compiled once, in the compiler's own process. False where one differs,
    and where nothing compiles for the target here.
    """
    if missing(TARGET):
        return False
    pairs = list(kernel_pairs(warm.found.contract.kernel, kernel))
    changed = {one.__name__: other for one, other in pairs if not same_text(one, other)}
    try:
        compared = [
            _ptx(launch) == _ptx(replace(launch, function=other))
            for launch, other in _distinct(warm, changed)
        ]
    except (CompilerError, ValueError):
        return False
    return bool(compared) and all(compared)


def _distinct(warm: Warm, changed: dict[str, Any]) -> Iterator[tuple[Launch, Any]]:
    """Yield one launch of every specialisation of the kernels that an edit changes."""
    seen: set[tuple[str, str]] = set()
    for launch in warm.launches():
        other = changed.get(launch.kernel)
        if other is None:
            continue
        text = request_of(launch, TARGET).text
        if (launch.kernel, text) not in seen:
            seen.add((launch.kernel, text))
            yield launch, other


def _ptx(launch: Launch) -> str:
    request = request_of(launch, TARGET)
    tools = [str(tool_path(name)) for name in ("nvdisasm", "cuobjdump")]
    task = Task(request.ttir(), device_named(TARGET).target, request.options, *tools)
    artifact = compile_task(task, what=launch.kernel)
    if artifact.error:
        raise CompilerError(artifact.error)
    return bare(artifact.ptx)


def bare(ptx: str) -> str:
    """Return PTX without what tells of source lines: comments, line numbers, debug sections."""
    code = ptx.partition("\t.section\t.debug")[0]
    lines = (line.partition("//")[0].strip() for line in code.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith((".loc", ".file")))
