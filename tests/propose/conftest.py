"""A store, a global store, and the short ways that the tests of this room share."""

from __future__ import annotations

import os

import pytest

from engram.store import memory, places, writing

AUTHOR = {"GIT_AUTHOR_NAME": "Sam Field", "GIT_AUTHOR_EMAIL": "sam.field@example.com"}


def make_place(folder, *, with_global=False, scope=None, **env):
    """Make a workspace with a store (and a global one) under a folder and return its Place."""
    env = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"], **AUTHOR, **env}
    (folder / "home").mkdir(parents=True, exist_ok=True)
    (folder / "ws").mkdir(parents=True, exist_ok=True)
    if with_global:
        env["ENGRAM_GLOBAL_DIR"] = str(folder / "global")
        (folder / "global").mkdir(exist_ok=True)
    place = places.find(str(folder / "ws"), env=env)
    writing.make(place.workspace)
    if with_global:
        writing.make(place.global_)
    return place


def put(place, rel, text, *, scope="workspace"):
    """Write a memory file by hand and record its hash, as if it had been approved."""
    store = place.store_of(scope)
    with writing.Writer(store) as writer:
        writer.put(rel, text if isinstance(text, bytes) else text.encode())
        writer.commit()
    return memory.parse(store.read_bytes(rel), rel, scope)


def on_disk(place, scope="workspace"):
    """Return {path: bytes} of the durable memory files."""
    store = place.store_of(scope)
    return {rel: store.read_bytes(rel) for rel, _ in store.files()}


@pytest.fixture
def place(tmp_path):
    return make_place(tmp_path)


@pytest.fixture
def both(tmp_path):
    return make_place(tmp_path, with_global=True)
