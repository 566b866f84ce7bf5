"""Times the shipped cells on a GPU beside torch eager and torch.compile, same work, same run.

``python -m trivet.ci.device_times [--json]``: medians of CUDA events over interleaved calls, as
ratios to ours. Exits 2 where there is no GPU: nothing is timed anywhere else.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from typing import Any

Call = Callable[[], object]
_WARM, _ROUNDS = 10, 50
# Production sizes of docs/spec/perception.md, and a batch that fills a card.
_SIZES = {"B": 1024, "D": 64, "H": 128}


def main() -> int:
    """Print the table, or JSON {device, sizes, kernels: [{kernel, us, eager, compiled}]}."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="machine output")
    wanted = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("device_times: no GPU here: run it on a machine with one", file=sys.stderr)
        return 2
    rows = [_timed(name, *calls) for name, calls in _kernels(torch).items()]
    device = torch.cuda.get_device_name()
    if wanted.json:
        print(json.dumps({"device": device, "sizes": _SIZES, "kernels": rows}, indent=1))
        return 0
    print(f"{device}, {_SIZES}")
    print(f"{'kernel':16} {'ours us':>9} {'eager':>8} {'compiled':>9}  (times ours)")
    for row in rows:
        print(f"{row['kernel']:16} {row['us']:9.1f} {row['eager']:7.2f}x {row['compiled']:8.2f}x")
    return 0


def _cell(torch: Any) -> tuple[dict[str, Any], Any]:
    """Return the cell's arguments on the device, and a gradient of its result."""
    batch, features, hidden = _SIZES["B"], _SIZES["D"], _SIZES["H"]
    draw = torch.Generator(device="cuda").manual_seed(0)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=draw, device="cuda")

    cell = {
        "x": normal(batch, features),
        "h": normal(batch, hidden),
        "dt": normal(batch).abs(),
        "W_in": normal(hidden, features) / features**0.5,
        "W_rec": normal(hidden, hidden) / hidden**0.5,
        "b": normal(hidden),
        "tau": normal(hidden).exp(),
    }
    return cell, normal(batch, hidden)


def _kernels(torch: Any) -> dict[str, tuple[Call, Call, Call]]:
    """Return, by kernel, three calls that do the same work: ours, eager, compiled."""
    from trivet.impl import cfc

    cell, gradient = _cell(torch)

    def eager(x: Any, h: Any, dt: Any, W_in: Any, W_rec: Any, b: Any, tau: Any) -> Any:
        share = -torch.expm1(-dt[:, None] / tau)
        return h * (1 - share) + share * torch.tanh(b + x @ W_in.T + h @ W_rec.T)

    def backward(step: Callable[..., Any]) -> Call:
        leaves = {n: t.clone().requires_grad_(n != "dt") for n, t in cell.items()}
        wanted = [leaf for leaf in leaves.values() if leaf.requires_grad]
        return lambda: torch.autograd.grad(step(**leaves), wanted, gradient)

    compiled = torch.compile(eager)
    step: Any = cfc.CfcStep
    return {
        "cfc.step": (
            lambda: cfc.step(**cell),
            lambda: eager(**cell),
            lambda: compiled(**cell),
        ),
        "cfc.step + grad": (
            backward(lambda **leaves: step.apply(*leaves.values())),
            backward(eager),
            backward(compiled),
        ),
    }


def _timed(name: str, ours: Call, eager: Call, compiled: Call) -> dict[str, Any]:
    """Interleave the three calls, so that clocks and neighbours treat them alike."""
    calls = (ours, eager, compiled)
    for call in calls * _WARM:
        call()
    times: tuple[list[float], ...] = ([], [], [])
    for _ in range(_ROUNDS):
        for call, found in zip(calls, times, strict=True):
            found.append(_microseconds(call))
    base, *others = (statistics.median(found) for found in times)
    return {
        "kernel": name,
        "us": base,
        "eager": others[0] / base,
        "compiled": others[1] / base,
    }


def _microseconds(call: Call) -> float:
    import torch

    event: Any = torch.cuda.Event
    start, end = (event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) * 1e3


if __name__ == "__main__":
    raise SystemExit(main())
