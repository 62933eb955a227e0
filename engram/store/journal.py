"""The plan of a commit, written before its first step, so that a crash leaves all of it done or none.

Pure: bytes in, steps out. Once the journal is on disk the commit counts as done: readers add its hashes to the
approved ones, so old and new content of a file are both whole and approved, and the next writer finishes it
(propose.md, Verdicts). Only paths that a commit may touch are taken from it: it could have come with a
clone.
"""
from __future__ import annotations

import json
from collections import namedtuple

FILE = "journal.json"
VERSION = 1
FOLDERS = ("rules/", "skills/", "knowledge/", "archive/", "working/", "traces/", "inbox/")
LOOSE = ("pending-approvals.json",)

# op: `write` data to rel, and record sha256 for it when there is one; `drop` rel and its hash; `approve` what rel
# holds by recording sha256 alone, or forget its hash for a None
Step = namedtuple("Step", "op rel data sha256")
OPS = ("write", "drop", "approve")


def dump(steps):
    """Return the bytes of a journal."""
    from binascii import b2a_base64  # for a commit alone, as below: 0.3 ms of every start

    rows = [{"op": step.op, "file": step.rel, "sha256": step.sha256,
             "data": b2a_base64(step.data, newline=False).decode() if step.op == "write" else None} for step in steps]
    return json.dumps({"version": VERSION, "steps": rows}).encode()


def parse(raw):
    """Return the steps in a journal; none when it is absent, not whole, or names anything it may not."""
    if not raw:
        return []
    from binascii import a2b_base64

    try:
        found = json.loads(raw)
        steps = [Step(row["op"], row["file"], a2b_base64(row["data"]) if row["op"] == "write" else None, row["sha256"])
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
    return step.op in OPS and isinstance(step.rel, str) and (step.rel in LOOSE or _inside(step.rel)) \
        and (step.sha256 is None or isinstance(step.sha256, str))


def _inside(rel):
    # a path that the store would refuse must not get as far as `finish`, where it would stop every later write
    return rel.startswith(FOLDERS) and "\\" not in rel and "\0" not in rel and not {"", ".", ".."} & set(rel.split("/"))
