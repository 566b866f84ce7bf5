"""Operations of torch as references use them: values of float64 torch, bounds for float32 torch."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from trivet import Precision
from trivet.oracles._accept import accept
from trivet.oracles._logic import Opaque, accept_logic
from trivet.properties._torch_reference import call_torch, evaluate_reference

I = torch.tensor([2, 0, 3, 3, 1])  # noqa: E741
GRID = torch.tensor([[0, 2, 1], [3, 3, 0], [1, 0, 2], [2, 1, 3]])
MASK = torch.tensor([[True, False, True, True, False, True]])


def filled(x):
    out = torch.zeros(x.shape, dtype=torch.float64)
    for row in range(x.shape[0]):
        out[row] = x[row] * (row + 1)
    out[:, 1:3] += x[:, :2]
    out[0, 0] = 0.5
    out.mul_(2)[1].add_(x[1])
    return out


def looped(x):
    total = torch.zeros(6)
    for row in x:
        total += row.double()
    return total


def scattered(x):
    out = x.new_zeros(4, 6)
    out.scatter_add_(1, GRID, x[:, :3])
    out[I] += 1.0
    return out.index_add(0, I, x[[0, 1, 2, 3, 0]])


def differentiated(x):
    x = x.double().detach().requires_grad_()
    y = (torch.softmax(x @ x.mT, -1) @ x).tanh().sum()
    return torch.autograd.grad(y, x)[0]


def backward_of_many(x):
    x = x.detach().requires_grad_()
    y = F.silu(x) * torch.sigmoid(x) + x[:, ::2].repeat(1, 2).cumsum(1) + F.layer_norm(x, (6,))
    y = y + x[I[:4]] + torch.where(x > 0, x, 0.1 * x) + x.pow(3) + F.softplus(x)
    (gradient,) = torch.autograd.grad(y.square().mean(), x)
    return gradient


# Each is an operation people write in references; x (4, 6), w (6, 5), v (6,), p > 0 (4, 6).
OPERATIONS = {
    "arithmetic": lambda x, w: (x + 1.5, x - 0.1, 2 - x, x * x, x / 3, 1 / (x * x + 1), -x),
    "alpha": lambda x, p: (torch.add(x, p, alpha=0.3), torch.sub(x, p, alpha=2), torch.rsub(x, p)),
    "division": lambda x, p: (x // 0.75, torch.div(x, p), x.trunc(), x.frac()),
    "powers": lambda x, p: (x**2, x.pow(3), p**0.5, p**-0.5, p.pow(1.7), x.square(), p.rsqrt()),
    "exponentials": lambda x, p: (x.exp(), x.exp2(), torch.expm1(x), p.log(), p.log2(), p.log1p()),
    "roots": lambda x, p: (p.sqrt(), torch.rsqrt(p), p.reciprocal(), x.hypot(p)),
    "waves": lambda x, p: (x.sin(), x.cos(), x.tanh(), torch.atan(x), x.sinh(), torch.asinh(x)),
    "activations": lambda x, p: (F.silu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.relu(x)),
    "more activations": lambda x, p: (F.softplus(x), F.elu(x), F.leaky_relu(x), F.hardtanh(x)),
    "sigmoids": lambda x, p: (torch.sigmoid(x), F.logsigmoid(x), torch.erf(x), x.cosh()),
    "comparisons": lambda x, p: (x > 0, x <= p, x.eq(x), (x < 1) & (x > -1), ~(x > 0), x != 0),
    "choices": lambda x, p: (torch.where(x > 0, x, p), torch.where(x > 0, x, 0.1), x.clamp(-1, 1)),
    "limits": lambda x, p: (x.clamp(min=0), x.clamp_max(0.5), torch.maximum(x, p), x.minimum(p)),
    "masks": lambda x, p: (x.masked_fill(MASK, -1.0), x.masked_fill(MASK, -math.inf), x[x > 0]),
    "signs": lambda x, p: (x.abs(), x.sign(), x.floor(), x.ceil(), x.round(), x.copysign(-p)),
    "fused": lambda x, p: (
        torch.addcmul(x, p, x, value=0.5),
        torch.addcdiv(x, x, p),
        x.lerp(p, 0.3),
    ),
    "sums": lambda x, p: (x.sum(), x.sum(0), x.sum(-1, keepdim=True), x.sum((0, 1)), x.prod(1)),
    "means": lambda x, p: (
        x.mean(),
        x.mean(-1, keepdim=True),
        x.var(-1),
        x.std(1),
        x.var(0, False),
    ),
    "moments": lambda x, p: torch.var_mean(x, -1, correction=0),
    "norms": lambda x, p: (x.norm(), x.norm(dim=-1), torch.linalg.norm(x, dim=0), x.norm(1, -1)),
    "extrema": lambda x, p: (x.max(), x.min(-1).values, x.max(0), x.amax(-1), x.amin((0, 1))),
    "positions": lambda x, p: (x.argmax(-1), x.argmin(0), x.argmax(), x.argsort(-1)),
    "orders": lambda x, p: (x.sort(-1), x.sort(0, descending=True), x.topk(2, -1), p.topk(3, 0)),
    "truths": lambda x, p: ((x > 0).any(-1), (x > 0).all(), x.isnan(), torch.isfinite(x)),
    "running": lambda x, p: (x.cumsum(0), torch.cumsum(x, -1), p.cumprod(1), x.logsumexp(-1)),
    "softmaxes": lambda x, p: (x.softmax(-1), F.softmax(x, 0), F.log_softmax(x, -1)),
    "products": lambda x, w, v: (x @ w, x @ v, v @ w, x.mm(w), torch.matmul(x[None], w), v.dot(v)),
    "more products": lambda x, w, v: (
        (torch.einsum("ij,jk->ik", x, w), F.linear(x, w.T), x.outer(x))
        if x.ndim == 1
        else (torch.einsum("ij,jk->ik", x, w), F.linear(x, w.T, w[0]), torch.outer(v, v))
    ),
    "einsums": lambda x, p: (torch.einsum("ij,ij->i", x, p), torch.einsum("ij,kj->ik", x, p)),
    "batches": lambda x, p: (
        torch.bmm(x.view(2, 2, 6), p.view(2, 6, 2)),
        x.view(2, 2, 6) @ p[:2].T,
    ),
    "biases": lambda x, w: (torch.addmm(w[:4], x, w), torch.addmm(w[:4], x, w, beta=0.5, alpha=2)),
    "shapes": lambda x: (x.T, x.reshape(2, 12), x.view(-1), x.permute(1, 0), x.flatten(), x[None]),
    "pieces": lambda x: (*x.split(2, 0), *x.chunk(3, 1), *x.unbind(0), x.narrow(1, 2, 3)),
    "growth": lambda x: (x[:, None].expand(4, 3, 6), x.repeat(2, 1), x.repeat_interleave(3, 0)),
    "joins": lambda x, p: (torch.cat([x, p], -1), torch.stack([x, p]), torch.cat([x, x[:0]])),
    "indices": lambda x: (
        x[I],
        x[:, [0, 2]],
        x[1],
        x[..., ::2],
        x[I[:3], I[2:]],
        x.index_select(0, I),
    ),
    "gathers": lambda x: (x.gather(1, GRID), torch.take(x, I), x.take_along_dim(GRID, 1)),
    "scatters": scattered,
    "scatter": lambda x: (x.scatter(1, GRID, 1.0), x.scatter_reduce(1, GRID, x, "sum")),
    "puts": lambda x: (
        x.index_put((I,), x[[0, 1, 2, 3, 3]], accumulate=True),
        x.index_fill(0, I[:1], 2.0),
    ),
    "flips": lambda x: (
        x.flip(0),
        x.roll(1, 1),
        x.tril(),
        x.triu(1),
        x.diagonal(),
        torch.diag(x[0]),
    ),
    "pads": lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 0, 1, 0), value=0.5), F.pad(x, (-1, 1))),
    "made here": lambda x: (
        torch.ones(4, 6) * x,
        torch.arange(6) * x,
        torch.eye(4) @ x,
        x.new_full((2,), 0.1),
    ),
    "constants": lambda x: (
        x * torch.tensor(0.1),
        x + torch.tensor([0.5] * 6),
        torch.full_like(x, 0.3) * x,
    ),
    "likes": lambda x: (
        torch.zeros_like(x) + x,
        torch.ones_like(x) - x,
        torch.empty_like(x).fill_(3.0),
    ),
    "casts": lambda x: (
        x.double(),
        x.float() * 2,
        x.to(torch.bfloat16),
        x.long(),
        (x > 0).double(),
        x.int(),
    ),
    "integers": lambda x: (I * 2, I.double() / 3, I.sum(), I.cumsum(0), I.tolist()[0] * x, I / 2),
    "norm layers": lambda x, v, p: (
        F.layer_norm(x, (6,), v, v),
        F.rms_norm(x, (6,), v, 1e-6),
        F.normalize(x),
    ),
    "losses": lambda x, p: (F.mse_loss(x, p), F.cross_entropy(x, I[:4]), F.l1_loss(x, p)),
    "attention": lambda x, p: (F.scaled_dot_product_attention(x[None], p[None], x[None]),),
    "causal": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True),
    "embedding": lambda x: F.embedding(I, x),
    "search": lambda x: torch.searchsorted(x[0].sort().values, torch.zeros(4, 1)),
    "filled": filled,
    "looped": looped,
    "differentiated": differentiated,
    "backward": backward_of_many,
}
# In float32, torch casts for real, steps lie elsewhere, and its gelu has a fast erf.
OTHER_IN_FLOAT32 = {"casts", "division", "signs", "activations"}


def arguments(seed, kind="normal"):
    rng = np.random.default_rng(seed)
    x, w, v = (rng.standard_normal(shape) for shape in ((4, 6), (6, 5), (6,)))
    if kind == "wide":
        x = x * 10.0 ** rng.uniform(-3, 1, x.shape)
    if kind == "equal":
        x = np.ones((4, 6))
    arrays = {"x": x, "w": w, "v": v, "p": np.abs(rng.standard_normal((4, 6))) + 0.1}
    return {name: a.astype(np.float32).astype(np.float64) for name, a in arrays.items()}


def flat(outputs):
    for output in outputs:
        if isinstance(output, (tuple, list)):
            yield from flat(output)
        else:
            yield output


def flattened(reference):
    """The reference with nested results in one tuple, its arguments by name."""
    names = reference.__code__.co_varnames[: reference.__code__.co_argcount]

    def call(x, w, v, p):
        known = {"x": x, "w": w, "v": v, "p": p}
        result = reference(**{name: known[name] for name in names})
        return tuple(flat(result if isinstance(result, (tuple, list)) else [result]))

    return call


def traced(reference, given, **options):
    options = {"precision": Precision(), "profile": "interpreter"} | options
    return evaluate_reference(reference, given, **options)


@pytest.mark.parametrize("name", OPERATIONS)
def test_values_are_those_of_float64_torch(name):
    reference = flattened(OPERATIONS[name])
    given = arguments(0)
    values, plain = traced(reference, given), call_torch(reference, given, None)
    assert len(values) == len(plain)
    for value, expected in zip(values, plain, strict=True):
        assert not isinstance(value, Opaque), value.reason
        assert value.value.shape == expected.shape
        assert value.value.dtype.kind == expected.dtype.kind
        if value.error is None:
            np.testing.assert_array_equal(value.value, expected)
        else:
            assert accept_logic(expected, value).ok.all()


@pytest.mark.parametrize("name", OPERATIONS)
def test_float32_torch_lies_within_the_bounds(name):
    reference = flattened(OPERATIONS[name])
    for seed, kind in enumerate(["normal", "wide", "equal", "normal", "wide"]):
        given = arguments(seed, kind)
        tensors = {key: torch.from_numpy(array).float() for key, array in given.items()}
        for value, actual in zip(traced(reference, given), reference(**tensors), strict=True):
            if not actual.is_floating_point() or name in OTHER_IN_FLOAT32:
                continue
            verdict = accept(actual.detach().float().numpy(), value)
            assert verdict.ok.all(), (kind, actual, value.value, value.error)
