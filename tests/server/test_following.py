"""The index is followed beside calls, and by nobody when there are none."""
from __future__ import annotations

import threading

from engram.server import following
from engram.server.following import Following
from tests.server.stub import Desk, Stub, call, request


def test_work_is_done_after_a_call_and_ends_when_no_more_come(monkeypatch):
    monkeypatch.setattr(following, "PAUSE", 0.0)
    monkeypatch.setattr(following, "QUIET", -1.0)
    done = threading.Semaphore(0)
    follow = Following(done.release)
    assert not done.acquire(blocking=False)
    for _ in range(3):  # each call after a quiet time starts anew
        follow.called()
        assert done.acquire(timeout=30)
        while follow._running:
            threading.Event().wait(0.001)


def test_calls_while_it_runs_start_no_second_thread(monkeypatch):
    monkeypatch.setattr(following, "PAUSE", 0.0)
    inside, go, count = threading.Semaphore(0), threading.Event(), []

    def work():
        count.append(threading.get_ident())
        inside.release()
        go.wait(30)
        monkeypatch.setattr(following, "QUIET", -1.0)

    follow = Following(work)
    follow.called()
    assert inside.acquire(timeout=30)
    for _ in range(50):
        follow.called()
    go.set()
    while follow._running:
        threading.Event().wait(0.001)
    assert len(set(count)) == 1


def test_the_loop_tells_its_surface_of_calls_and_of_nothing_else():
    class Told(Stub):
        count = 0

        def called(self):
            self.count += 1

    desk = Desk(Told())
    desk.start()
    desk.say(request(1, "ping"), request(2, "tools/list"))
    assert desk.surface.count == 0
    desk.say(call(3, "echo", text="x"), request(4, "resources/read", uri="stub://a"))
    assert desk.surface.count == 2
