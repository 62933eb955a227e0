"""The process around the loop: descriptors, signals, the end. Must not know what a message means.

While it serves, the wire is a private duplicate of descriptor 1; descriptor 1 itself leads to stderr and
descriptor 0 to the null device, so no stray print and no child can corrupt the stream. One thread reads,
the main thread takes the lines, a few workers run calls. The end comes from five sides, all of them
quiet and with exit code 0: end of input, SIGINT, SIGTERM, a client that no longer reads, a dead parent.
"""
from __future__ import annotations

import gc
import os
import queue
import select
import signal
import threading
import time

from engram.protocol.framing import Lines
from engram.server.loop import Loop
from engram.server.workers import Workers

CHUNK = 1 << 16
HELD = 64  # chunks read ahead at most, when a client sends and does not read
LOOK = 0.5  # seconds between two looks at parent and reader; session.md allows 2 until the end
FINISH = 30.0  # for calls under way when the input ends
FINISH_UNREAD = 1.5  # the same, when nobody reads the answers any more or a signal presses


class Wire:
    """The client's end of the two pipes, taken away from everybody else in this process."""

    def __init__(self):
        self.gone = False
        self._lock = threading.Lock()
        null = os.open(os.devnull, os.O_RDWR)
        while null <= 2:  # started without one of the three: it is the null device now
            null = os.open(os.devnull, os.O_RDWR)
        self.input = os.dup(0)
        self.output = os.dup(1)
        os.dup2(2, 1)
        os.dup2(null, 0)
        os.close(null)
        self._poll = None
        if hasattr(select, "poll"):  # not on Windows, where a write finds out
            self._poll = select.poll()
            self._poll.register(self.output, 0)

    def write(self, data):
        """Write one line whole; a client that went away is noted, not raised."""
        view = memoryview(data)
        with self._lock:
            while view and not self.gone:
                try:
                    view = view[os.write(self.output, view):]
                except BlockingIOError:  # a pipe that its owner made non-blocking
                    time.sleep(0.005)
                except OSError:
                    self.gone = True

    def unread(self):
        """Tell whether the client has closed its reading end."""
        if self._poll and not self.gone:
            self.gone = any(what & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, what in self._poll.poll(0))
        return self.gone


def note(text):
    """Write text for a person to stderr, if there is one."""
    try:
        os.write(2, text.encode("utf-8", "backslashreplace").rstrip(b"\n") + b"\n")
    except OSError:
        pass


def serve(surface, *, workspace, elicit=True):
    """Serve a surface on this process's stdin and stdout until the end; return the exit code, 0.

    `workspace` is the path that sealed states are bound to; `elicit` False keeps approvals in the chat.
    """
    gc.freeze()
    gc.enable()
    wire = Wire()
    inbox = queue.SimpleQueue()
    stopped = _on_signals(inbox)
    workers = Workers()
    loop = Loop(surface, wire.write, workers, time.monotonic, key=os.urandom(32), workspace=workspace, elicit=elicit,
                note=note)
    held = threading.Semaphore(HELD)
    threading.Thread(target=_read, args=(wire.input, inbox, workers, held), daemon=True).start()
    parent = os.getppid()
    lines = Lines()
    while True:
        due = loop.tick()
        data = _next(inbox, LOOK if due is None else min(due, LOOK))
        if data is None:
            if wire.unread() or _orphaned(parent):
                break
            continue
        for line in lines.feed(data) if data else lines.end():
            loop.receive(line)
        held.release()
        if not data or wire.gone:
            break
    loop.end()
    if not _finish(workers, wire, parent, stopped):
        os._exit(0)  # a call hangs; the interpreter's own end would run into it
    surface.close()
    return 0


def _read(descriptor, inbox, workers, held):
    """Put what comes in into the inbox, b"" at the end; hold back while calls or lines pile up."""
    data = b"x"
    while data:
        held.acquire()
        while not workers.room(1.0):
            pass
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            time.sleep(0.005)
            held.release()
            continue
        except OSError:
            data = b""
        inbox.put(data)


def _next(inbox, seconds):
    try:
        return inbox.get(timeout=seconds)
    except queue.Empty:
        return None


def _on_signals(inbox):
    """Make SIGINT and SIGTERM end the input; the second one, or a hang, ends the process. Return the event."""
    stopped = threading.Event()

    def stop(number, frame):
        if stopped.is_set():
            os._exit(0)
        stopped.set()
        inbox.put(b"")
        if hasattr(signal, "setitimer"):  # even if the main thread is stuck in a write that nobody reads
            signal.signal(signal.SIGALRM, lambda number, frame: os._exit(0))
            signal.setitimer(signal.ITIMER_REAL, FINISH_UNREAD)

    for name in ("SIGINT", "SIGTERM"):
        signal.signal(getattr(signal, name), stop)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return stopped


def _orphaned(parent):
    """Tell whether the process that started this one is gone."""
    return parent > 1 and os.getppid() != parent


def _finish(workers, wire, parent, stopped):
    """Let calls under way end, long while somebody waits for the answers; tell whether all have."""
    end = time.monotonic() + FINISH
    pressed = False
    while not workers.idle(0.1):
        if not pressed and (stopped.is_set() or wire.unread() or _orphaned(parent)):
            pressed = True
            end = min(end, time.monotonic() + FINISH_UNREAD)
        if time.monotonic() >= end:
            return False
    return True
