"""What is timed: sizes near production, calls as users make them, rivals that do the same work."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.fakes.devices import FakeDevice
from tests.tiny import contract_of, doubled

from trivet import sizes
from trivet.ci.timing import rivals
from trivet.ci.timing.base import base_kernel
from trivet.ci.timing.paired import tensors
from trivet.ci.timing.subjects import rivals_of, subject
from trivet.impl import cfc
from trivet.oracles._evaluate import evaluate
from trivet.properties._collect import Found, find, shipped
from trivet.properties._production import drawn_inputs, scaled_case

SMALL = 1 << 10
CONTRACTS = {found.name: found for found in shipped()}
RIVALS = [
    name
    for name in CONTRACTS
    if (Path(rivals.__path__[0]) / f"{name.partition('.')[0]}.py").exists()
    and [*rivals_of(name, FakeDevice())]
]


def found_of(kernel, **fields):
    return Found("tiny.doubled", contract_of(kernel, **fields), Path("tiny.py"), "doubled", "")


def test_sizes_are_halved_from_production_until_they_fit():
    contract = contract_of(doubled, dims={"N": sizes(0, 100, production=2**31 + 9)})
    assert scaled_case(contract, "float32", elements=5000).dims == {"N": 4096}
    assert scaled_case(contract_of(doubled), "float32", elements=50).dims == {"N": 100}


def test_inputs_differ_by_seed_and_come_back_by_it():
    contract = contract_of(doubled)
    case = scaled_case(contract, "float32", elements=SMALL)
    one, again, other = (
        drawn_inputs(contract, case, "float32", seed=seed)["x"] for seed in (0, 0, 1)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_kernel_is_called_as_users_call_it():
    prepared = subject(CONTRACTS["cfc.step"], FakeDevice(), elements=SMALL)
    assert "block_k" not in prepared.inputs(0)
    assert prepared.bytes > 0
    assert prepared.label.startswith("cfc.step[float32] B=")
    assert set(prepared.rivals) == {"torch", "torch.compile"}


def test_a_kernel_without_rivals_has_none():
    assert [*rivals_of("no_such_family.kernel", FakeDevice())] == []
    assert [*rivals_of("cfc.no_such_kernel", FakeDevice())] == []


def outputs_of(name, function):
    """Results of a rival in float64, and of the oracle with its bounds, on the same numbers."""
    contract = CONTRACTS[name].contract
    case = scaled_case(contract, "float32", elements=SMALL)
    given = drawn_inputs(contract, case, "float32", seed=3)
    arrays = {
        k: v.double().numpy() if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        for k, v in given.items()
    }
    oracle = contract.oracles[0]
    wanted = {k: v for k, v in arrays.items() if k in inspect.signature(oracle).parameters}
    double = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
    taken = inspect.signature(function).parameters
    mine = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in double.items()}
    returned = tensors(function(**{k: v for k, v in mine.items() if k in taken}))
    inout = [k for k, arg in contract.tensors().items() if arg.role != "in"]
    return returned or [mine[k] for k in inout], evaluate(oracle, wanted)


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_does_the_same_work(name):
    family, _, kernel = name.partition(".")
    module = __import__(f"trivet.ci.timing.rivals.{family}", fromlist=["_"])
    results, values = outputs_of(name, getattr(module, kernel))
    assert len(results) == len(values) > 0
    for result, value in zip(results, values, strict=True):
        got = result.detach().numpy()
        assert got.shape == value.value.shape
        assert (np.abs(got - value.value) <= value.error).all()


def test_there_are_rivals_for_several_kernels():
    assert {"cfc.step", "optimiser.adamw", "losses.bce_multi_horizon"} <= set(RIVALS)


class Copied:
    """Another revision: the kernels' folder copied and changed."""

    def __init__(self, top, root):
        self.top, self.root = top, root

    def counterpart(self, path):
        return self.root / path.relative_to(self.top) if path.is_relative_to(self.top) else path


def test_a_base_kernel_comes_from_the_other_files_and_today_s_stay(tmp_path):
    import shutil

    home = Path(cfc.__file__).resolve().parent.parent
    shutil.copytree(home, tmp_path / "impl")
    forward = tmp_path / "impl" / "cfc" / "forward.py"
    forward.write_text(forward.read_text().replace("out = torch.empty_like(h)", "return h + 5"))
    base = base_kernel(cfc.step, Copied(home.parent, tmp_path))
    x = torch.zeros(2, 3)
    h, dt, tau, b = torch.zeros(2, 4), torch.ones(2), torch.ones(4), torch.zeros(4)
    given = (x, h, dt, torch.zeros(4, 3), torch.zeros(4, 4), b, tau)
    assert base(*given).tolist() == [[5.0] * 4] * 2
    assert "forward" in cfc.step.__module__
    from trivet.impl.cfc import forward as today

    assert today.step is cfc.step


def test_a_kernel_that_the_base_does_not_have_is_named(tmp_path):
    home = Path(cfc.__file__).resolve().parent.parent
    with pytest.raises(ValueError, match=r"the base has no __init__\.py"):
        base_kernel(cfc.step, Copied(home.parent, tmp_path))


def test_shipped_contracts_can_be_timed():
    timed = [subject(found, FakeDevice(), elements=SMALL) for found in find(["cfc.*"])]
    assert [each.name for each in timed] == [found.name for found in find(["cfc.*"])]
