"""What real clients and hosts sent, replayed: one reply for each request, none for anything else."""
from __future__ import annotations

import json
import subprocess
from collections import Counter

import pytest

from tests.server.dialogue import transcripts
from tests.server.process import STUB
from tests.server.stub import Desk
from tests.trials import count


def wanted(sent):
    return Counter(repr(message["id"]) for message in sent if "method" in message and "id" in message)


def answered(replies):
    return Counter(repr(message["id"]) for message in replies if "method" not in message)


def test_every_transcript_replays_in_memory(shared):
    seen = 0
    for name, sent in transcripts(shared):
        desk = Desk()
        desk.say(*sent)
        desk.loop.end()
        assert answered(desk.out) == wanted(sent), name
        seen += 1
    assert seen >= 60


def replayed(command, sent, cwd):
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in sent)
    done = subprocess.run(command, input=lines, capture_output=True, timeout=60, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_transcript_replays_when_all_of_it_comes_at_once(shared, tmp_path):
    for name, sent in transcripts(shared):
        if "opencode" in name or "elicit" in name:
            assert answered(replayed(STUB, sent, tmp_path)) == wanted(sent), name


@pytest.mark.built
@pytest.mark.parametrize("surface", ["engram", "mem", "all"])
def test_every_transcript_replays_on_the_built_file(shared, built, tmp_path, surface):
    # The session surface answers the same requests by the same loop: every fourth will do in everyday runs.
    step = 1 if surface == "engram" else count(4, 1)
    for name, sent in list(transcripts(shared))[::step]:
        assert answered(replayed([built, "mcp", "--surface", surface], sent, tmp_path)) == wanted(sent), name
