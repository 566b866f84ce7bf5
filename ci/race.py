"""How much faster the simulator is than Triton's interpreter: ``python -m trivet.ci.race``.

Both run the same launches of eight kernels with fresh inputs. Ours goes through the launch layer
with every sanitizer on; the interpreter runs in a process of its own. Times are CPU times, so that
a busy machine matters little, of warm launches.
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

SIZES = (20, 500)
WANTED = {20: 30.0, 500: 100.0}
_OUR_LAUNCHES = 5
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main(arguments: list[str] | None = None) -> int:
    """Run the race; returns 0 when both medians reach their goals, else 1."""
    parser = argparse.ArgumentParser(prog="trivet.ci.race", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--side", choices=("ours", "interpreter"), help=argparse.SUPPRESS)
    parser.add_argument("--programs", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.side:
        print(json.dumps(_measure(options.side, options.programs)))
        return 0
    result = race()
    print(json.dumps(result, indent=2) if options.json else _table(result))
    return int(any(result[f"median_{size}"] < WANTED[size] for size in SIZES))


def race() -> dict[str, Any]:
    """Times and ratios per kernel, and the median ratio at each number of programs."""
    with ThreadPoolExecutor(1) as background:
        slowest = background.submit(_side, "interpreter", SIZES[-1])
        quick = {("interpreter", SIZES[0]): _side("interpreter", SIZES[0])}
        quick |= {("ours", size): _side("ours", size) for size in SIZES}
        quick["interpreter", SIZES[-1]] = slowest.result()
    kernels: list[dict[str, Any]] = [
        {
            "name": name,
            "programs": size,
            "interpreter_ms": quick["interpreter", size][name],
            "ours_ms": quick["ours", size][name],
            "ratio": quick["interpreter", size][name] / quick["ours", size][name],
        }
        for size in SIZES
        for name in quick["ours", size]
    ]
    medians = {
        f"median_{size}": statistics.median(
            kernel["ratio"] for kernel in kernels if kernel["programs"] == size
        )
        for size in SIZES
    }
    return {"version": 1, **medians, "kernels": kernels}


def _side(side: str, programs: int) -> dict[str, float]:
    """Milliseconds per launch of each kernel, from a process of its own."""
    environment = {**os.environ, **_THREADS, "TRITON_DEFAULT_FP_FUSION": "1"}
    environment.pop("TRITON_INTERPRET", None)
    if side == "interpreter":
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", "trivet.ci.race", "--side", side]
    command += ["--programs", str(programs)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _measure(side: str, programs: int) -> dict[str, float]:
    from trivet.ci import _race_kernels

    launch = _ours() if side == "ours" else _interpreter()
    rounds = _OUR_LAUNCHES if side == "ours" else (3 if programs <= SIZES[0] else 1)
    times: dict[str, float] = {}
    for name in _race_kernels.NAMES:
        launch(_race_kernels.build(name, SIZES[0], 0))
        if side == "ours":
            launch(_race_kernels.build(name, programs, 0))
        cases = (_race_kernels.build(name, programs, seed) for seed in range(1, rounds + 1))
        times[name] = 1e3 * statistics.median(launch(case) for case in cases)
    return times


def _ours() -> Callable[[Any], float]:
    """Seconds of one launch on the simulator."""
    from trivet.simulator.executors import Simulator

    simulator = Simulator()

    def launch(case: Any) -> float:
        tensors = _tensors(case)
        start = time.process_time()
        run = simulator.run(lambda **given: _start(case, given), tensors)
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
        _start(case, tensors)
        return time.process_time() - start

    return launch


def _start(case: Any, tensors: dict[str, Any]) -> None:
    case.kernel[case.grid](**tensors, **case.constexprs)


def _tensors(case: Any) -> dict[str, Any]:
    import numpy as np
    import torch

    torch.set_num_threads(1)
    return {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in case.arguments.items()
    }


def _table(result: dict[str, Any]) -> str:
    lines = [f"{'kernel':14} {'programs':>8} {'interpreter ms':>15} {'ours ms':>9} {'ratio':>7}"]
    for kernel in result["kernels"]:
        lines.append(
            f"{kernel['name']:14} {kernel['programs']:8} {kernel['interpreter_ms']:15.1f} "
            f"{kernel['ours_ms']:9.2f} {kernel['ratio']:6.0f}x"
        )
    for size in SIZES:
        median, wanted = result[f"median_{size}"], WANTED[size]
        lines.append(f"median at {size} programs: {median:.0f}x (wanted: {wanted:.0f}x)")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
