"""A machine of one user for the linker's tests: a home, a workspace, a PATH; commands run in this process."""
from __future__ import annotations

import io
import json
import os

from engram.cli.context import Context
from engram.cli.main import main

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = os.path.join(ROOT, "data", "cases")
SHIM = "#!/bin/sh\nexit 0\n"


class Machine:
    """`on_path` are the programs that PATH finds; `env` is what commands see."""

    def __init__(self, root, *, on_path=("engram", "engram-mcp"), **env):
        self.home, self.ws, self.bin = (os.path.join(root, name) for name in ("home", "my work", "bin"))
        for folder in (self.home, self.ws, self.bin):
            os.makedirs(folder)
        self.env = {"HOME": self.home, "PATH": self.bin, "LANG": "C.UTF-8", **env}
        for name in on_path:
            self.program(name)

    def program(self, name, text=SHIM):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def run(self, *words, code=0):
        """Run a command; return its text on stdout and stderr, joined. `code` None: any."""
        out, err = io.StringIO(), io.StringIO()
        got = main(list(words), context=Context(env=self.env, cwd=self.ws, stdin=io.StringIO(), stdout=out, stderr=err))
        assert code is None or got == code, f"{words}: exit {got}\n{out.getvalue()}\n{err.getvalue()}"
        assert "internal error" not in err.getvalue()
        self.code, self.err = got, err.getvalue()
        return out.getvalue() + err.getvalue()

    def json(self, *words, code=0):
        """Run a command with --json and return the envelope."""
        return json.loads(self.run(*words, "--json", code=code))

    def path(self, name):
        return os.path.join(self.home, name[2:]) if name.startswith("~/") else os.path.join(self.ws, name)

    def write(self, name, data, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        os.chmod(path, mode)
        return path

    def read(self, name):
        """Return a file's bytes, or None."""
        try:
            with open(self.path(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def tree(self):
        """Return {path: (kind or content, mode, inode, time of change)} of home and workspace but for Engram's own folder."""
        found = {}
        for top in (self.home, self.ws):
            for folder, folders, names in os.walk(top):
                if folder == self.home and ".engram" in folders:
                    folders.remove(".engram")
                for name in folders + names:
                    path = os.path.join(folder, name)
                    state = os.lstat(path)
                    kind = os.readlink(path) if os.path.islink(path) else "folder" if os.path.isdir(path) else open_bytes(path)
                    found[path] = (kind, state.st_mode, state.st_ino, state.st_mtime_ns if not os.path.isdir(path) else 0)
        return found

    def contents(self):
        """Return {path: kind or content} as `tree`."""
        return {path: state[0] for path, state in self.tree().items()}


def open_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def case(name):
    """Return the bytes of a case file."""
    return open_bytes(os.path.join(CASES, *name.split("/")))
