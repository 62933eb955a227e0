"""A home, a workspace and the built file in it; a small MCP client; text that no two calls share.

Shared by the trials and by the tests that attack from outside. Must not know what is tried.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

FOREIGN = ("XDG_", "ENGRAM_", "CODEX_", "CLAUDE", "GEMINI_", "OPENCODE_", "PYTHON", "SHIV_", "GIT_")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "trial", "version": "1"}}
NOBODY = 65534

NAMES = "billing search gateway mailer ledger scheduler catalogue invoices router archive importer exporter shipper planner".split()
PARTS = "queue worker cache table socket bucket cursor stream handler adapter journal snapshot replica shard".split()
DEEDS = (
    "retries rotates expires compresses rejects batches mirrors drains partitions throttles encrypts samples".split()
)
PLACES = (
    "amber basalt cedar delta ember fjord garnet heath indigo juniper kelp lagoon maple nectar onyx pine quartz".split()
)


def statement(number):
    """Return a sentence that is about something else for every number, so that no two are duplicates."""
    pick = lambda words, salt: words[int(hashlib.sha256(f"{salt}:{number}".encode()).hexdigest(), 16) % len(words)]
    mark = hashlib.sha256(str(number).encode()).hexdigest()[:6]
    return (
        f"The {pick(NAMES, 1)} {pick(PARTS, 2)} unit-{mark} {pick(DEEDS, 3)} its {pick(PARTS, 4)} every "
        f"{len(mark) + int(mark, 16) % 50} minutes on host {pick(PLACES, 5)}-{number}."
    )


class Place:
    """A fresh home and workspace under one folder, gone at the end of the `with` block."""

    def __init__(self, built, *, root=None, env=None, python=None, inject=True):
        self.root = root or tempfile.mkdtemp(prefix="engram-trial-")
        self.built = built
        self.python = python or sys.executable
        self.home = os.path.join(self.root, "home")
        self.workspace = os.path.join(self.root, "work")
        for folder in (self.home, self.workspace):
            os.makedirs(folder, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self.env = kept | {"HOME": self.home, "LANG": "C.UTF-8"} | (env or {})
        if inject:
            self.run("inject")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def command(self):
        return [self.python, "-I", "-S", self.built]

    def store(self, *parts):
        return os.path.join(self.workspace, ".agents", ".engram", *parts)

    def run(self, *words, text="", code=0, env=None, limit=120, **more):
        """Run a command; return it done. Raises AssertionError for another exit code (None: any)."""
        done = subprocess.run(
            [*self.command, *words],
            input=text.encode(),
            capture_output=True,
            cwd=more.pop("cwd", self.workspace),
            env=self.env | (env or {}),
            timeout=limit,
            **more,
        )
        done.stdout, done.stderr = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        if code is not None and done.returncode != code:
            raise AssertionError(
                f"engram {' '.join(words)}: exit {done.returncode}, not {code}: {(done.stdout + done.stderr)[-500:]}"
            )
        return done

    def start(self, *words, **more):
        """Start a command and return the process; stdin is a pipe, output is dropped unless `more` says otherwise."""
        more = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "cwd": self.workspace,
        } | more
        return subprocess.Popen([*self.command, *words], env=self.env, **more)

    def save(self, *texts, **more):
        """Save approved memories, one candidate a text."""
        return self.run(
            "save-session",
            "--force",
            "--scope",
            "workspace",
            text="\n".join(f"TYPE: knowledge | TEXT: {text}" for text in texts),
            **more,
        )

    def server(self, *words, **more):
        return Server(self, *(words or ("mcp", "--surface", "engram")), **more)

    def memories(self):
        """Return {path under the store: bytes} of all durable memory files."""
        found = {}
        for kind in ("rules", "skills", "knowledge"):
            folder = self.store(kind)
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
                if name.endswith(".md"):
                    with open(os.path.join(folder, name), "rb") as file:
                        found[f"{kind}/{name}"] = file.read()
        return found


class Server:
    """A server process and a legacy client for it."""

    def __init__(self, place, *words, hello=HELLO, env=None, **more):
        self.process = subprocess.Popen(
            [*place.command, *words],
            cwd=more.pop("cwd", place.workspace),
            env=place.env | (env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )
        self.lines = queue.Queue()
        self.noise = []
        self.number = 0
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self._read, self._listen)]
        for thread in self.threads:
            thread.start()
        if hello:
            self.request("initialize", hello)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _listen(self):
        for line in self.process.stderr:
            self.noise.append(line)

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, limit=60):
        """Return the next message; raises AssertionError at the end of output, queue.Empty after `limit` seconds."""
        line = self.lines.get(timeout=limit)
        if line is None:
            raise AssertionError(f"the server ended its output: {b''.join(self.noise)[-300:]}")
        return json.loads(line)

    def request(self, method, params=None, limit=60):
        """Send a request and return the whole answer to it."""
        self.number += 1
        self.send(
            {"jsonrpc": "2.0", "id": self.number, "method": method} | ({} if params is None else {"params": params})
        )
        while True:
            answer = self.receive(limit)
            if answer.get("id") == self.number and "method" not in answer:
                return answer

    def call(self, tool, arguments=None, *, ok=True):
        """Call a tool; return its result object (or the error object). Raises AssertionError when ok and it failed."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments or {}})
        result = answer.get("result", answer.get("error"))
        if ok and ("error" in answer or result.get("isError")):
            raise AssertionError(f"{tool}: {json.dumps(result)[:400]}")
        return result

    def data(self, tool, arguments=None):
        return self.call(tool, arguments)["structuredContent"]["data"]

    def close(self, limit=20):
        """Close its input and return its exit code."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not end at end of input") from None
        finally:
            for thread in self.threads:
                thread.join(5)
            self.process.stdout.close()
            self.process.stderr.close()
        return code


def whole(data):
    """Return whether bytes are a whole memory file."""
    return data.startswith(b"---\n") and b"\n---\n" in data[4:] and b"## Content" in data and data.endswith(b"\n")


def leftovers(*folders):
    """Return temporary files below the folders."""
    return [
        os.path.join(folder, name)
        for top in folders
        for folder, _, names in os.walk(top)
        for name in names
        if name.endswith(".tmp")
    ]


def bytes_below(*folders):
    """Yield (path, bytes) of every regular file below the folders."""
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as file:
                        yield path, file.read()
