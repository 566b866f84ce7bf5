"""Print a digest of what the machine computes for every identity case, in native arithmetic."""

import hashlib
import importlib.util
import json
from pathlib import Path

import numpy as np

from trivet.ci import _race_kernels
from trivet.simulator.arithmetic import Native

PROGRAMS, SEED = 20, 5


def load(name):
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digests():
    """Digest of the outputs of each kernel, by name."""
    runner, identity = load("runner"), load("identity")
    cases = [_race_kernels.build(name, PROGRAMS, SEED) for name in _race_kernels.NAMES]
    found = {}
    for case in cases + identity.cases(PROGRAMS, SEED):
        report = runner.run(case.kernel, case.grid, case.arguments, case.constexprs)
        assert report.faults == []
        content = b"".join(case.arguments[name].tobytes() for name in case.outputs)
        found[case.name] = hashlib.sha256(content).hexdigest()
    return {**found, **functions(Native())}


def functions(arithmetic):
    """Digests of float32 functions over values of every magnitude."""
    rng = np.random.default_rng(SEED)
    values = (rng.standard_normal(9973) * 2.0 ** rng.integers(-20, 7, 9973)).astype(np.float32)
    found = {}
    with np.errstate(all="ignore"):
        for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "rsqrt", "expm1"):
            result = arithmetic.unary(name, "f32")(values)
            result[np.isnan(result)] = 0
            found[name] = hashlib.sha256(result.tobytes()).hexdigest()
        for name in ("arith.maxnumf", "arith.minimumf", "math.powf"):
            zeros = np.where(rng.random(9973) < 0.5, np.float32(-0.0), np.float32(0.0))
            result = arithmetic.binary(name, "f32")(
                np.where(values > 1, values, zeros), zeros[::-1]
            )
            found[name] = hashlib.sha256(result.tobytes()).hexdigest()
    return found


if __name__ == "__main__":
    print(json.dumps(digests()))
