"""A victim's machine, with the built file, for the tests that attack it from outside."""

from __future__ import annotations

import pytest

from tests.torture.place import Place


@pytest.fixture
def place(built, tmp_path, clean_environment):
    """Return a Place: a home, a workspace with a store, and the built file."""
    with Place(built, root=str(tmp_path / "machine")) as made:
        yield made
