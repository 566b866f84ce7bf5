"""The conventional tests of this folder as a pytest suite, one test a kernel.

    trivet audit examples/test_softmax.py --tests "pytest examples/conventional/suite.py -k softmax"

Without a GPU run it by `trivet run -- pytest examples/conventional/suite.py`.
"""

import importlib.util
from pathlib import Path

import pytest

from trivet.properties._collect import find

HERE = Path(__file__).resolve().parent
NAMES = sorted(file.stem for file in HERE.glob("*.py") if file != Path(__file__).resolve())


def kernel_of(name):
    """Return the host function of an example, or of a shipped contract."""
    family, _, kernel = name.partition("_")
    if importlib.util.find_spec(f"trivet.impl.{family}") is not None:
        [found] = find([f"{family}.{kernel}"])
    else:
        files = [str(file) for file in HERE.parent.glob("test_*.py")]
        [found] = [each for each in find(files) if each.name == name]
    return found.contract.kernel


@pytest.mark.parametrize("name", NAMES)
def test_conventional(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.conventional(kernel_of(name))
