"""Cross entropy per horizon: means over the present labels alone."""

import numpy as np

from trivet import Contract, Tensor
from trivet.impl import losses as kernels
from trivet.oracles import losses as oracles
from trivet.properties._expect import at_most, interval, near, same_bits
from trivet.properties.losses.inputs import (
    BAD_LABELS,
    LABELS,
    LOGITS,
    PER_HORIZON,
    SERIES,
    STAGES,
    Array,
    Rerun,
)

losses_bce_multi_horizon = Contract(
    kernel=kernels.bce_multi_horizon,
    oracles=[oracles.bce_multi_horizon, oracles.bce_multi_horizon_scalar],
    dims=SERIES,
    args={"logits": LOGITS, "labels": LABELS, **STAGES},
    outputs={"loss": PER_HORIZON},
    backward=kernels.bce_multi_horizon_backward,
    raises=BAD_LABELS,
)

losses_bce_multi_horizon_backward = Contract(
    kernel=kernels.bce_multi_horizon_backward,
    oracles=[oracles.bce_multi_horizon_backward, oracles.bce_multi_horizon_backward_scalar],
    dims=SERIES,
    args={"g_loss": PER_HORIZON, "logits": LOGITS, "labels": LABELS, **STAGES},
    outputs={"dlogits": Tensor("K B N")},
    raises=BAD_LABELS,
)


@losses_bce_multi_horizon.law
def entropy_is_not_negative(out: Array) -> None:
    """Every term is a sum of non-negative ones."""
    at_most(-out, np.zeros_like(out), "-loss")


@losses_bce_multi_horizon.law
def a_horizon_without_labels_has_loss_zero(out: Array, labels: Array, rerun: Rerun) -> None:
    """Where no label is present the loss is +0.0, and it does not concern the other horizons."""
    empty = np.isnan(labels).all(axis=(0, 1))
    same_bits(out[empty], np.zeros(int(empty.sum())), "loss of a horizon without labels")
    first_gone = labels.copy()
    first_gone[:, :, 0] = np.nan
    again = rerun(labels=first_gone)
    same_bits(again[0], np.zeros(()), "loss of horizon 0 without its labels")
    same_bits(again[1:], out[1:], "loss of the other horizons")


@losses_bce_multi_horizon.law
def mirroring_labels_and_logits_changes_nothing(logits: Array, labels: Array, rerun: Rerun) -> None:
    """Rise and fall are alike: logits -x with labels 1 - y have the same loss, in the bound."""
    # On this grid 1 - y is exact.
    fine = np.round(labels * 2**20) / 2**20
    once, mirrored = rerun(labels=fine), rerun(logits=-logits, labels=1 - fine)
    _, error = interval(oracles.bce_multi_horizon, logits=logits, labels=fine)
    near(mirrored, once, 2 * error, "loss of mirrored labels")


@losses_bce_multi_horizon_backward.law
def absent_labels_have_zero_gradient(
    out: Array, logits: Array, labels: Array, rerun: Rerun
) -> None:
    """+0.0 at absent labels, whatever the logit there; the others do not see it."""
    absent = np.isnan(labels)
    same_bits(out[absent], np.zeros(int(absent.sum())), "gradient at an absent label")
    spoiled = rerun(logits=np.where(absent, np.nan, logits))
    same_bits(spoiled, out, "gradient beside a NaN logit")
