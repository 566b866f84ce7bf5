"""Operators of liger-kernel as contracts: forward, and backward through autograd.

The oracles are the operators' definitions; shapes are small, as every law runs them many times.
Importing this module needs the project's packages on the path (`operators`).
"""

from typing import Any

import torch
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.dyt import liger_dyt_bwd, liger_dyt_fwd
from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.group_norm import LigerGroupNormFunction
from liger_kernel.ops.jsd import LigerJSDFunction
from liger_kernel.ops.kl_div import LigerKLDivLossFunction
from liger_kernel.ops.layer_norm import LigerLayerNormFunction
from liger_kernel.ops.poly_norm import LigerPolyNormFunction
from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.rope import LigerRopeFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction
from liger_kernel.ops.tvd import LigerTVDLossFunction

from trivet import Contract, Precision, Tensor, integers, reals, sizes
from trivet.simulator.cuda import cuda_on_cpu

_EPS = float(torch.tensor(1e-6))
_ROWS = {"M": sizes(1, 12), "N": sizes(1, 300)}
_ROW = Tensor("M N")
_WIDTH = Tensor("N")
# Sums over rows are added up by however many programs there are.
_ANY_ORDER = Precision(order="any")


def _contract(kernel: Any, oracle: Any, args: Any, dims: Any = None, **fields: Any) -> Contract:
    """Return a contract with rows of any width and gradients by autograd."""
    dims = dims or _ROWS
    return Contract(kernel, [oracle], dims=dims, args=args, backward="autograd", **fields)


def _softmax(x: torch.Tensor) -> Any:
    return LigerSoftmaxFunction.apply(x)


def _softmax_defined(m: Any, x: Any) -> Any:
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def _swiglu(a: torch.Tensor, b: torch.Tensor) -> Any:
    return LigerSiLUMulFunction.apply(a, b)


def _swiglu_defined(m: Any, a: Any, b: Any) -> Any:
    return a * m.sigmoid(a) * b


def _geglu(a: torch.Tensor, b: torch.Tensor) -> Any:
    return LigerGELUMulFunction.apply(a, b)


def _geglu_defined(m: Any, a: Any, b: Any) -> Any:
    inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    return 0.5 * a * (1 + m.tanh(inner)) * b


def _relu_squared(x: torch.Tensor) -> Any:
    return LigerReLUSquaredFunction.apply(x)


def _relu_squared_defined(m: Any, x: Any) -> Any:
    kept = m.maximum(x, 0.0)
    return kept * kept


def _rms_norm(x: torch.Tensor, weight: torch.Tensor) -> Any:
    return LigerRMSNormFunction.apply(x, weight, 1e-6, 0.0, "llama", False)


def _rms(m: Any, x: Any) -> Any:
    return x / m.sqrt(m.mean(x * x, axis=-1, keepdims=True) + _EPS)


def _rms_norm_defined(m: Any, x: Any, weight: Any) -> Any:
    return _rms(m, x) * weight


def _fused_add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> Any:
    return LigerFusedAddRMSNormFunction.apply(x, residual, weight, 1e-6, 0.0, "llama", False)


def _fused_add_rms_norm_defined(m: Any, x: Any, residual: Any, weight: Any) -> Any:
    total = x + residual
    return _rms(m, total) * weight, total


def _layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> Any:
    return LigerLayerNormFunction.apply(x, weight, bias, 1e-6)


def _layer_norm_defined(m: Any, x: Any, weight: Any, bias: Any) -> Any:
    centred = x - m.mean(x, axis=-1, keepdims=True)
    variance = m.var(x, axis=-1, keepdims=True)
    return centred / m.sqrt(variance + _EPS) * weight + bias


def _group_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> Any:
    channels = x.shape[1]
    return LigerGroupNormFunction.apply(x, weight, bias, channels, channels // 2, 1e-6)


def _group_norm_defined(m: Any, x: Any, weight: Any, bias: Any) -> Any:
    B, C, H = x.shape
    rows = x.reshape((B, C // 2, 2 * H))
    centred = rows - m.mean(rows, axis=-1, keepdims=True)
    variance = m.var(rows, axis=-1, keepdims=True)
    normal = (centred / m.sqrt(variance + _EPS)).reshape((B, C, H))
    return normal * weight.reshape((1, C, 1)) + bias.reshape((1, C, 1))


def _poly_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> Any:
    return LigerPolyNormFunction.apply(x, weight, bias, 1e-6, False)


def _poly_norm_defined(m: Any, x: Any, weight: Any, bias: Any) -> Any:
    powers = (x * x * x, x * x, x)
    terms = [weight[i] * _rms(m, power) for i, power in enumerate(powers)]
    return terms[0] + terms[1] + terms[2] + bias


class _DyT(torch.autograd.Function):
    """The project's two passes, shown the device without which the second one does not run."""

    @staticmethod
    def forward(ctx: Any, *arguments: torch.Tensor) -> Any:
        ctx.save_for_backward(*arguments)
        return liger_dyt_fwd(*arguments)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        with cuda_on_cpu():
            return liger_dyt_bwd(gradients[0].contiguous(), *ctx.saved_tensors)


def _dyt(x: torch.Tensor, alpha: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> Any:
    return _DyT.apply(x, alpha, gamma, beta)  # type: ignore[no-untyped-call]


def _dyt_defined(m: Any, x: Any, alpha: Any, gamma: Any, beta: Any) -> Any:
    return gamma * m.tanh(alpha * x) + beta


def _cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> Any:
    # Its forward pass leaves the gradient in the logits.
    return LigerCrossEntropyFunction.apply(
        logits.clone(), target, None, -100, 0.0, 0.0, "mean", None, False, False, False
    )[0]


def _cross_entropy_defined(m: Any, logits: Any, target: Any) -> Any:
    highest = m.max(logits, axis=-1, keepdims=True)
    total = m.log(m.sum(m.exp(logits - highest), axis=-1, keepdims=True)) + highest
    own = m.take_along_axis(logits, target[:, None], axis=-1)
    return m.mean(total - own)


def _kl_div(log_p: torch.Tensor, q: torch.Tensor) -> Any:
    return LigerKLDivLossFunction.apply(log_p, q.detach(), "batchmean", False, 1e-10)


def _kl_div_defined(m: Any, log_p: Any, q: Any) -> Any:
    return m.sum(q * (m.log(q) - log_p)) / log_p.shape[0]


def _jsd(log_q: torch.Tensor, log_p: torch.Tensor) -> Any:
    return LigerJSDFunction.apply(log_q, log_p.detach(), None, 0.5, -100, None, None)


def _jsd_defined(m: Any, log_q: Any, log_p: Any) -> Any:
    q, p = m.exp(log_q), m.exp(log_p)
    log_middle = m.log(0.5 * p + 0.5 * q)
    terms = 0.5 * p * (log_p - log_middle) + 0.5 * q * (log_q - log_middle)
    return m.sum(terms) / log_q.shape[0]


def _tvd(p: torch.Tensor, q: torch.Tensor) -> Any:
    return LigerTVDLossFunction.apply(p, q.detach(), None, "batchmean", -100)


def _tvd_defined(m: Any, p: Any, q: Any) -> Any:
    return m.sum(0.5 * m.abs(p - q)) / p.shape[0]


def _rope(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
    # Rotates its arguments in place, and takes them as the transposed views that models make.
    q, k = q.clone().transpose(1, 2), k.clone().transpose(1, 2)
    q, k = LigerRopeFunction.apply(q, k, cos.detach(), sin.detach(), None, 1)
    return q.transpose(1, 2), k.transpose(1, 2)


def _rotated(m: Any, x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    turned = m.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos[:, :, None] + turned * sin[:, :, None]


def _rope_defined(m: Any, q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return _rotated(m, q, cos, sin), _rotated(m, k, cos, sin)


def _same_halves(table: Any) -> Any:
    table[..., table.shape[-1] // 2 :] = table[..., : table.shape[-1] // 2]
    return table


_angles = Tensor("1 T 2*D", domain=reals(-1, 1).map(_same_halves))
_logarithms = Tensor("M N", domain=reals(-20, -1))
_probabilities = Tensor("M N", domain=reals(2**-10, 1))

softmax = _contract(_softmax, _softmax_defined, {"x": Tensor("M N", domain=reals(-1e3, 1e3))})
swiglu = _contract(_swiglu, _swiglu_defined, {"a": _ROW, "b": _ROW})
geglu = _contract(_geglu, _geglu_defined, {"a": _ROW, "b": _ROW})
relu_squared = _contract(_relu_squared, _relu_squared_defined, {"x": _ROW})
rms_norm = _contract(
    _rms_norm, _rms_norm_defined, {"x": _ROW, "weight": _WIDTH}, precision=_ANY_ORDER
)
fused_add_rms_norm = _contract(
    _fused_add_rms_norm,
    _fused_add_rms_norm_defined,
    {"x": _ROW, "residual": _ROW, "weight": _WIDTH},
    precision=_ANY_ORDER,
)
layer_norm = _contract(
    _layer_norm,
    _layer_norm_defined,
    {"x": _ROW, "weight": _WIDTH, "bias": _WIDTH},
    precision=_ANY_ORDER,
)
group_norm = _contract(
    _group_norm,
    _group_norm_defined,
    {"x": Tensor("B 2*G H"), "weight": Tensor("2*G"), "bias": Tensor("2*G")},
    {"B": sizes(1, 4), "G": sizes(1, 5), "H": sizes(1, 100)},
    precision=_ANY_ORDER,
)
poly_norm = _contract(
    _poly_norm,
    _poly_norm_defined,
    {"x": _ROW, "weight": Tensor("3"), "bias": Tensor("")},
    precision=_ANY_ORDER,
)
dyt = _contract(
    _dyt,
    _dyt_defined,
    {"x": _ROW, "alpha": Tensor("1"), "gamma": _WIDTH, "beta": _WIDTH},
    precision=_ANY_ORDER,
)
cross_entropy = _contract(
    _cross_entropy,
    _cross_entropy_defined,
    {
        "logits": Tensor("M N", domain=reals(-50, 50)),
        "target": Tensor("M", dtypes=("int64",), domain=integers(0, "N - 1")),
    },
)
kl_div = _contract(_kl_div, _kl_div_defined, {"log_p": _logarithms, "q": _probabilities})
jsd = _contract(_jsd, _jsd_defined, {"log_q": _logarithms, "log_p": _logarithms})
tvd = _contract(_tvd, _tvd_defined, {"p": _probabilities, "q": _probabilities})
rope = _contract(
    _rope,
    _rope_defined,
    {"q": Tensor("B T H 2*D"), "k": Tensor("B T H 2*D"), "cos": _angles, "sin": _angles},
    {"B": sizes(1, 3), "H": sizes(1, 4), "T": sizes(1, 9), "D": sizes(1, 16)},
)
