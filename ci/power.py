"""Measures false alarms and detection of derived bounds beside other projects' rules.

``python -m trivet.ci.power [--json]``: right and wrong kernels of every workload, emulated in
NumPy and torch, on the same inputs for every column. Ours are the bound for any order of
summation and the one for the declared depth. Exits 1 on a false alarm of ours, where a rule with
under 0.1% false alarms on a workload sees a fault more often than the declared bound and than
the gates, whose own generator draws the inputs, and where a gate misses a fault that random inputs
hide.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from trivet.ci._power.measure import Found, measure
from trivet.ci._power.report import as_json, as_text, false_alarms, losses, weak_spots
from trivet.ci._power.suite import SUITE, workload_named

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 0 when no column of ours loses, else 1."""
    parser = argparse.ArgumentParser(prog="trivet.ci.power", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--seed", type=int, default=0, help="seed of all inputs")
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases, e.g. 0.1")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--workload", action="append", help="only this one; may be repeated")
    options = parser.parse_args(arguments)
    names = options.workload or [make().name for make in SUITE]
    start = time.perf_counter()
    found = _measured(names, options.seed, options.share, options.jobs)
    seconds = time.perf_counter() - start
    if options.json:
        print(json.dumps(as_json(found, options.seed, seconds), indent=1))
    else:
        print(f"{as_text(found)}\n\n{seconds:.0f} s, seed {options.seed}.")
    return int(lost(found))


def lost(found: Sequence[Found]) -> bool:
    """Whether there is a false alarm, a loss or a weak spot left open."""
    shown = all(row["seen"] == 1.0 for row in weak_spots(found))
    return bool(false_alarms(found) or losses(found) or not shown)


def _measured(names: Sequence[str], seed: int, share: float, jobs: int) -> list[Found]:
    if jobs == 1:
        return [_one(name, seed, share) for name in names]
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_one, name, seed, share) for name in names]
        return [future.result() for future in futures]


def _one(name: str, seed: int, share: float) -> Found:
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    found = measure(workload_named(name), seed=seed, share=share)
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
