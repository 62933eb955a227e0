"""What all tests share: a clean environment, the built file, the Pythons, the case files and the peers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

import build

ROOT = build.ROOT
# What a developer's shell may set and a test must not see.
FOREIGN = (
    "XDG_",
    "ENGRAM_",
    "CODEX_",
    "CLAUDE",
    "GEMINI_",
    "OPENCODE_",
    "PYTHON",
    "SHIV_",
    "GIT_",
    "AGENTS_",
    "COPILOT_",
)
KEPT = ("ENGRAM_TRIALS", "ENGRAM_SEED", "ENGRAM_PEERS_PYTHON", "ENGRAM_PEERS_BIN", "PYTHONDONTWRITEBYTECODE")
PYENV = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")


@pytest.fixture(autouse=True)
def clean_environment(tmp_path_factory, monkeypatch):
    """Give each test an empty home and none of the developer's settings; return the home."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(FOREIGN) and name not in KEPT or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("PYENV_ROOT", PYENV)  # else the other Pythons are out of sight with the real home
    return home


@pytest.fixture(scope="session")
def shared():
    """Return the folder of acceptance material beside the checkout; skip where it is not there."""
    folder = os.path.join(os.path.dirname(ROOT), "shared")
    if not os.path.isdir(folder):
        pytest.skip("no ../shared beside this checkout")
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Return a copy of dist/engram, built anew when a source is younger; a build meanwhile does not disturb it."""
    out = os.path.join(build.DIST, "engram")
    newest = max(os.path.getmtime(os.path.join(ROOT, *name.split("/"))) for name, _ in build.sources())
    if not os.path.exists(out) or os.path.getmtime(out) < max(newest, os.path.getmtime(build.__file__)):
        subprocess.run([sys.executable, build.__file__], check=True, env=os.environ, capture_output=True)
    copy = shutil.copy(out, tmp_path_factory.mktemp("built") / "engram")
    build.alias(str(copy))
    return str(copy)


@pytest.fixture(scope="session")
def pythons():
    """Return {"3.11": path, …}: the supported interpreters of this machine."""
    return build.pythons()


@pytest.fixture
def run(built, tmp_path, clean_environment):
    """Return a function that runs the built file: `run("load", "x", text=…, cwd=…, env={…}, code=0)`."""

    def start(*words, text=None, cwd=None, env=None, code=0, python=sys.executable, file=None):
        done = subprocess.run(
            [python, "-I", "-S", file or built, *words],
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=cwd or tmp_path,
            env=os.environ | (env or {}),
            timeout=120,
        )
        assert code is None or done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return start


@pytest.fixture(scope="session")
def peer_python():
    """Return a Python that has the official MCP SDK and jsonschema; skip, saying how to get it, without."""
    path = os.environ.get("ENGRAM_PEERS_PYTHON") or os.path.join(build.WORK, "peers", "bin", "python")
    if not os.path.exists(path):
        pytest.skip("the Python peers are not installed (build.py test --peers)")
    return path


@pytest.fixture(scope="session")
def peer_command():
    """Return a function: the path of a host's command among the npm peers or on PATH; skips without it."""

    def find(name):
        folder = os.environ.get("ENGRAM_PEERS_BIN") or os.path.join(build.WORK, "peers-npm", "node_modules", ".bin")
        path = shutil.which(name, path=folder) or shutil.which(name)
        return path or pytest.skip(f"{name} is not installed")

    return find
