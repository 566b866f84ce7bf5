"""Run pickled random programs under Triton's interpreter: python random_child.py FOLDER.

The folder holds ``programs.pickle`` and ``kernels.py``; arrays are stored in ``outputs.npz`` as
``kernel.argument``, and what a kernel raised as ``kernel.error``. TRITON_INTERPRET=1 must be set.
"""

import importlib.util
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from random_kernels import PROGRAMS


def interpreted(kernel, arguments):
    """Arrays after the launch, without those that are only read."""
    tensors = {name: torch.from_numpy(array) for name, array in arguments.items()}
    kernel[(PROGRAMS,)](*tensors.values())
    return {name: array for name, array in arguments.items() if name[0] != "x"}


def main(folder):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    spec = importlib.util.spec_from_file_location("kernels", folder / "kernels.py")
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    results = {}
    with np.errstate(all="ignore"):
        for program in pickle.loads((folder / "programs.pickle").read_bytes()):
            try:
                found = interpreted(getattr(kernels, program.name), program.arguments())
            except Exception as error:
                found = {"error": np.array(repr(error.__cause__ or error))}
            results |= {f"{program.name}.{name}": array for name, array in found.items()}
    np.savez(folder / "outputs.npz", **results)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
