"""A tier with a clock that stands still, folders that look like repositories, and rows by the dozen."""

from __future__ import annotations

import os

import pytest

from engram.mem.tier import Tier

START = 1_780_000_000  # 2026-05-28 20:26:40 UTC


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tiers(tmp_path, clock, clean_environment):
    """Return a function that makes tiers on one data folder: `tiers(folder=…, override=…, data="name")`."""
    made = []

    def make(folder=None, *, override="", data="data", env=None, **more):
        where = tmp_path / "alpha" if folder is None else folder
        os.makedirs(where, exist_ok=True)
        env = {"HOME": str(clean_environment), "ENGRAM_DATA_DIR": str(tmp_path / data), **(env or {})}
        made.append(Tier(folder=str(where), env=env, override=override, clock=clock, **more))
        return made[-1]

    yield make
    for tier in made:
        tier.close()


@pytest.fixture
def tier(tiers):
    """Return a tier in a folder called alpha, which is no repository."""
    return tiers()


@pytest.fixture
def repository(tmp_path):
    """Return a function that makes a folder with a Git folder as `git init` leaves it: `repository("r", origin=url)`."""

    def make(name, *, origin=None):
        folder = tmp_path / name
        git = folder / ".git"
        for part in ("objects", "refs", "info", "hooks"):
            os.makedirs(git / part, exist_ok=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "description").write_text("Unnamed repository\n")
        config = "[core]\n\tbare = false\n"
        if origin:
            config += f'[remote "origin"]\n\turl = {origin}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
        (git / "config").write_text(config)
        return folder

    return make


def rows(tier, query="SELECT * FROM observations ORDER BY id", *values):
    """Return what a query of the database gives, as mappings."""
    with tier.database.reading() as connection:
        return [dict(row) for row in connection.execute(query, values)]
