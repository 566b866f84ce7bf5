"""Any sequence of steps, silences, recoveries and restarts: every invariant of phase 2 holds."""

from typing import Any

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.perceptions import simulated

from trivet.impl._controllers import DeadBuckets, RateScale, SmoothnessWeight, transition
from trivet.impl.optimiser import block_diagonal_step
from trivet.impl.routing import RoutingRecord, heads_compact, mask_init, tau_clamp

HORIZONS = (30, 100, 300, 1000)
WINDOW = 2


class Phase2:
    """Skip weights, time constants and all controllers, one step at a time."""

    def __init__(self, seed: int, H: int, N: int, M: int) -> None:
        random = torch.Generator().manual_seed(seed)
        self.tau = torch.exp(torch.rand(H, generator=random) * 11 - 4.6)
        w, m, v = torch.randn(3, N, H, generator=random)
        self.weights = [w, m, v.abs()]
        self.record = transition(self.tau, *self.weights, M)
        self.number = 0
        self._controllers(N)

    def _controllers(self, N: int) -> None:
        self.rates, self.dead = RateScale(N), DeadBuckets(N, window=WINDOW)
        self.smoothness = SmoothnessWeight(HORIZONS[:N], 2.0)

    def step(self, silent: int, K: int, labelled: bool) -> None:
        """One optimiser step, the clamp, and all observations, of numbers that the step decides."""
        N, H = self.weights[0].shape
        random = torch.Generator().manual_seed(self.number)
        self.number += 1
        self.smoothness_weight = self.smoothness.weights(self.rates)
        off = mask_init(self.record.bucket_of, N) == 0
        g = torch.where(off, torch.inf, torch.randn(N, H, generator=random))
        block_diagonal_step(
            self.weights[0], g, *self.weights[1:], self.record.bucket_of, 0.1, 0.9, 0.99, 0.0, 0.1,
            self.number, self.rates.multiplier,
        )  # fmt: skip
        self.tau = tau_clamp(self.tau, self.record.bucket_of, self.record.lo, self.record.hi)
        h = 1 + torch.rand(2, H, generator=random)
        h[:, self.record.bucket_of == silent] *= 1e-3
        self.record = self.dead.observe(h, self.record, self.tau, *self.weights)
        p = torch.rand(K, 2, N, generator=random)
        labels = (torch.rand(K, 2, N, generator=random) > 0.5).float()
        self.rates.observe(p, labels if labelled else torch.full_like(labels, torch.nan))

    def saved(self) -> dict[str, Any]:
        """Everything that a later step depends on, as copies."""
        controllers = (self.rates, self.dead, self.smoothness)
        return {
            "tau": self.tau.clone(),
            "weights": [each.clone() for each in self.weights],
            "record": {name: each.clone() for name, each in self.record.tensors().items()},
            "version": self.record.version,
            "number": self.number,
            "controllers": [each.state() for each in controllers],
        }

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> "Phase2":
        """A model that goes on from there, made anew."""
        fresh = cls.__new__(cls)
        fresh.tau = saved["tau"].clone()
        fresh.weights = [each.clone() for each in saved["weights"]]
        fresh.record = RoutingRecord(**saved["record"], version=saved["version"])
        fresh.number = saved["number"]
        fresh._controllers(len(fresh.weights[0]))
        controllers = (fresh.rates, fresh.dead, fresh.smoothness)
        for controller, state in zip(controllers, saved["controllers"], strict=True):
            controller.load(state)
        return fresh


def contents(value: Any) -> Any:
    """What is saved, in bytes."""
    if isinstance(value, torch.Tensor):
        return value.numpy().tobytes()
    if isinstance(value, dict):
        return {name: contents(each) for name, each in value.items()}
    return [contents(each) for each in value] if isinstance(value, list) else value


class Training(RuleBasedStateMachine):
    """Steps, silences and restarts in any order."""

    @initialize(
        seed=st.integers(0, 99), H=st.integers(4, 14), N=st.integers(1, 4), spare=st.integers(0, 3)
    )
    def begin(self, seed: int, H: int, N: int, spare: int) -> None:
        M = -(-H // N) + spare
        self.model: Phase2 = simulated(lambda: Phase2(seed, H, N, M))
        self.sizes = self.model.record.size.clone()
        self.kept = self.model.saved()
        self.version = 1

    @rule(count=st.integers(1, 3), K=st.sampled_from([1, 3]), labelled=st.booleans())
    def live(self, count: int, K: int, labelled: bool) -> None:
        """Steps in which every bucket is awake."""
        self._steps(count, -1, K, labelled)

    @rule(count=st.integers(2, 9), silent=st.integers(0, 3))
    def fall_silent(self, count: int, silent: int) -> None:
        """Steps in which one bucket is silent: up to three recoveries."""
        self._steps(count, silent, 2, True)

    def _steps(self, count: int, silent: int, K: int, labelled: bool) -> None:
        def run() -> None:
            for _ in range(count):
                self.model.step(silent, K, labelled)

        simulated(run)
        assert self.model.record.version >= self.version
        self.version = self.model.record.version

    @rule()
    def save(self) -> None:
        """Keep all of it."""
        self.kept = self.model.saved()

    @rule()
    def go_back(self) -> None:
        """Go on from what was kept."""
        self.model = Phase2.restored(self.kept)
        self.version = self.model.record.version

    @rule(silent=st.integers(-1, 3))
    def a_resumed_step_is_bitwise_the_same(self, silent: int) -> None:
        """One step of a copy and one of the model leave the same bytes."""
        twin = Phase2.restored(self.model.saved())

        def run() -> None:
            for each in (twin, self.model):
                each.step(silent, 2, True)

        simulated(run)
        assert contents(twin.saved()) == contents(self.model.saved())
        self.version = self.model.record.version

    @invariant()
    def off_bucket_is_zero_and_the_record_whole(self) -> None:
        """Params and moments +0.0 off bucket; mask, table, packed weights and sizes agree."""
        if not hasattr(self, "model"):
            return
        record, (w, *moments) = self.model.record, self.model.weights
        N, H = w.shape
        record.validate(channels=H)
        assert torch.equal(record.size, self.sizes)
        mask, packed = simulated(
            lambda: (mask_init(record.bucket_of, N), heads_compact(w, record)[0])
        )
        for buffer in (w, *moments):
            rest = torch.where(mask == 1, 0.0, buffer)
            assert rest.numpy().tobytes() == bytes(4 * N * H)
        channels = record.table[record.table >= 0].long()
        bucket = torch.nonzero(record.table >= 0)[:, 0]
        assert torch.equal(mask.argmax(0)[channels], bucket)
        assert torch.equal(packed[: len(channels)], w[bucket, channels])

    @invariant()
    def controllers_stay_within_their_ranges(self) -> None:
        """Rates in (0, 1], no weight for the shortest horizon, finite time constants."""
        if not hasattr(self, "model"):
            return
        rate = self.model.rates.multiplier
        assert ((rate > 0) & (rate <= 1)).all()
        assert self.model.tau.isfinite().all()
        assert (self.model.tau > 0).all()
        if self.model.number and hasattr(self.model, "smoothness_weight"):
            assert self.model.smoothness_weight[0] == 0
            assert (self.model.smoothness_weight >= 0).all()


Training.TestCase.settings = settings(
    max_examples=4,
    stateful_step_count=7,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestTraining = Training.TestCase
