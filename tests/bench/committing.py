#!/usr/bin/env python3
"""How long the commit of one approved memory takes beyond its fsyncs: `committing.py WORKSPACE [RUNS]` prints the median in ms.

In this process and from the checkout, as the time of an fsync, which is the disk's, can be taken off here alone. A person stands
between a proposal and its commit, so each waits a moment.
"""
from __future__ import annotations

import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from engram import propose
from engram.store import index, places

PAUSE = 0.15  # seconds


class Synced:
    """Takes the place of os.fsync and adds up the seconds spent there."""

    def __init__(self):
        self.seconds, self._real = 0.0, os.fsync

    def __call__(self, descriptor):
        start = time.perf_counter()
        self._real(descriptor)
        self.seconds += time.perf_counter() - start


def seconds_of(folder, number, synced):
    """Return the seconds that one commit takes without its fsyncs."""
    text = f"Lamp {number} of pier {7 * number} is switched by relay K{number} at dusk."
    token = propose.save(places.find(folder), text, type="knowledge", scope="workspace").result().data["approval_token"]
    time.sleep(PAUSE)
    synced.seconds, start = 0.0, time.perf_counter()
    done = propose.commit(places.find(folder), token, "all", by="agent")
    taken = time.perf_counter() - start - synced.seconds
    if not done.data["saved"]:
        raise SystemExit(done.text)
    time.sleep(PAUSE)
    return taken


def main(folder, runs=15):
    os.fsync = synced = Synced()
    index.using(places.find(folder).workspace, lambda one: None)
    times = [seconds_of(folder, number, synced) for number in range(int(runs) + 1)]
    print(f"{1000 * statistics.median(times[1:]):.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
