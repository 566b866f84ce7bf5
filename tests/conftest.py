"""What all tests share: an environment that no case file has changed."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _not_interpreted() -> Iterator[None]:
    """Undo what case files do at import: many people's set TRITON_INTERPRET for the process."""
    os.environ.pop("TRITON_INTERPRET", None)
    yield
    os.environ.pop("TRITON_INTERPRET", None)
