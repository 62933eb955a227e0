"""The plan of a commit, written before its first step, so that a crash leaves all of it done or none.

Pure: bytes in, steps out. A step is (rel, data or None to drop, hash to record or None, expected hash or None).
Once the journal is on disk the commit counts as done: readers add its hashes to the approved ones, so old
and new content of a file are both whole and approved, and the next writer finishes it (propose.md,
Verdicts). Only paths that a commit may touch are taken from it: it could have come with a clone.
"""
from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import namedtuple

FILE = "journal.json"
VERSION = 1
FOLDERS = ("rules/", "skills/", "knowledge/", "archive/", "working/", "traces/", "inbox/")
LOOSE = ("pending-approvals.json",)
Step = namedtuple("Step", "rel data sha256 forget", defaults=(None, False))


def dump(steps):
    """Return the bytes of a journal. A Step has `rel`, `data` (None drops the file), `sha256` to record for it
    (None records nothing) and `forget` (whether the path's recorded hash goes)."""
    rows = [{"file": s.rel, "data": None if s.data is None else b64encode(s.data).decode(), "sha256": s.sha256, "forget": s.forget}
            for s in steps]
    return json.dumps({"version": VERSION, "steps": rows}).encode()


def parse(raw):
    """Return the steps in a journal; none when it is absent, not whole, or names anything it may not."""
    if not raw:
        return []
    try:
        found = json.loads(raw)
        steps = [Step(row["file"], None if row["data"] is None else b64decode(row["data"], validate=True), row["sha256"], row["forget"])
                 for row in found["steps"]]
        right = found["version"] == VERSION and all(_allowed(step) for step in steps)
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return steps if right else []


def approved(steps):
    """Yield (rel, sha256) that the steps are about to record."""
    for step in steps:
        if step.sha256:
            yield step.rel, step.sha256


def _allowed(step):
    return isinstance(step.rel, str) and (step.rel in LOOSE or step.rel.startswith(FOLDERS)) \
        and (step.sha256 is None or isinstance(step.sha256, str)) and isinstance(step.forget, bool)
