"""A few threads that run calls side by side. Must not know what a call is.

Threads are started when there is work for them and kept; they are daemons, so a call that never ends
can't keep the process. A call that waits for a human holds no thread (loop.py), so a small number does.
"""
from __future__ import annotations

import threading
from collections import deque

COUNT = 8
# More waiting calls than this and the reader stops reading, so that a flood of lines can't grow memory.
FULL = 256


class Workers:
    """Runs functions of no argument; whoever submits one catches what it raises."""

    def __init__(self, count=COUNT):
        self._count = count
        self._lanes = {}
        lock = threading.Lock()
        self._given = threading.Condition(lock)
        self._taken = threading.Condition(lock)
        self._waiting = deque()
        self._threads = 0
        self._busy = 0

    def submit(self, work, lane=None):
        """Run `work()` on a thread, now or as soon as one is free; work of one lane runs in order, one after the other."""
        with self._given:
            if lane in self._lanes:
                self._lanes[lane].append(work)
                return
            if lane is not None:
                self._lanes[lane] = deque()
            self._waiting.append((work, lane))
            if self._busy + len(self._waiting) > self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._run, daemon=True).start()
            self._given.notify()

    def room(self, seconds):
        """Wait until fewer than FULL functions wait, `seconds` at most; tell whether there is room."""
        with self._taken:
            return self._taken.wait_for(lambda: len(self._waiting) + sum(map(len, self._lanes.values())) < FULL, seconds)

    def idle(self, seconds):
        """Wait until nothing runs or waits, `seconds` at most; tell whether that is so."""
        with self._taken:
            return self._taken.wait_for(lambda: not self._waiting and not self._busy, seconds)

    def _run(self):
        while True:
            with self._given:
                while not self._waiting:
                    self._given.wait()
                work, lane = self._waiting.popleft()
                self._busy += 1
            try:
                work()
            finally:
                work = None  # not kept until the next one: it may hold a line of 16 MiB
                with self._taken:
                    self._busy -= 1
                    self._next_in(lane)
                    self._taken.notify_all()

    def _next_in(self, lane):
        # the caller holds the lock
        if lane is None:
            return
        if self._lanes[lane]:
            self._waiting.append((self._lanes[lane].popleft(), lane))
            self._given.notify()
        else:
            del self._lanes[lane]
