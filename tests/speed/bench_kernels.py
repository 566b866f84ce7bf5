"""The shipped kernels on a GPU, one by one, stored by pytest-benchmark: `make bench-gpu`.

Times are those of events on the device, out of a cold cache, with other inputs each round. They
are kept to be looked at: a regression is judged by `trivet bench --timed`, in one process.
"""

import itertools

import pytest

from trivet.ci.timed import gate_of
from trivet.ci.timing.device import CudaDevice
from trivet.ci.timing.paired import SETS
from trivet.ci.timing.subjects import subject
from trivet.properties._collect import shipped
from trivet.simulator.gpu import NoGpuError

CONTRACTS = {found.name: found for found in shipped()}


@pytest.fixture(scope="session")
def device():
    try:
        return CudaDevice()
    except NoGpuError as error:
        pytest.skip(str(error))


def timed_on(device, benchmark, found):
    """Time one contract by the device's stamps; returns the subject."""
    prepared = subject(found, device)
    sets = [prepared.inputs(number) for number in range(SETS)]
    turn = itertools.cycle(sets)

    def fresh():
        mine = {k: v.clone() if hasattr(v, "clone") else v for k, v in next(turn).items()}
        device.flush()
        return (prepared.launch, mine), {}

    benchmark._timer = device.stamp
    benchmark.pedantic(device.call, setup=fresh, rounds=60, warmup_rounds=5)
    return prepared


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_kernel(benchmark, device, name):
    benchmark.group = name.partition(".")[0]
    found = CONTRACTS[name]
    red = gate_of(found, device.executor, found.contract.dtypes()[:1])
    if red:
        pytest.fail(f"{red}: a wrong result has no time")
    prepared = timed_on(device, benchmark, found)
    floor = device.peaks.floor(prepared.bytes) if device.peaks else 0
    if floor:
        benchmark.extra_info["times_floor"] = round(benchmark.stats.stats.median / floor, 2)
