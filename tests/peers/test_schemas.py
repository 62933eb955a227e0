"""Every message of the golden dialogues held against the official schemas, by `../shared/mcp-clients/validate.py`."""
from __future__ import annotations

import json
import os
import subprocess

import pytest

from engram.server.engram_tools import EngramSurface
from tests.server.dialogue import golden, play
from tests.server.stub import Desk
from tests.server.test_golden import FOLDER, NAMES

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_dialogue_validates(name, shared, peer_python, tmp_path, monkeypatch):
    start, steps = golden(os.path.join(FOLDER, name + ".jsonl"))
    if start["store"]:
        (tmp_path / "ws" / ".agents" / ".engram").mkdir(parents=True)
    (tmp_path / "ws").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / "ws")
    desk = Desk(EngramSurface())
    rows, heard = [], []

    def say(line):
        try:
            rows.append({"dir": "c2s", "message": json.loads(line.decode("utf-8-sig"))})
        except ValueError:
            rows.append({"dir": "c2s", "raw": line.decode()})
        replies = desk.say(line)
        heard.extend(replies)
        # The plain result of a bare tool method is one of two messages that no schema knows (mcp.md).
        rows.extend({"dir": "s2c", "message": reply} for reply in replies
                    if not isinstance(reply, dict) or not isinstance(reply.get("result"), str))

    if not start.get("options"):
        play(steps, say, lambda: heard.pop(0))
        transcript = tmp_path / "transcript.jsonl"
        transcript.write_text("".join(json.dumps(row) + "\n" for row in rows))
        judge = os.path.join(shared, "mcp-clients", "validate.py")
        done = subprocess.run([peer_python, judge, str(transcript)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
