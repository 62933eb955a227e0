"""The threads under the loop: side by side, and in order where a lane says so."""
from __future__ import annotations

import threading

from engram.server.workers import FULL, Workers


def test_work_of_one_lane_runs_in_order_beside_all_other_work():
    workers, go, done = Workers(), threading.Event(), []
    workers.submit(lambda: (go.wait(30), done.append("a0")), "a")
    for number in range(1, 50):
        workers.submit(lambda number=number: done.append(f"a{number}"), "a")
    beside = threading.Event()
    workers.submit(beside.set)
    workers.submit(lambda: done.append("b"), "b")
    assert beside.wait(30)
    assert not any(name.startswith("a") for name in done)
    go.set()
    assert workers.idle(30)
    assert [name for name in done if name != "b"] == [f"a{number}" for number in range(50)]
    assert "b" in done


def test_what_stands_in_a_lane_counts_as_waiting():
    workers, go = Workers(), threading.Event()
    for _ in range(FULL + 1):
        workers.submit(lambda: go.wait(30), "a")
    assert not workers.room(0.01)
    assert not workers.idle(0.01)
    go.set()
    assert workers.room(30)
    assert workers.idle(30)


def test_a_lane_is_gone_when_it_is_empty_and_starts_again():
    workers, done = Workers(), []
    for _ in range(3):
        workers.submit(lambda: done.append(1), "a")
        assert workers.idle(30)
    assert done == [1, 1, 1]
