"""Training: both phases against float64, every bucket moving, restarts that change nothing."""

import math

import pytest
import torch
from tests.perceptions import HORIZONS, SIZES, Reference, batch, simulated, trainer

from trivet.impl._perception.change import BucketWeights, UnchangedBucketError
from trivet.impl._perception.checkpoint import off_bucket
from trivet.impl._perception.inference import StepInference
from trivet.impl._perception.model import LONGEST, SHORTEST, PerceptionModel, Sizes
from trivet.impl.routing import heads_compact, mask_init

STEPS = 16
LR = 0.1


def test_an_overfit_batch_loses_half_its_loss_as_the_float64_model_does() -> None:
    own, given = trainer(lr=LR), batch(B=2, K=2)
    reference = Reference(own.model.weights())
    optimiser = torch.optim.AdamW(reference.parameters(), LR, weight_decay=0.0)
    wanted = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = reference.loss(given)
        loss.backward()
        wanted.append(loss.item())
        optimiser.step()
        reference.tau.data.clamp_(SHORTEST, LONGEST)
    got = simulated(lambda: [float(own.step(given).loss.sum()) for _ in range(STEPS)])
    assert min(got) < got[0] / 2
    assert min(wanted) < wanted[0] / 2
    # One rounding of the loss in float32, and of its 10 terms, apart before any step.
    assert abs(got[0] - wanted[0]) < 2**-24 * 64 * wanted[0]


def test_the_transition_hands_one_record_to_every_consumer() -> None:
    def run() -> None:
        own = trainer(transition_by=2)
        steps = [own.step(batch(step)) for step in range(3)]
        assert [(each.phase, each.transitioned) for each in steps] == [
            (1, False), (1, True), (2, False)
        ]  # fmt: skip
        record, model = own.model.record, own.model
        assert record is not None
        assert StepInference(model, 1).model.record is record
        assert own.checkpoint().record is record
        w_skip, *moments = own.moments.skip_weights()
        for buffer in (w_skip, *moments):
            assert not off_bucket(buffer, record.bucket_of).any()
        assert (mask_init(record.bucket_of, SIZES.N).sum(1) == record.size).all()
        assert torch.equal(model.w_compact, heads_compact(w_skip, record)[0])
        tau = model.tau.detach()
        bucket = record.bucket_of.long()
        assert ((tau >= record.lo[bucket]) & (tau <= record.hi[bucket])).all()

    simulated(run)


def test_controller_a_decides_where_no_step_is_set() -> None:
    own = trainer()
    own.clock.observe = lambda tau: True  # type: ignore[method-assign]
    assert simulated(lambda: own.step(batch()).transitioned)
    assert own.phase == 2


def test_a_step_of_phase_2_that_leaves_a_bucket_unchanged_raises() -> None:
    def run() -> None:
        own = trainer(transition_by=1)
        own.step(batch())
        own.step(batch(1))
        own.moments.step = lambda *_: None  # type: ignore[method-assign]
        with pytest.raises(UnchangedBucketError, match="step 3 left every weight of bucket 0"):
            own.step(batch(2))

    simulated(run)


def test_a_step_without_time_or_rate_may_leave_everything_unchanged() -> None:
    def run() -> None:
        own = trainer(transition_by=1)
        own.step(batch())
        own.moments.step = lambda *_: None  # type: ignore[method-assign]
        still = batch(2)
        own.step(still._replace(dt=0 * still.dt))
        own.step(still._replace(labels=torch.full_like(still.labels, torch.nan)))

    simulated(run)


def test_the_bucket_that_stood_still_is_named() -> None:
    def run() -> None:
        own = trainer(transition_by=1)
        own.step(batch())
        record, weights = own.model.record, own.model.weights()
        assert record is not None
        before = BucketWeights(weights, record)
        weights["b"].data[record.bucket_of == 0] += 1
        with pytest.raises(UnchangedBucketError, match="bucket 1 unchanged"):
            before.check(weights, 2)
        weights["W_rec"].data[record.bucket_of == 1, 0] += 1
        before.check(weights, 2)

    simulated(run)


def test_rates_of_the_skip_weights_obey_controller_c() -> None:
    """A horizon's step shrinks with its multiplier, and a multiplier of 1 changes no bit."""

    def moved(rate: torch.Tensor) -> torch.Tensor:
        own = trainer(transition_by=1)
        own.step(batch())
        own.rate_scale._state["rate"] = rate
        before = own.moments.skip_weights()[0].clone()
        own.step(batch(1))
        return (own.moments.skip_weights()[0] - before).abs().sum(1)

    plain, scaled = simulated(lambda: (moved(torch.ones(2)), moved(torch.tensor([0.25, 1.0]))))
    assert plain[1] == scaled[1]
    assert 0 < scaled[0] < plain[0] / 2


def test_time_constants_stay_in_their_first_range_in_phase_1() -> None:
    own = trainer(lr=10.0)
    simulated(lambda: own.step(batch()))
    assert ((own.model.tau >= SHORTEST) & (own.model.tau <= LONGEST)).all()


def test_step_inference_needs_a_record() -> None:
    with pytest.raises(ValueError, match="model must have a routing record"):
        StepInference(PerceptionModel(SIZES, 0), 1)


def test_step_inference_is_seeded_bitwise_and_starts_again_bitwise() -> None:
    def run() -> None:
        own = trainer(transition_by=1)
        own.step(batch())
        window, events = batch(1, K=3), batch(2, K=4)
        one, other = StepInference(own.model, 2), StepInference(own.model, 1)
        for each in (one, other):
            each.seed(window.x, window.dt)
        assert torch.equal(one.state, own.model(window.x, window.dt).states[-1])
        seen = [
            [each.step(events.x[:, t].contiguous(), events.dt[:, t].contiguous()) for t in range(4)]
            for each in (one, other)
        ]
        one.reset(2)
        one.seed(window.x, window.dt)
        seen.append(
            [one.step(events.x[:, t].contiguous(), events.dt[:, t].contiguous()) for t in range(4)]
        )
        for step in zip(*seen, strict=True):
            for outputs in zip(*step, strict=True):
                assert all(torch.equal(outputs[0], each) for each in outputs)

    simulated(run)


def test_step_inference_follows_a_record_that_is_published_later() -> None:
    """Kept launches would go on with the old record: they must be recorded anew."""

    def run() -> None:
        own = trainer(transition_by=1)
        own.step(batch())
        kept, events = StepInference(own.model, 2), batch(2, K=3)
        given = [(events.x[:, t].contiguous(), events.dt[:, t].contiguous()) for t in range(3)]
        kept.step(*given[0])
        kept.step(*given[1])
        record = own.model.record
        assert record is not None
        table = torch.tensor([[0, 1, 2], [3, 4, -1]], dtype=torch.int32)
        bucket_of = torch.tensor([0, 0, 0, 1, 1], dtype=torch.int32)
        own.model.publish(record.replace(table=table, bucket_of=bucket_of))
        fresh = StepInference(own.model, 2)
        fresh.state.copy_(kept.state)
        fresh.scan_states.copy_(kept.scan_states)
        assert torch.equal(kept.step(*given[2]).logits, fresh.step(*given[2]).logits)

    simulated(run)


@pytest.mark.parametrize(("name", "value"), [("x", "width"), ("dt", "sign")])
def test_step_inference_names_a_wrong_event(name: str, value: str) -> None:
    def run() -> None:
        own = trainer(transition_by=1)
        own.step(batch())
        kept = StepInference(own.model, 1)
        kept.step(torch.zeros(1, 3), torch.ones(1))
        x = torch.zeros(1, 4 if value == "width" else 3)
        with pytest.raises(ValueError, match=f"^{name} must"):
            kept.step(x, torch.full((1,), -1.0 if value == "sign" else 1.0))

    simulated(run)


@pytest.mark.parametrize("change", [{"S": 0}, {"M": 2}])
def test_sizes_that_cannot_be_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(change))} (must be|= 2 slots)"):
        Sizes(**{"D": 3, "H": 5, "S": 2, "N": 2, "E": 2, "M": 3} | change)


def test_the_smoothness_weight_reaches_the_loss() -> None:
    """With a base, longer horizons' gradients differ once jitter was seen; without, they do not."""

    def after(base: float) -> torch.Tensor:
        own = trainer(base=base)
        for step in range(3):
            own.step(batch(step))
        assert math.isfinite(float(own.smoothness_lambda().sum()))
        assert own.smoothness_lambda()[0] == 0
        return own.model.weights()["w_skip"].detach().clone()

    plain, smooth = simulated(lambda: (after(0.0), after(10.0)))
    assert len(HORIZONS) == 2
    assert not torch.equal(plain, smooth)
