"""How accurate a backend's functions of one number are, on all 2^32 float32 inputs.

    python -m trivet.ci.sweep --on gpu
    python -m trivet.ci.sweep --on simulator --inputs 1048576

Compares each function with float64, block by block of inputs, and the worst of each block with
mpmath at 113 bits; writes the largest error in ulps of the true value. With --keep a whole sweep
becomes the profile from which bounds on this device are derived (fixtures/profiles). An interrupted
sweep resumes after the last finished block.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.ci.document import environment
from trivet.oracles._profile import PROFILES, SWEEPS, profile_named, swept
from trivet.simulator.cache import cache_folder, write_whole

if TYPE_CHECKING:
    import torch

ALL_INPUTS = 2**32
BLOCK = 2**24
_PROGRAM = 1024
_WORST = 4
# As in float32: the smallest normal number and the smallest of all, and where rounding to nearest
# gives infinity.
_NORMAL, _SUBNORMAL = 2.0**-126, 2.0**-149
_OVERFLOW = (2 - 2.0**-24) * 2.0**127

Evaluate = Callable[[str, "torch.Tensor"], "torch.Tensor"]


@dataclass
class Record:
    """What is known of one function after ``blocks`` blocks of inputs.

    ulp: the largest error where input and result are normal numbers, at ``worst`` (a float32's
    hexadecimal form). subnormal_ulp: the same where the input is subnormal, which a backend may
    flush. flushed: subnormal results that became zero. wrong: results that are NaN or infinite
    where the true one is not, or the other way round, or off by a normal number near zero.
    """

    blocks: int = 0
    ulp: float = 0.0
    worst: str = ""
    subnormal_ulp: float = 0.0
    flushed: int = 0
    wrong: int = 0
    wrong_at: str = ""


def references() -> "dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]]":
    """Return each function in float64 and its name in mpmath."""
    import torch

    return {
        "exp": (torch.exp, "exp"),
        "exp2": (torch.exp2, "exp2"),
        "expm1": (torch.expm1, "expm1"),
        "log": (torch.log, "log"),
        "log2": (torch.log2, "log2"),
        "log10": (torch.log10, "log10"),
        "log1p": (torch.log1p, "log1p"),
        "sqrt": (torch.sqrt, "sqrt"),
        "rsqrt": (lambda x: 1 / torch.sqrt(x), "rsqrt"),
        "cbrt": (lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3), "cbrt"),
        "sin": (torch.sin, "sin"),
        "cos": (torch.cos, "cos"),
        "tanh": (torch.tanh, "tanh"),
        "erf": (torch.erf, "erf"),
        "sinh": (torch.sinh, "sinh"),
        "arcsin": (torch.asin, "asin"),
        "arccos": (torch.acos, "acos"),
        "arctan": (torch.atan, "atan"),
        "arcsinh": (torch.asinh, "asinh"),
        "arctanh": (torch.atanh, "atanh"),
    }


def composed() -> "dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]]":
    """Return the functions that kernels here compose of exp, log and division; log1p from 0 on."""
    import torch

    return {
        "composed_tanh": (torch.tanh, "tanh"),
        "composed_expm1": (torch.expm1, "expm1"),
        "composed_log1p": (lambda x: torch.log1p(x.clamp(min=0)), "log1p"),
    }


def exactly(name: str, x: float) -> float:
    """Return the function called ``name`` in mpmath of one number, computed at 113 bits."""
    import mpmath

    with mpmath.workprec(113):
        number = mpmath.mpf(x)
        if name == "rsqrt":
            return float(1 / mpmath.sqrt(number))
        if name == "exp2":
            return float(mpmath.mpf(2) ** number)
        if name == "log2":
            return float(mpmath.log(number) / mpmath.log(2))
        if name == "cbrt":
            return float(mpmath.sign(number) * mpmath.cbrt(abs(number)))
        return float(getattr(mpmath, name)(number))


def inputs_of(block: int, size: int, inputs: int, device: str) -> "torch.Tensor":
    """Return block number ``block`` of ``inputs`` float32 numbers spread over all bit patterns."""
    import torch

    stride = ALL_INPUTS // inputs
    number = torch.arange(block * size, min((block + 1) * size, inputs), device=device)
    # The low bits of a sparse sweep vary as well: Knuth's multiplicative hash within the stride.
    bits = number * stride + (number * 2654435761) % stride
    return bits.to(torch.int32).view(torch.float32)


def measure(record: Record, name: str, x: "torch.Tensor", y: "torch.Tensor") -> None:
    """Add one block of inputs and results to a record."""
    import torch

    function, exact_name = {**references(), **composed()}[name]
    x, y = x.double(), y.double()
    true = function(x)
    size = true.abs()
    # A result at the edge of overflow may be the largest number or infinite.
    edge = (size - _OVERFLOW).abs() < 2.0**-20 * _OVERFLOW
    true = torch.where(
        size >= _OVERFLOW, torch.copysign(torch.full_like(true, math.inf), true), true
    )
    finite = true.isfinite() & y.isfinite()
    same = (true.isnan() & y.isnan()) | (true == y) | edge
    normal = finite & (size >= _NORMAL)
    near_zero = finite & (size < _NORMAL)
    off = near_zero & ((y - true).abs() > _NORMAL)
    wrong = (~finite & ~same) | off
    small_input = (x.abs() < _NORMAL) & (x != 0)
    _note_wrong(record, x, wrong & ~small_input)
    record.flushed += int((near_zero & (y == 0) & (size >= _SUBNORMAL)).sum())
    exponent = torch.frexp(size).exponent
    error = torch.where(normal, (y - true).abs() / torch.exp2((exponent - 24).double()), 0.0)
    subnormal = torch.where(small_input, error, 0.0)
    record.subnormal_ulp = max(record.subnormal_ulp, float(subnormal.max()))
    _refine(record, exact_name, x, y, torch.where(small_input, 0.0, error))


def _note_wrong(record: Record, x: "torch.Tensor", wrong: "torch.Tensor") -> None:
    count = int(wrong.sum())
    if count and not record.wrong:
        record.wrong_at = float(x[wrong][0]).hex()
    record.wrong += count


def _refine(
    record: Record, name: str, x: "torch.Tensor", y: "torch.Tensor", error: "torch.Tensor"
) -> None:
    """Measure the worst inputs of a block again, beyond the rounding of float64."""
    for place in error.topk(min(_WORST, error.numel())).indices.tolist():
        number, rough = float(x[place]), float(error[place])
        if rough == 0 or rough <= record.ulp - 2.0**-20:
            return
        true = exactly(name, number)
        ulp = abs(float(y[place]) - true) / 2.0 ** (math.frexp(true)[1] - 24) if true else 0.0
        if ulp > record.ulp:
            record.ulp, record.worst = ulp, number.hex()


def on_simulator() -> tuple[str, Evaluate]:
    """Return the device of the inputs, and how the simulator computes a function of them."""
    import torch
    import triton

    from trivet.ci import _sweep_kernels
    from trivet.simulator.executors import executor_named

    def host(x: torch.Tensor, y: torch.Tensor, name: str) -> None:
        grid = (triton.cdiv(x.numel(), _PROGRAM),)
        _sweep_kernels.unary[grid](x, y, x.numel(), NAME=name, BLOCK=_PROGRAM)

    def evaluate(name: str, x: torch.Tensor) -> torch.Tensor:
        y = torch.full_like(x, math.nan)
        run = executor_named("simulator").run(host, {"x": x, "y": y, "name": name})
        if run.error or run.faults:
            raise RuntimeError(f"{name}: {run.error or run.faults[0].text}")
        return y

    return "cpu", evaluate


def on_gpu() -> tuple[str, Evaluate]:
    """Return the device of the inputs, and how the GPU computes a function of them."""
    import torch
    import triton

    from trivet.ci import _sweep_kernels
    from trivet.simulator.gpu import require_gpu

    require_gpu()

    def evaluate(name: str, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), _PROGRAM),)
        _sweep_kernels.unary[grid](x, y, x.numel(), NAME=name, BLOCK=_PROGRAM)
        return y

    return "cuda", evaluate


DEVICES = {"simulator": on_simulator, "gpu": on_gpu}


class ResumeError(ValueError):
    """The file holds another sweep; the message says how the two differ."""


@dataclass
class Sweep:
    """A sweep in a file: what was asked for, and a record of each function."""

    path: Path
    on: str
    inputs: int
    block: int
    records: dict[str, Record]

    @classmethod
    def opened(cls, path: Path, on: str, inputs: int, block: int) -> "Sweep":
        """Go on with the sweep in ``path``, or begin one. Raises ResumeError for another one."""
        asked = {"on": on, "inputs": inputs, "block": block}
        records: dict[str, Record] = {}
        if path.exists():
            known = json.loads(path.read_text())
            for name, wanted in asked.items():
                if known[name] != wanted:
                    raise ResumeError(
                        f"{path} holds a sweep with {name} {known[name]}, not {wanted}: "
                        "choose another --out, or delete it"
                    )
            records = {name: Record(**entry) for name, entry in known["functions"].items()}
        return cls(path, on, inputs, block, records)

    @property
    def blocks(self) -> int:
        """How many blocks the inputs make."""
        return -(-self.inputs // self.block)

    def run(self, names: Sequence[str], note: Callable[[str], None]) -> None:
        """Sweep the functions called ``names``, saving after each block."""
        device, evaluate = DEVICES[self.on]()
        for name in names:
            record = self.records.setdefault(name, Record())
            while record.blocks < self.blocks:
                x = inputs_of(record.blocks, self.block, self.inputs, device)
                measure(record, name, x, evaluate(name, x))
                record.blocks += 1
                self.save()
                note(f"{name}: {record.blocks} of {self.blocks} blocks, {record.ulp:.4f} ulp")

    def save(self) -> None:
        """Write the file, whole."""
        about = environment(executor=self.on, profile="sweep", seed=0)
        document = {"version": 1, "environment": about, "on": self.on, "inputs": self.inputs}
        document |= {"block": self.block, "functions": _entries(self.records)}
        write_whole(self.path, json.dumps(document, indent=1))


def _entries(records: dict[str, Record]) -> dict[str, Any]:
    return {name: asdict(record) for name, record in records.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep and print a table; 1 where a result is wrong altogether, 2 for a bad request."""
    options = _options(arguments)
    names = options.functions.split(",") if options.functions else [*references()]
    known = {**references(), **composed()}
    unknown = sorted(set(names) - set(known))
    path = options.out or cache_folder("sweep") / f"{options.on}-{options.inputs}.json"
    try:
        if unknown:
            raise ResumeError(f"no function {unknown[0]}: expected {', '.join(known)}")
        sweep = Sweep.opened(path, options.on, options.inputs, options.block)
        sweep.run(names, lambda text: print(text, file=sys.stderr))
    except (ResumeError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    print(table({name: sweep.records[name] for name in names}), f"\n{path}")
    try:
        if options.keep:
            print(f"kept as {keep(path, PROFILE_OF[options.on]())}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return int(any(sweep.records[name].wrong for name in names))


def keep(path: Path, name: str, folder: Path = SWEEPS, inputs: int = ALL_INPUTS) -> Path:
    """Make the sweep in ``path`` the profile ``name``; ValueError where it is not whole or wrong.

    Functions that kernels compose are no functions of the device and are left out.
    """
    document = json.loads(path.read_text())
    own = {n: r for n, r in document["functions"].items() if n in references()}
    document["functions"] = own
    swept(PROFILES[name], document, inputs)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{name}.json", json.dumps(document, indent=1))
    profile_named.cache_clear()
    return folder / f"{name}.json"


def _profile_of_gpu() -> str:
    import torch

    from trivet.simulator.gpu import profile_of

    about = torch.cuda.get_device_properties(0)
    return profile_of(getattr(about, "gcnArchName", ""), torch.cuda.get_device_capability(0))


PROFILE_OF = {"simulator": lambda: "simulator", "gpu": _profile_of_gpu}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trivet.ci.sweep")
    parser.add_argument("--on", choices=[*DEVICES], default="simulator")
    parser.add_argument("--inputs", type=int, default=ALL_INPUTS, help="a power of two")
    parser.add_argument("--block", type=int, default=BLOCK, help="inputs at a time")
    parser.add_argument("--functions", default="", help="names, with commas between")
    parser.add_argument("--keep", action="store_true", help="derive bounds from this sweep")
    parser.add_argument("--out", type=Path, help="file to write, and to resume from")
    options = parser.parse_args(arguments)
    if not 0 < options.inputs <= ALL_INPUTS or options.inputs & (options.inputs - 1):
        parser.error(f"--inputs is a power of two up to {ALL_INPUTS}")
    return options


def table(records: dict[str, Record]) -> str:
    """Return a line for each function."""
    lines = [f"{'function':9} {'ulp':>8} {'at':>24} {'subnormal':>10} {'flushed':>9} {'wrong':>9}"]
    for name, record in records.items():
        lines.append(
            f"{name:9} {record.ulp:8.4f} {record.worst:>24} {record.subnormal_ulp:10.4g} "
            f"{record.flushed:9} {record.wrong:9}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
