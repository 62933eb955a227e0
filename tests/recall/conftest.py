"""A store for each test, and no index left open after it."""
from __future__ import annotations

import pytest

from tests.recall.shelf import Shelf, forget_indexes


@pytest.fixture
def shelf(tmp_path, clean_environment):
    """Return an empty store in a workspace of its own."""
    yield Shelf(tmp_path / "project")
    forget_indexes()


@pytest.fixture
def another(tmp_path, clean_environment):
    """Return a function that makes further stores."""
    yield lambda name: Shelf(tmp_path / name)
    forget_indexes()
