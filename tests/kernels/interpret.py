"""Run every identity case under Triton's interpreter: python interpret.py FILE.npz PROGRAMS SEED.

TRITON_INTERPRET=1 must be set; arrays are stored as ``kernel.output``.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import torch

from trivet.ci import _race_kernels


def load(path):
    spec = importlib.util.spec_from_file_location("identity", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(target, programs, seed):
    identity = load(Path(__file__).with_name("identity.py"))
    torch.set_num_threads(1)
    results = {}
    cases = [_race_kernels.build(name, programs, seed) for name in _race_kernels.NAMES]
    for case in cases + identity.cases(programs, seed):
        tensors = {
            name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            for name, value in case.arguments.items()
        }
        case.kernel[case.grid](**tensors, **case.constexprs)
        for name in case.outputs:
            results[f"{case.name}.{name}"] = tensors[name].numpy()
    np.savez(target, **results)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
