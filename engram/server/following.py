"""Keep the index close to its files beside the calls of a server (recall.md, The index). Must not know what a call is.

A pass over all files is what makes a search slow, so it runs on a thread of its own, every 0.8 s for as long as calls come,
and not at all in a server that nobody uses.
"""
from __future__ import annotations

import threading
import time

PAUSE = 0.8  # seconds; a search may be 1 s behind
QUIET = 60.0  # after the last call


class Following:
    """Calls `work()` while `called` is; a daemon thread, so that an end waits for no pass."""

    def __init__(self, work):
        self._work = work
        self._lock = threading.Lock()
        self._last = 0.0
        self._running = False

    def called(self):
        """Hear that a call was answered."""
        with self._lock:
            self._last = time.monotonic()
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            time.sleep(PAUSE)  # first: a search passes over the files itself, and that counts until then
            self._work()
            with self._lock:
                if time.monotonic() - self._last > QUIET:
                    self._running = False
                    return
