"""The one setting behind every trial that repeats itself: how often, and from which seed.

`ENGRAM_TRIALS=full` asks for the long form (the figures that a closing note quotes); `ENGRAM_SEED` for
another run of the dice. Must not know what is tried.
"""
from __future__ import annotations

import os
import random


def count(short, full):
    """Return how many repetitions to make: `short` in everyday runs and CI, `full` when asked for."""
    return full if os.environ.get("ENGRAM_TRIALS") == "full" else short


def dice(name=""):
    """Return a random.Random of its own for the trial called `name`; the same in every run of one seed."""
    return random.Random(f"{os.environ.get('ENGRAM_SEED', '1')}:{name}")
