"""A real server process on the other end of two pipes: the stub's, or the built file's."""
from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading

import build
from tests.server.stub import initialize

STUB = [sys.executable, "-I", "-S", "-c",
        f"import sys; sys.path.insert(0, {build.ROOT!r})\n"
        "from tests.server.acting import Acting\n"
        "from engram.server import stdio\n"
        "sys.exit(stdio.serve(Acting(), workspace='/ws'))"]


class Server:
    """Start `command`, send messages or raw bytes, take replies; leave through `with`."""

    def __init__(self, command=STUB, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self._lines = queue.Queue()
        self.errors = b""
        self._threads = [threading.Thread(target=self._pump), threading.Thread(target=self._listen)]
        for thread in self._threads:
            thread.start()

    def _pump(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _listen(self):
        self.errors = self.process.stderr.read()

    def send(self, *messages):
        for message in messages:
            self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self, seconds=30):
        """Return the next message, or None at the end of output."""
        line = self._lines.get(timeout=seconds)
        return None if line is None else json.loads(line)

    def reply(self, id):
        """Return the answer to a request, passing over what comes before it."""
        while True:
            message = self.receive()
            assert message is not None, self.errors
            if isinstance(message, dict) and message.get("id") == id and "method" not in message:
                return message

    def ask(self, message):
        self.send(message)
        return self.reply(message["id"])

    def start(self, version="2025-11-25", capabilities=None):
        result = self.ask(initialize(version, capabilities, id="start"))["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def rest(self):
        """Return all that still comes until the end of output."""
        found = []
        while (message := self.receive()) is not None:
            found.append(message)
        return found

    def end(self, seconds=30):
        """Close the input and return the exit code."""
        self.process.stdin.close()
        return self.wait(seconds)

    def wait(self, seconds=30):
        code = self.process.wait(seconds)
        for thread in self._threads:
            thread.join(seconds)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass
        self.wait()


def alive(pid):
    """Tell whether a process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def environment(**more):
    return {**os.environ, **more}
