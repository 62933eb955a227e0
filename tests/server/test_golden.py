"""Golden dialogues: every answer of both eras written down, played in memory and against the built file."""
from __future__ import annotations

import os
from collections import deque

import pytest

from engram.server.engram_tools import EngramSurface
from engram.server.start import Options
from tests.server.dialogue import golden, play
from tests.server.process import Server
from tests.server.stub import Desk

FOLDER = os.path.join(os.path.dirname(__file__), "..", "data", "transcripts")
NAMES = sorted(name.removesuffix(".jsonl") for name in os.listdir(FOLDER))


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """Return a function that makes a workspace for a dialogue and goes there."""

    def make(start):
        folder = tmp_path / "my work"
        folder.mkdir()
        if start["store"]:
            (folder / ".agents" / ".engram").mkdir(parents=True)
        monkeypatch.chdir(folder)
        return folder

    return make


@pytest.mark.case("RP-01", "RP-02", "AP-01")
@pytest.mark.parametrize("name", NAMES)
def test_a_golden_dialogue_plays_in_memory(name, workspace):
    start, steps = golden(os.path.join(FOLDER, name + ".jsonl"))
    folder = workspace(start)
    options = Options(start.get("options", ()), "engram")
    desk = Desk(EngramSurface(options.always_load), workspace=str(folder), elicit=not options.no_elicitation)
    heard = deque()

    def hear():
        assert heard, "no answer"
        return heard.popleft()

    def say(line):
        assert not heard, f"unexpected: {heard}"
        desk.clock.now += 1
        heard.extend(desk.say(line))

    play(steps, say, hear)
    assert not heard and desk.notes == []


@pytest.mark.built
@pytest.mark.parametrize("name", NAMES)
def test_a_golden_dialogue_plays_against_the_built_file(name, workspace, built, tmp_path):
    start, steps = golden(os.path.join(FOLDER, name + ".jsonl"))
    folder = workspace(start)
    command = os.path.join(tmp_path, "engram-mcp")
    os.symlink(built, command)
    with Server([command, *start.get("options", ())], cwd=folder) as server:
        play(steps, server.send, server.receive)
        assert server.end() == 0
        assert server.rest() == []
        assert b"Traceback" not in server.errors
        assert (b"--no-such-option" in server.errors) == ("--no-such-option" in start.get("options", ()))
