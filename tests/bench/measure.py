"""Runs commands and servers for the bench in throw-away folders and takes their time, memory and answers.

Every step has a limit: what takes longer is ended with all that it started, and so is a server when its block ends badly. Must not
know what is measured.
"""
from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

LIMIT = 180  # seconds that a step may take
# Starts a command from a small process: until a child has become another program, it counts what its parent holds as its own memory.
# LC_CTYPE is what Python itself adds on its start.
LAUNCH = """
import os, sys, time
env = {name: value for name, value in os.environ.items() if name != "LC_CTYPE"}
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
start = time.perf_counter()
_, status, used = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], env, file_actions=quiet), 0)
print(time.perf_counter() - start, used.ru_maxrss / 1024, os.waitstatus_to_exitcode(status))
"""


def row(what, value, target="", memory=None):
    """Print a row of the speed table; `memory` in MiB."""
    print(f"| {what} | {value} | {target} | {'' if memory is None else f'{memory:.0f} MiB'} |", flush=True)


def beside(seconds, base):
    """Return how a time reads beside that of a bare Python start."""
    ratio = seconds / base
    return f"{ratio:.{0 if ratio >= 20 else 1}f} x bare ({1000 * seconds:.0f} ms)"


@contextlib.contextmanager
def limited(process, seconds, argv):
    """Kill a process and its children when the block takes longer or fails.

    Raises TimeoutError, which names the command `argv`, and what the block raises.
    """
    late = threading.Event()

    def stop():
        late.set()
        kill(process)

    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        yield
    except BaseException as error:
        kill(process)
        if not (late.is_set() and isinstance(error, (EOFError, OSError))):
            raise
    finally:
        timer.cancel()
    if late.is_set():
        raise TimeoutError(f"{named(argv)} took more than {seconds} s and was stopped")


def kill(process):
    if process.returncode is None:  # else its number may be another's by now
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def named(argv):
    """Return the few words of a command that tell which one it is: the program and what follows up to an option, path or text."""
    words = [os.path.basename(argv[0])]
    for word in argv[1:3]:
        if word.startswith("-") or os.sep in word or " " in word:
            break
        words.append(word)
    return f"`{' '.join(words)}`"


class Place:
    """A folder to run commands in and the environment that they see.

    env: {name: value}, all of it. What commands say on stderr goes to a file beside the folder.
    """

    def __init__(self, folder, env):
        self.folder, self.env, self.errors = folder, env, folder.rstrip(os.sep) + ".errors"
        os.makedirs(folder, exist_ok=True)

    def start(self, argv, stdin, stdout):
        with open(self.errors, "wb") as errors:  # a session of its own: it can be ended with its children
            return subprocess.Popen(argv, cwd=self.folder, env=self.env, stdin=stdin, stdout=stdout, stderr=errors, start_new_session=True)

    def run(self, argv, text=None):
        """Run a command; return (seconds, most memory in MiB, exit code). Raises TimeoutError, ChildProcessError when it can't start."""
        process = self.start([sys.executable, "-I", "-S", "-c", LAUNCH, *argv], subprocess.PIPE if text else subprocess.DEVNULL,
                             subprocess.PIPE)
        with limited(process, LIMIT, argv):
            said = process.communicate(text and text.encode())[0].split()
        if len(said) != 3:
            raise ChildProcessError(f"{named(argv)} does not start{self.last_words()}")
        return float(said[0]), float(said[1]), int(said[2])

    def done(self, argv):
        """Run a command that has to succeed; return (seconds, MiB). Raises ChildProcessError with its last words, and as `run`."""
        seconds, memory, code = self.run(argv)
        if code:
            raise ChildProcessError(f"{named(argv)} ended with {code}{self.last_words()}")
        return seconds, memory

    def last_words(self):
        """Return the last line on stderr after a colon; "" when nothing was said."""
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return ": " + lines[-1].replace("|", "/")[:200] if lines else ""

    def beside_bare(self, bare, argv, runs, text=None):
        """Return medians of alternating runs: (seconds bare, seconds, MiB, exit code). Raises as `run`."""
        self.run(argv, text)  # warm
        pairs = [(self.run(bare)[0], self.run(argv, text)) for _ in range(runs)]
        return (statistics.median(one for one, _ in pairs), statistics.median(two[0] for _, two in pairs),
                statistics.median(two[1] for _, two in pairs), pairs[-1][1][2])

    def started(self, bare, argv, runs):
        """Return medians of alternating starts: (seconds bare, seconds until a server has answered `initialize`). Raises as Served."""
        bases, starts = [], []
        for _ in range(runs):
            bases.append(self.run(bare)[0])
            start = time.perf_counter()
            with Served(self, argv) as server:
                server.initialize()
                starts.append(time.perf_counter() - start)
        return statistics.median(bases), statistics.median(starts)


class Served:
    """A server over stdio, one request at a time; leave through `with`.

    result: the result of the last request. Every method raises TimeoutError, and EOFError when the server ends; `ask` and `call`
    raise ValueError when the answer is an error or none.
    """

    def __init__(self, place, argv):
        self.place, self.number, self.result = place, 0, None
        self.process = place.start(argv, subprocess.PIPE, subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            kill(self.process)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        with limited(self.process, LIMIT, self.process.args):
            self.process.wait()
        self.process.stdout.close()

    def tell(self, method):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """Return the seconds that an answer took; what the server says of its own accord is passed over."""
        self.number += 1
        asked = json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode() + b"\n"
        with limited(self.process, LIMIT, self.process.args):
            start = time.perf_counter()
            with contextlib.suppress(BrokenPipeError):  # then there is nothing to read either, which tells more
                self.process.stdin.write(asked)
                self.process.stdin.flush()
            while True:
                line = self.process.stdout.readline()
                seconds = time.perf_counter() - start
                if not line:
                    raise EOFError(f"{named(self.process.args)} ended early{self.place.last_words()}")
                answer = json.loads(line)
                if answer.get("id") == self.number and "method" not in answer:
                    break
        if not isinstance(answer.get("result"), dict) or answer["result"].get("isError"):
            raise ValueError(f"{method} was answered with {line.decode(errors='replace').strip().replace('|', '/')[:200]}")
        self.result = answer["result"]
        return seconds

    def initialize(self):
        client = {"name": "bench", "version": "1"}
        return self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})

    def call(self, tool, arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def memory(self):
        """Return the most memory so far in MiB; None where there is no /proc."""
        try:
            with open(f"/proc/{self.process.pid}/status") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
        except OSError:
            return None
