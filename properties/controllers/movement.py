"""How far the time constants moved, and how far the labels spread."""

import numpy as np

from trivet import Contract, Tensor, log_uniform, reals, sizes
from trivet.impl import controllers as kernels
from trivet.oracles import controllers as oracles
from trivet.properties._expect import at_most, interval, near, same_bits
from trivet.properties.controllers.inputs import PER_HORIZON, Array, Rerun, lengthened
from trivet.properties.decision.inputs import BLOCK, filled, widened
from trivet.properties.losses.inputs import SERIES, STAGES

SECONDS = Tensor("H", domain=log_uniform(1e-15, 1e15))

controllers_tau_change = Contract(
    kernel=kernels.tau_change,
    oracles=[oracles.tau_change, oracles.tau_change_scalar],
    dims={"H": sizes(1, 300, production=128)},
    args={"tau": SECONDS, "previous": SECONDS, "block_channels": BLOCK},
    outputs={"change": Tensor("1")},
    raises=(
        *((ValueError, "tau", filled("tau", bad)) for bad in (0.0, -1.0, np.nan, np.inf)),
        (ValueError, "previous", filled("previous", 0.0)),
        (ValueError, "previous", lengthened("previous")),
        (TypeError, "tau", widened("tau")),
    ),
)


@controllers_tau_change.law
def nothing_moved_is_no_change(tau: Array, rerun: Rerun) -> None:
    """Equal time constants have a change of exactly 0."""
    same_bits(rerun(previous=tau), np.zeros(1), "change of what did not move")


@controllers_tau_change.law
def there_and_back_is_as_far(out: Array, tau: Array, previous: Array, rerun: Rerun) -> None:
    """Exchanging before and after changes no bit."""
    same_bits(rerun(tau=previous, previous=tau), out, "change backwards")


@controllers_tau_change.law
def small_changes_keep_their_digits(previous: Array, rerun: Rerun) -> None:
    """A step of one part in 2^20 has its change to a few roundings, not to those of a logarithm.

    float32 holds previous (1 + 2^-20) to within 2^-24 relative, hence the step to within 1/16.
    """
    change = rerun(tau=(previous * (1 + 2.0**-20)).astype(np.float32).astype(float))
    step = np.log1p(2.0**-20)
    near(change, np.full(1, step), np.full(1, step / 8), "change of a small step")


@controllers_tau_change.law
def changes_beyond_float32_stay_finite(previous: Array, rerun: Rerun) -> None:
    """A quotient of 2^200 overflows float32; its logarithm does not."""
    tiny, huge = np.full_like(previous, 2.0**-100), np.full_like(previous, 2.0**100)
    far = np.full(1, 200 * np.log(2))
    # Both logarithms are rounded, and sums and mean of up to 300 equal numbers.
    slack = len(previous) * np.spacing(far.astype(np.float32)).astype(float)
    near(rerun(tau=huge, previous=tiny), far, slack, "change by a factor of 2^200")


def with_labels_missing(drawn: Array) -> Array:
    """Labels in [0, 1], NaN where the number drawn is negative; some horizons have none."""
    none = drawn[:1, :1] < -0.3
    return np.where((drawn < 0) | none, np.nan, drawn)


LABELS = Tensor("K B N", domain=reals(-0.5, 1).map(with_labels_missing))

controllers_label_deviation = Contract(
    kernel=kernels.label_deviation,
    oracles=[oracles.label_deviation, oracles.label_deviation_scalar],
    dims=SERIES,
    args={"labels": LABELS, **STAGES},
    outputs={"deviation": PER_HORIZON},
    raises=(
        (ValueError, "labels", filled("labels", 1.5)),
        (ValueError, "labels", filled("labels", -1e-6)),
        (ValueError, "labels", filled("labels", np.inf)),
        (TypeError, "labels", widened("labels")),
        (ValueError, "parts", {"parts": 0}),
    ),
)


@controllers_label_deviation.law
def deviation_is_nan_without_labels_alone(out: Array, bound: Array, labels: Array) -> None:
    """NaN says that no label is present; else it is from 0 to the largest possible, 1/2."""
    none = np.isnan(labels).all(axis=(0, 1))
    same_bits(np.where(none, out, 0.0), np.where(none, np.nan, 0.0), "deviation without labels")
    within = np.where(none, 0.25, out)
    at_most(-within, np.zeros_like(out), "-deviation")
    at_most(within, 0.5 + np.where(none, 0.0, bound), "deviation")


@controllers_label_deviation.law
def halves_have_half_a_deviation(labels: Array, rerun: Rerun) -> None:
    """As many labels of 1 as of 0 deviate by 1/2, within the bound; labels of 1/2 by exactly 0."""
    pairs = np.concatenate([np.zeros_like(labels), np.ones_like(labels)], axis=1)
    if labels.size:
        half, error = interval(oracles.label_deviation, labels=pairs)
        near(rerun(labels=pairs), half, error + np.spacing(np.float32(0.5)), "deviation of halves")
        at_most(np.abs(half - 0.5), error, "|deviation of halves - 1/2|")
        equal = np.full_like(labels, 0.5)
        same_bits(rerun(labels=equal), np.zeros(labels.shape[2]), "deviation of equal labels")


@controllers_label_deviation.law
def mirrored_labels_deviate_alike(labels: Array, rerun: Rerun) -> None:
    """Rise and fall are alike: 1 - label has the same deviation, within the bounds of both."""
    # On this grid 1 - label is exact.
    fine = np.round(labels * 2**20) / 2**20
    once, mirrored = rerun(labels=fine), rerun(labels=1 - fine)
    slack = sum(interval(oracles.label_deviation, labels=each)[1] for each in (fine, 1 - fine))
    near(mirrored, once, slack + np.spacing(np.float32(0.5)), "deviation of mirrored labels")
