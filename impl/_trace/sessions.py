"""Traced runs from beginning to end, as a plain synchronous program has them."""

import json
import re
import tempfile
from pathlib import Path

import torch

from trivet.impl import _checks
from trivet.impl._perception.launch_plan import LaunchPlan
from trivet.impl._trace.drainer import Drainer
from trivet.impl.trace import Ring, log_tick, write
from trivet.impl.trace.layout import INPUT, VALUES

_PRODUCER = 255


def traced(payload: torch.Tensor, C: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Write the rows of payload (R, 13) float32, one a step, through a ring of C slots to a file.

    Returns counts (2,) int64: records written, lines of the file plus losses reported; and of the
    last T = min(R, C - 1) lines, which no ring of C may lose, steps (T,) int64 and values (T, 13)
    float32: -1 and NaN where there is no line. Raises as `trace.write`.
    """
    arguments = _checks.Arguments(values=VALUES)
    arguments.tensor("payload", payload, "R values", torch.float32)
    ring = Ring.create(C, payload.device)
    told: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        with Drainer(ring, path, report=told.append) as drainer:
            for row in range(payload.shape[0]):
                log_tick(ring.step)
                given = payload[row : row + 1]
                write(ring.slots, ring.head, ring.step, given, _PRODUCER, INPUT)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    lost = sum(int(number) for line in told for number in re.findall(r"(\d+) records lost", line))
    tail = min(payload.shape[0], C - 1)
    steps = torch.full((tail,), -1, dtype=torch.int64)
    values = torch.full((tail, VALUES), float("nan"))
    for place, line in enumerate(lines[max(len(lines) - tail, 0) :]):
        steps[place] = line["step"]
        values[place] = torch.tensor([float(value) for value in line["payload"].values()])
    counts = torch.tensor([drainer.close().written, len(lines) + lost])
    return counts, steps, values


def planned(
    slots: torch.Tensor,
    head: torch.Tensor,
    step: torch.Tensor,
    payload: torch.Tensor,
    first: int,
    second: int,
) -> None:
    """Three traced steps through one launch plan, in place: two with kernel id first, then second.

    A step ticks and writes the rows of payload (R, 13); arguments and errors as `trace.write`.
    """
    plan = LaunchPlan(slots.device)

    def sequence(kernel_id: int) -> None:
        log_tick(step)
        write(slots, head, step, payload, kernel_id, INPUT)

    for kernel_id in (first, first, second):
        plan.run((kernel_id,), lambda kernel_id=kernel_id: sequence(kernel_id))  # type: ignore[misc]
