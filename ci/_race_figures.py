"""The race's further figures: sanitizers, preparing a kernel, growth with programs, memory."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

MOST_SANITIZERS = 2.0
MOST_PREPARE = 1.0
MOST_SLOPE = 1.1
# A launch may take this beside its arguments, and so many bytes for each of theirs: two keys of
# four bytes for reads, writes and atomics of a four-byte element, and its copy.
FIXED_BYTES = 192 * 2**20
BYTES_PER_BYTE = 8
SCALE = (100, 1000, 10_000)
SCALED = ("add", "softmax", "layer_norm", "histogram", "halving", "branch_gather")

Launch = Callable[[Any], float]


def prepare(functions: Iterable[Any]) -> float:
    """CPU time of parsing and preparing over that of Triton's frontend, for kernels launched."""
    from trivet.simulator import frontend
    from trivet.simulator.arithmetic import Native
    from trivet.simulator.machine import Machine
    from trivet.simulator.parser import parse

    lowering = preparing = 0.0
    for function in functions:
        for asked in frontend.specialisations(function):
            start = time.process_time()
            text = frontend.text_of(function, *asked)
            middle = time.process_time()
            Machine(parse(text), Native())
            lowering += middle - start
            preparing += time.process_time() - middle
    return preparing / lowering


def scale(launch: Launch) -> dict[str, dict[str, float]]:
    """Slope of log time against log programs, and bytes taken over those allowed, by kernel."""
    from trivet.ci.race import build

    found = {}
    for name in SCALED:
        launch(build(name, SCALE[0], 0))
        times = [min(launch(build(name, n, seed)) for seed in (1, 2)) for n in SCALE]
        case = build(name, SCALE[-1], 3)
        given = sum(getattr(value, "nbytes", 0) for value in case.arguments.values())
        taken = _peak(lambda case=case: launch(case))  # type: ignore[misc]
        found[name] = {
            "slope": _slope([math.log(n) for n in SCALE], [math.log(each) for each in times]),
            "memory": taken / (FIXED_BYTES + BYTES_PER_BYTE * given),
        }
    return found


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    return statistics.linear_regression(x, y).slope


def _peak(work: Callable[[], object]) -> float:
    """Bytes that ``work`` adds to the resident memory at its peak (Linux; 0 elsewhere)."""
    status, clear = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not clear.exists():
        return 0.0
    clear.write_text("5")
    before = _field(status, "VmRSS")
    work()
    return max(0.0, _field(status, "VmHWM") - before)


def _field(status: Path, name: str) -> float:
    line = next(each for each in status.read_text().splitlines() if each.startswith(name))
    return 1024.0 * int(line.split()[1])


def summary(
    kernels: Sequence[Mapping[str, Any]], scaled: Mapping[str, Mapping[str, float]]
) -> dict[str, Any]:
    """The figures that have goals, over all kernels."""
    return {
        "sanitizers": statistics.median(kernel["sanitizers"] for kernel in kernels),
        "prepare": statistics.median(kernel["prepare"] for kernel in kernels),
        "slope": max(each["slope"] for each in scaled.values()),
        "memory": max(each["memory"] for each in scaled.values()),
        "scale": {name: dict(each) for name, each in scaled.items()},
    }


def missed(result: Mapping[str, Any], wanted: Mapping[int, float]) -> list[str]:
    """The goals that were not reached, in words."""
    goals = {
        f"median at {size} programs at least {least:g}x": result[f"median_{size}"] >= least
        for size, least in wanted.items()
    }
    goals |= {
        f"sanitizers at most {MOST_SANITIZERS:g}x": result["sanitizers"] <= MOST_SANITIZERS,
        f"parse and prepare at most {MOST_PREPARE:g}x the frontend": result["prepare"]
        <= MOST_PREPARE,
        f"slope at most {MOST_SLOPE:g}": result["slope"] <= MOST_SLOPE,
        "memory within its bound": result["memory"] <= 1,
    }
    return [goal for goal, reached in goals.items() if not reached]


def told(result: Mapping[str, Any]) -> list[str]:
    """The figures of ``summary`` in lines."""
    lines = [
        f"sanitizers: median {result['sanitizers']:.2f}x (wanted: {MOST_SANITIZERS:g}x)",
        f"parse and prepare over Triton's frontend: median {result['prepare']:.2f}x "
        f"(wanted: {MOST_PREPARE:g}x)",
    ]
    for name, each in result["scale"].items():
        lines.append(
            f"{name}, {SCALE[0]} to {SCALE[-1]} programs: slope {each['slope']:.2f}, "
            f"memory {each['memory']:.2f} of its bound"
        )
    return [
        *lines,
        f"steepest slope {result['slope']:.2f} (wanted: {MOST_SLOPE:g}); bound of memory: "
        f"{FIXED_BYTES >> 20} MiB and {BYTES_PER_BYTE} bytes for each of the arguments",
    ]
