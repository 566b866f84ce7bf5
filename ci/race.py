"""How much faster the simulator is than Triton's interpreter: ``python -m trivet.ci.race``.

Both run the same launches with fresh inputs: eight kernels of different kinds, and the host
functions of the shipped families. Ours goes through the launch layer with every sanitizer on; the
interpreter runs in a process of its own. Times are CPU times, so that a busy machine matters
little, of warm launches. Besides: what the sanitizers cost, what parsing and preparing costs
beside Triton's own frontend, how time grows with the number of programs, and the memory a launch
takes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trivet.ci import _race_figures, _race_functions, _race_kernels

SIZES = (20, 500)
WANTED = {20: 30.0, 500: 100.0}
NAMES = (*_race_kernels.NAMES, *_race_functions.NAMES)
_OUR_LAUNCHES = 5
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main(arguments: list[str] | None = None) -> int:
    """Run the race; returns 0 when every goal is reached, else 1."""
    parser = argparse.ArgumentParser(prog="trivet.ci.race", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--side", choices=("ours", "interpreter", "scale"), help=argparse.SUPPRESS)
    parser.add_argument("--programs", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.side:
        print(json.dumps(_measure(options.side, options.programs)))
        return 0
    result = race()
    print(json.dumps(result, indent=2) if options.json else _table(result))
    return int(bool(result["missed"]))


def race() -> dict[str, Any]:
    """Times and ratios per kernel, the medians, the further figures, and the goals missed."""
    with ThreadPoolExecutor(1) as background:
        slowest = background.submit(_side, "interpreter", SIZES[-1])
        sides = {("interpreter", SIZES[0]): _side("interpreter", SIZES[0])}
        sides |= {("ours", size): _side("ours", size) for size in SIZES}
        scale = _side("scale", 0)
        sides["interpreter", SIZES[-1]] = slowest.result()
    kernels: list[dict[str, Any]] = [
        {
            "name": name,
            "programs": size,
            "interpreter_ms": sides["interpreter", size][name],
            "ours_ms": ours["ms"],
            "ratio": sides["interpreter", size][name] / ours["ms"],
            "sanitizers": ours["sanitizers"],
            "prepare": ours["prepare"],
        }
        for size in SIZES
        for name, ours in sides["ours", size].items()
    ]
    result: dict[str, Any] = {"version": 2}
    for size in SIZES:
        mine = [kernel for kernel in kernels if kernel["programs"] == size]
        result[f"median_{size}"] = statistics.median(kernel["ratio"] for kernel in mine)
    result |= _race_figures.summary(kernels, scale)
    result["missed"] = _race_figures.missed(result, WANTED)
    return {**result, "kernels": kernels}


def _side(side: str, programs: int) -> dict[str, Any]:
    """Figures of each kernel, from a process of its own."""
    environment = {**os.environ, **_THREADS, "TRITON_DEFAULT_FP_FUSION": "1"}
    environment.pop("TRITON_INTERPRET", None)
    if side == "interpreter":
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", "trivet.ci.race", "--side", side]
    command += ["--programs", str(programs)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def build(name: str, programs: int, seed: int) -> Any:
    """Return the launch or call ``name`` with fresh inputs; ``programs`` is a multiple of 20."""
    module = _race_kernels if name in _race_kernels.NAMES else _race_functions
    return module.build(name, programs, seed)


def _measure(side: str, programs: int) -> dict[str, Any]:
    if side == "scale":
        return _race_figures.scale(_ours())
    if side == "interpreter":
        return _interpreted(programs)
    return {name: _ours_of(name, programs) for name in NAMES}


def _interpreted(programs: int) -> dict[str, float]:
    """Milliseconds per launch on Triton's interpreter."""
    launch, rounds = _interpreter(), 3 if programs <= SIZES[0] else 1
    times = {}
    for name in NAMES:
        launch(build(name, SIZES[0], 0))
        cases = (build(name, programs, seed) for seed in range(1, rounds + 1))
        times[name] = 1e3 * statistics.median(launch(case) for case in cases)
    return times


def _ours_of(name: str, programs: int) -> dict[str, float]:
    """Milliseconds per launch; with over without sanitizers; prepare over Triton's frontend.

    The launches with and without take turns, and the fastest of each count for the ratio: what
    disturbs one disturbs the other.
    """
    watched, bare = _ours(), _ours(sanitize=False)
    for size in (SIZES[0], programs):
        watched(build(name, size, 0))
        bare(build(name, size, 0))
    cases = [build(name, programs, seed) for seed in range(1, _OUR_LAUNCHES + 1)]
    pairs = [(watched(case), bare(build(name, programs, 9))) for case in cases]
    with_them, without = (sorted(times) for times in zip(*pairs, strict=True))
    return {
        "ms": 1e3 * statistics.median(with_them),
        "sanitizers": with_them[0] / without[0],
        "prepare": _race_figures.prepare(_functions(build(name, SIZES[0], 0))),
    }


def _functions(case: Any) -> list[Any]:
    """The kernels that a case launches, each once."""
    from trivet.simulator.executors import Simulator

    run = Simulator().run(lambda **given: case.start(given), _tensors(case))
    return list({id(launch.function): launch.function for launch in run.launches}.values())


def _ours(sanitize: bool = True) -> Callable[[Any], float]:
    """Seconds of one launch on the simulator."""
    from trivet.simulator.executors import Simulator

    simulator = Simulator(sanitize=sanitize)

    def launch(case: Any) -> float:
        tensors = _tensors(case)
        start = time.process_time()
        run = simulator.run(lambda **given: case.start(given), tensors)
        seconds = time.process_time() - start
        if run.error or run.faults:
            raise RuntimeError(f"{case.name}: {run.error or run.faults[0].text}")
        return seconds

    return launch


def _interpreter() -> Callable[[Any], float]:
    """Seconds of one launch on Triton's interpreter."""

    def launch(case: Any) -> float:
        tensors = _tensors(case)
        start = time.process_time()
        case.start(tensors)
        return time.process_time() - start

    return launch


def _tensors(case: Any) -> dict[str, Any]:
    import numpy as np
    import torch

    torch.set_num_threads(1)
    return {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in case.arguments.items()
    }


def _table(result: dict[str, Any]) -> str:
    lines = [
        f"{'kernel':28} {'programs':>8} {'interpreter ms':>15} {'ours ms':>9} {'ratio':>7} "
        f"{'sanitizers':>11}"
    ]
    for kernel in result["kernels"]:
        lines.append(
            f"{kernel['name']:28} {kernel['programs']:8} {kernel['interpreter_ms']:15.1f} "
            f"{kernel['ours_ms']:9.2f} {kernel['ratio']:6.0f}x {kernel['sanitizers']:10.2f}x"
        )
    for size in SIZES:
        median, wanted = result[f"median_{size}"], WANTED[size]
        lines.append(f"median at {size} programs: {median:.0f}x (wanted: {wanted:.0f}x)")
    return "\n".join([*lines, *_race_figures.told(result), *_missed(result)])


def _missed(result: dict[str, Any]) -> list[str]:
    return [f"MISSED: {goal}" for goal in result["missed"]] or ["every goal is reached"]


if __name__ == "__main__":
    sys.exit(main())
