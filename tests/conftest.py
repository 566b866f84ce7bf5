"""What all tests share: an environment that no case file has changed."""

import pytest


@pytest.fixture(autouse=True)
def _not_interpreted(monkeypatch):
    """Undo what case files do at import: many people's set TRITON_INTERPRET for the process."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
