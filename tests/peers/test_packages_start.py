"""The ways to start the server without a checkout, offline: npx with the npm package, uvx and pipx with the source."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

import build

pytestmark = pytest.mark.peers

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "check", "version": "0"}}}
OFFLINE = {"npm_config_offline": "true", "npm_config_update_notifier": "false", "UV_OFFLINE": "1", "PIP_NO_INDEX": "1",
           "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def cut_off():
    """Return the words that run a program without a network, [] where this system has none."""
    words = ["unshare", "--net"]
    works = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if works else []


@pytest.fixture
def source(tmp_path):
    """Return a copy of the sources, as a clone has them."""
    folder = tmp_path / "engram source"
    shutil.copytree(build.ROOT, folder, ignore=shutil.ignore_patterns(".git", ".build", "dist", "tests", "__pycache__"))
    return str(folder)


@pytest.fixture
def start(tmp_path, peer_python):
    """Return a function that starts a server, says hello and returns its answer."""
    home = tmp_path / "home"
    home.mkdir()
    peers = os.path.dirname(peer_python)

    def begin(*words, cwd):
        path = [peers, os.path.dirname(shutil.which("node") or "/usr/bin/node"), "/usr/bin", "/bin"]
        env = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": os.pathsep.join(path), **OFFLINE}
        done = subprocess.run([*cut_off(), *words], input=json.dumps(HELLO) + "\n", cwd=cwd, env=env, capture_output=True, text=True,
                              timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"]

    def needs(name):
        path = shutil.which(name, path=peers) or shutil.which(name)
        return path or pytest.skip(f"{name} is not installed")

    begin.needs = needs
    return begin


def test_npx_starts_the_npm_package(start, built, tmp_path):
    npx = start.needs("npx")
    package = build.npm_package(str(tmp_path), built)
    assert start(npx, "-y", "--package", package, "engram-mcp", cwd=str(tmp_path)) == "engram"
    os.rename(package, tmp_path / "engram.tgz")
    assert start(npx, "-y", "--package", "./engram.tgz", "engram-mcp", cwd=str(tmp_path)) == "engram"


def test_uvx_starts_from_the_source(start, source):
    uvx = start.needs("uvx")
    assert start(uvx, "--python", sys.executable, "--from", "./", "engram-mcp", cwd=source) == "engram"


def test_pipx_starts_from_the_source(start, source):
    pipx = start.needs("pipx")
    assert start(pipx, "run", "--python", sys.executable, "--spec", "./", "engram-mcp", cwd=source) == "engram"
