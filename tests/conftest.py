"""What all tests share: an environment that no collected case has changed."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _not_interpreted():
    """Undo what case files do at import: many people's set TRITON_INTERPRET for the process."""
    os.environ.pop("TRITON_INTERPRET", None)
