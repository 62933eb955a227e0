"""Recall in the real hosts, offline, against a fake model: a linked host calls engram_load and the memory reaches the model.

`../shared/host-checks/e2e.py` runs the host; hosts are the npm peers.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.peers

SENTENCE = "The zeppelin hangar answers on port 5520."


@pytest.mark.parametrize("host", ["claude", "codex", "gemini", "opencode"])
def test_a_memory_reaches_the_model_through_engram_load(host, tmp_path, built, shared, peer_command):
    command = peer_command(host)
    home, ws, bin = (tmp_path / name for name in ("home", "my work", "bin"))
    for folder in (home, ws, bin):
        folder.mkdir()
    for name in ("engram", "engram-mcp"):
        (bin / name).symlink_to(built)
    (bin / "python3").symlink_to(os.path.realpath(sys.executable))
    path = [str(bin), os.path.dirname(command), "/usr/local/bin", "/usr/bin", "/bin"]
    env = {"HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb", "PATH": os.pathsep.join(path)}

    def run(*words, text="", seconds=300):
        done = subprocess.run(words, input=text, cwd=ws, env=env, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
        return done.stdout

    run("git", "init", "-q", ".")
    run(str(bin / "engram"), "inject")
    run(str(bin / "engram"), "save-session", "--force", text=f"TYPE: knowledge | TEXT: {SENTENCE}\n")
    # No hooks and no instructions: what reaches the model came through the tool.
    level = ["--global"] if host == "codex" else []
    run(str(bin / "engram"), "link", *level, "--no-hooks", "--no-instructions", host)
    out = run(sys.executable, os.path.join(shared, "host-checks", "e2e.py"), host, str(ws), str(home), "--bin", command,
              "--tool", "engram_load", "--args", json.dumps({"query": "the port of the zeppelin hangar"}), "--expect", SENTENCE,
              "--prompt", "Please look it up.")
    assert json.loads(out)["ok"] is True
