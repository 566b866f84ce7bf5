"""torch and triton, checked and prepared; every module that needs them takes them from here."""

import os

from trivet.simulator._requirements import require

require()
# Triton warns at the first compile unless fusion is decided before it is imported.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import torch  # noqa: E402
import triton  # noqa: E402

__all__ = ["torch", "triton"]
