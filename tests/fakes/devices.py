"""A device with a clock of its own: launches run in the simulator, time is what the test says."""

from trivet.ci.timing.device import Peaks
from trivet.simulator.executors import Simulator


class Moment:
    def __init__(self, seconds):
        self.seconds = seconds

    def __sub__(self, earlier):
        return self.seconds - earlier.seconds


class FakeDevice:
    """``costs`` gives the seconds of a call by the launched function; ``calls`` counts them."""

    name = "a fake device"
    place = "cpu"
    executor = "simulator"
    large = False
    peaks = Peaks(bytes=1e12, matrix=1e15, vector=1e14)

    def __init__(self, costs=lambda launch, call: 1e-5, simulated=True):
        self.costs = costs
        self.simulated = simulated
        self.now = 0.0
        self.calls = 0
        self.flushed = 0

    def stamp(self):
        return Moment(self.now)

    def flush(self):
        self.flushed += 1

    def wait(self):
        pass

    def compiled(self, function):
        return function

    def call(self, launch, arguments):
        self.calls += 1
        self.now += self.costs(launch, self.calls)
        if not self.simulated:
            return launch(**arguments)
        run = Simulator(sanitize=False).run(launch, arguments)
        if run.error is not None:
            raise run.error
        return run.outputs
