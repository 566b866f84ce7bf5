"""Any sequence of steps, transitions, recoveries and restarts keeps every invariant."""

import torch
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.perceptions import HORIZONS, SIZES, batch, simulated, trainer

from trivet.impl._perception.checkpoint import Checkpoint, faults_of
from trivet.impl._perception.inference import StepInference
from trivet.impl._perception.trainer import Trainer
from trivet.impl.controllers.buckets import COUNTERS
from trivet.impl.routing import channels_in_bucket, heads_compact, mask_init


class Training(RuleBasedStateMachine):
    """A trainer that is stopped and started again at will, beside one that never is."""

    @initialize(
        seed=st.integers(0, 2**31 - 1),
        base=st.sampled_from([0.0, 1.0]),
        levels=st.lists(st.integers(0, 2), max_size=3),
    )
    def begin(self, seed: int, base: float, levels: list[int]) -> None:
        self.seed, self.base = seed, base
        self.straight, self.cut = (trainer(seed, base=base) for _ in range(2))
        if levels:
            self.each(Trainer._transition)
        for bucket, level in enumerate(levels):
            self.silence(bucket % SIZES.N, level)

    def each(self, change: object) -> None:
        """Do the same to both trainers."""
        simulated(lambda: [change(own) for own in (self.straight, self.cut)])  # type: ignore[operator]

    @rule()
    def step(self) -> None:
        """One more batch."""
        self.each(lambda own: own.step(batch(own.done)))

    @precondition(lambda self: self.straight.phase == 1)
    @rule()
    def transition(self) -> None:
        """Controller A fires."""
        self.each(Trainer._transition)

    @precondition(lambda self: self.straight.phase == 2)
    @rule(bucket=st.integers(0, SIZES.N - 1), level=st.integers(0, 2))
    def silence(self, bucket: int, level: int) -> None:
        """A step on which a bucket, dead for long, rises from this level."""

        def change(own: Trainer) -> None:
            state = own.dead.state()
            state["floor"][:] = torch.where(state["floor"] > 0, state["floor"], 1.0)
            state["floor"][bucket] = 1e6
            state["average"][:, bucket] = torch.tensor([0.1, 0.0, 0.0, 1.0, 0.1])
            state["counters"][COUNTERS.index("level"), bucket] = level
            state["counters"][COUNTERS.index("dead_run"), bucket] = 1000
            own.dead.load(state)
            own.step(batch(own.done))

        self.each(change)

    @rule()
    def restart(self) -> None:
        """A new process goes on from a checkpoint."""

        def go_on() -> Trainer:
            kept = self.cut.checkpoint()
            copied = {name: tensor.clone() for name, tensor in kept.tensors.items()}
            fresh = trainer(self.seed + 1, base=self.base)
            fresh.load(Checkpoint(copied, kept.record, kept.controllers, kept.counters))
            return fresh

        self.cut = simulated(go_on)

    @invariant()
    def a_restart_changes_nothing(self) -> None:
        """Parameters, moments, averages, counters and record, to the bit."""
        if not hasattr(self, "straight"):
            return
        one, other = (own.checkpoint() for own in (self.straight, self.cut))
        assert one.counters == other.counters
        pairs = [(one.tensors, other.tensors)]
        pairs += [(one.controllers[name], other.controllers[name]) for name in one.controllers]
        if one.record is not None:
            assert other.record is not None
            pairs.append((one.record.tensors(), other.record.tensors()))
        for own, again in pairs:
            for name in own:
                assert own[name].numpy().tobytes() == again[name].numpy().tobytes(), name

    @invariant()
    def one_record_at_every_consumer(self) -> None:
        """Masks, table, packed weights and checkpoint tell the same; off bucket all is +0.0."""
        if not hasattr(self, "straight") or self.straight.phase == 1:
            return

        def check() -> None:
            own, record = self.straight, self.straight.model.record
            assert record is not None
            assert not faults_of(own.checkpoint())
            assert own.checkpoint().record is StepInference(own.model, 1).model.record is record
            mask = mask_init(record.bucket_of, SIZES.N)
            assert torch.equal(mask.sum(1).int(), record.size)
            table = channels_in_bucket(record.bucket_of, *record.table.shape)
            assert torch.equal(table, record.table)
            packed = heads_compact(own.moments.skip_weights()[0], record)[0]
            assert torch.equal(own.model.w_compact, packed)
            assert len(HORIZONS) == len(record.size)

        simulated(check)


Training.TestCase.settings = settings(
    max_examples=6,
    stateful_step_count=5,
    # A sequence costs seconds: shrinking one would take minutes.
    phases=[Phase.generate],
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestTraining = Training.TestCase
