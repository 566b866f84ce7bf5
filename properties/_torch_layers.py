"""Rules of ATen operations that are whole formulas: softmax, norms, activations, gradients."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from trivet.oracles._bounded import SLACK, Bounded, Origin
from trivet.oracles._dispatch import apply
from trivet.properties._torch_trace import NoRuleError, torch_rule


@torch_rule("_softmax", "_safe_softmax", "softmax")
def _softmax(x: Any, dim: int, half_to_float: Any = False) -> Any:
    return apply("softmax", x, axis=dim)


@torch_rule("_log_softmax", "log_softmax")
def _log_softmax(x: Any, dim: int, half_to_float: Any = False) -> Any:
    return apply("log_softmax", x, axis=dim)


@torch_rule("_softmax_backward_data")
def _softmax_backward(gradient: Any, output: Any, dim: int, dtype: Any = None) -> Any:
    """p (g - sum p g). Kernels also take the sum as sum o do, o = p v, where g = do v^T.

    Both sum the products p_j do_d v_jd over j and d, in another order: as many roundings of
    sum p |do| |v|, where the first form rounds by sum p |g| in its outer sum.
    """
    total = apply("sum", apply("multiply", output, gradient), axis=dim, keepdims=True)
    if gradient.origin is not None and gradient.origin.kind == "product":
        context = total.context
        size = np.abs(output.value) + output.error
        first, second = (np.abs(part.value) + part.error for part in gradient.origin.operands)
        reach = (first @ second).reshape(gradient.shape)
        spare = (size * np.maximum(reach - np.abs(gradient.value), 0)).sum(dim, keepdims=True)
        own = context.own("sum", context.gamma(context.depth(output.shape[dim]) + 1) * spare)
        total.error = total.error + own * SLACK
    return apply("multiply", output, apply("subtract", gradient, total))


@torch_rule("_log_softmax_backward_data")
def _log_softmax_backward(gradient: Any, output: Any, dim: int, dtype: Any = None) -> Any:
    return gradient - apply("exp", output) * apply("sum", gradient, axis=dim, keepdims=True)


@torch_rule("sigmoid_backward")
def _sigmoid_backward(gradient: Any, output: Any) -> Any:
    return gradient * output * (1.0 - output)


@torch_rule("tanh_backward")
def _tanh_backward(gradient: Any, output: Any) -> Any:
    return gradient * (1.0 - output * output)


@torch_rule("threshold_backward")
def _threshold_backward(gradient: Any, x: Any, threshold: Any) -> Any:
    return apply("where", apply("less_equal", x, threshold), 0.0, gradient)


@torch_rule("silu_backward")
def _silu_backward(gradient: Any, x: Any) -> Any:
    s = apply("sigmoid", x)
    return gradient * (s * (1.0 + x * (1.0 - s)))


@torch_rule("gelu")
def _gelu(x: Any, approximate: str = "none") -> Any:
    return apply("gelu", x, approximate)


@torch_rule("softplus")
def _softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """Above the threshold torch returns x itself, off by log1p(exp(-threshold)) / beta."""
    scaled = x if beta == 1 else x * beta
    result = apply("softplus", scaled)
    return result if beta == 1 else result / beta


@torch_rule("softplus_backward")
def _softplus_backward(gradient: Any, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    return gradient * apply("sigmoid", x if beta == 1 else x * beta)


@torch_rule("log_sigmoid_forward")
def _log_sigmoid(x: Any) -> Any:
    return apply("negative", apply("softplus", apply("negative", x))), np.zeros(0)


@torch_rule("leaky_relu")
def _leaky_relu(x: Any, slope: Any = 0.01) -> Any:
    return apply("where", apply("greater", x, 0.0), x, x * slope)


@torch_rule("elu")
def _elu(x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    below = apply("expm1", x * input_scale) * alpha
    result = apply("where", apply("greater", x, 0.0), x, below)
    return result if scale == 1 else result * scale


@torch_rule("native_layer_norm")
def _layer_norm(x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: Any) -> Any:
    """(x - mean) / sqrt(var + eps) * weight + bias, the mean, and the reciprocal root."""
    axes = tuple(range(-len(shape), 0))
    mean = apply("mean", x, axis=axes, keepdims=True)
    difference = x - mean
    variance = apply("mean", difference * difference, axis=axes, keepdims=True)
    root = apply("rsqrt", variance + eps)
    result = difference * root
    result = result if weight is None else result * weight
    return (result if bias is None else result + bias), mean, root


@torch_rule("native_layer_norm_backward")
def _layer_norm_backward(
    gradient: Any, x: Any, shape: Sequence[int], mean: Any, root: Any, weight: Any, *_: Any
) -> Any:
    """(g - mean(g) - y mean(g y)) root with g = gradient * weight and y = (x - mean) root."""
    axes = tuple(range(-len(shape), 0))
    rows = tuple(range(x.ndim - len(shape)))
    normal = (x - mean) * root
    g = gradient if weight is None else gradient * weight
    part = apply("mean", g * normal, axis=axes, keepdims=True)
    result = (g - apply("mean", g, axis=axes, keepdims=True) - normal * part) * root
    sums = (apply("sum", each, axis=rows) for each in (gradient * normal, gradient))
    return (result, *sums)


@torch_rule("_fused_rms_norm")
def _rms_norm(x: Any, shape: Sequence[int], weight: Any, eps: Any) -> Any:
    """x / sqrt(mean(x^2) + eps) * weight, and the reciprocal root."""
    axes = tuple(range(-len(shape), 0))
    eps = 2.0**-52 if eps is None else eps
    root = apply("rsqrt", apply("mean", x * x, axis=axes, keepdims=True) + eps)
    result = x * root
    return (result if weight is None else result * weight), root


@torch_rule("_scaled_dot_product_flash_attention_for_cpu")
def _attention(
    q: Any, k: Any, v: Any, dropout: float = 0.0, is_causal: bool = False, **options: Any
) -> Any:
    """softmax(q k^T scale + mask) v, and the log-sum-exp of each row."""
    if dropout:
        raise NoRuleError("dropout")
    scale = options.get("scale")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = apply("matmul", q, apply("swapaxes", k, -1, -2)) * scale
    if is_causal:
        seen = np.tri(scores.shape[-2], scores.shape[-1], dtype=bool)
        scores = apply("where", seen, scores, -math.inf)
    mask = options.get("attn_mask")
    scores = scores if mask is None else scores + mask
    weights = apply("softmax", scores, axis=-1)
    return apply("matmul", weights, v), apply("logsumexp", scores, axis=-1)


@torch_rule("nll_loss_forward")
def _nll_loss(x: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
    """-x[target], by row, summed or averaged over the rows that are not ignored."""
    if weight is not None or x.ndim != 2:
        raise NoRuleError("weights, or more than rows of classes")
    kept = target != ignored
    chosen = -x[np.arange(x.shape[0]), np.where(kept, target, 0)]
    losses = apply("where", kept, chosen, 0.0)
    count = np.asarray(float(kept.sum()))
    if reduction == 0:
        return losses, count
    total = apply("sum", losses)
    return (total if reduction == 2 else total / float(count)), count


@torch_rule("mse_loss")
def _mse_loss(x: Any, target: Any, reduction: int = 1) -> Any:
    squares = apply("square", x - target)
    return squares if reduction == 0 else apply("mean" if reduction == 1 else "sum", squares)


@torch_rule("mm", "bmm")
def _product(first: Any, second: Any) -> Any:
    """A matrix product that remembers its factors, for `_softmax_backward`."""
    result = apply("matmul", first, second)
    if isinstance(first, Bounded) and isinstance(second, Bounded):
        result.origin = Origin("product", (first, second))
    return result
