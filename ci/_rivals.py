"""How other projects decide that a kernel is right: their rules, with the files they stand in.

Each takes a batch of results and expected values in the dtype of the result, widened to float64,
cases along the first axis, and says which cases it refuses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Results:
    """actual, expected and what torch computes in the same dtype, (cases, ...); "float32" or
    "bfloat16"."""

    actual: Array
    expected: Array
    native: Array
    dtype: str


@dataclass(frozen=True)
class Rule:
    """`refuses` says which cases fail; `source` quotes it; `gradients`: it is meant for those."""

    source: str
    refuses: Callable[[Results], Mask]
    gradients: bool = False


def _flat(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.reshape(len(values), -1)


def _most(values: Array) -> Array:
    most: Array = np.abs(_flat(values)).max(1)
    return most


def _beyond(results: Results, rtol: float, atol: float) -> Mask:
    distance = np.abs(results.actual - results.expected)
    allowed = atol + rtol * np.abs(results.expected)
    close = np.asarray((distance <= allowed) | (results.actual == results.expected), np.bool_)
    return np.asarray(~_flat(close).all(1), np.bool_)


def _torch(results: Results) -> Mask:
    rtol = {"float32": 1.3e-6, "bfloat16": 1.6e-2}[results.dtype]
    return _beyond(results, rtol, 1e-5)


def _liger(results: Results) -> Mask:
    tolerance = {"float32": 1e-5, "bfloat16": 2e-2}[results.dtype]
    return _beyond(results, tolerance, tolerance)


def _gradcheck(results: Results) -> Mask:
    return _beyond(results, 1e-3, 1e-5)


def _fla(results: Results) -> Mask:
    error = results.actual - results.expected
    ratio = _rms(error) / (_rms(results.expected) + 1e-8)
    return ~((_most(error) <= 1e-6) | (ratio < 0.005))


def _rms(values: Array) -> Array:
    rms: Array = np.sqrt((_flat(values) ** 2).mean(1))
    return rms


def _deep_gemm(results: Results) -> Mask:
    x, y = _flat(results.actual), _flat(results.expected)
    both = (x * x + y * y).sum(1)
    likeness = 2 * (x * y).sum(1) / np.where(both == 0, 1, both)
    refused: Mask = ~((both == 0) | (1 - likeness < 1e-5))
    return refused


def _flash_attention(results: Results) -> Mask:
    shifted = _stored(_stored(results.expected + 0.3, results) - 0.3, results)
    step = _stored(shifted - results.expected, results)
    allowed = 2 * _most(results.native - results.expected) + 2 * _most(step)
    return ~(_most(results.actual - results.expected) <= allowed)


def _stored(values: Array, results: Results) -> Array:
    import ml_dtypes

    format = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}[results.dtype]
    stored: Array = values.astype(format).astype(np.float64)
    return stored


RULES = {
    "torch": Rule(
        "pytorch/pytorch torch/testing/_comparison.py `_DTYPE_PRECISIONS`: "
        "float32 (1.3e-6, 1e-5), bfloat16 (0.016, 1e-5), by assert_close",
        _torch,
    ),
    "liger": Rule(
        "linkedin/Liger-Kernel test/utils.py `assert_verbose_allclose`: diff > atol + rtol * "
        "abs(tensor2); its tests of float32 mostly hand it 1e-5, those of bfloat16 2e-2",
        _liger,
    ),
    "fla": Rule(
        "fla-org/flash-linear-attention fla/utils/_testing.py `assert_close`: abs_atol <= 1e-6 or "
        "error_rate < ratio, RMS(ref - tri) / (RMS(ref) + 1e-8); ratio mostly 0.005",
        _fla,
    ),
    "calc_diff": Rule(
        "deepseek-ai/DeepGEMM deep_gemm/testing/numeric.py `calc_diff`: "
        "1 - 2 sum(x y) / sum(x x + y y); its tests of bfloat16 demand < 1e-5",
        _deep_gemm,
    ),
    "flash 2x": Rule(
        "Dao-AILab/flash-attention hopper/test_flash_attn.py: max abs(out - out_ref) <= 2 * "
        "max abs(out_pt - out_ref) + 2 * max abs(out_ref + 0.3 - 0.3 - out_ref)",
        _flash_attention,
    ),
    "gradcheck": Rule(
        "pytorch/pytorch torch/autograd/gradcheck.py `gradcheck`: atol 1e-5, rtol 1e-3 between "
        "the analytical and the numerical gradient, by torch.allclose",
        _gradcheck,
        gradients=True,
    ),
}
