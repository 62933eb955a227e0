"""Dialogues as data: recorded transcripts to replay, and golden ones whose every answer is written down.

A golden file has a JSON object a line: `{"start": {...}}` first (options of the server, `store`: make one),
then `{"c2s": message}`, `{"raw": text}` and `{"s2c": pattern}` in order. In a pattern `"<any>"` fits anything, `"<name>"` is
noted the first time and must be equal after that (also when it is sent back), a string that ends in `…`
fits what begins so, and an object with the key `…` may have more members than are named.
"""
from __future__ import annotations

import json
import os
import re

NAMED = re.compile(r"<([a-z0-9 ]+)>")


def golden(path):
    """Return (start, steps) of a golden file."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return rows[0]["start"], rows[1:]


def filled(value, known):
    """Return a message with the noted values put in for their names."""
    if isinstance(value, dict):
        return {name: filled(item, known) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, known) for item in value]
    match = NAMED.fullmatch(value) if isinstance(value, str) else None
    return known[match[1]] if match else value


def difference(pattern, value, known, path="$"):
    """Return where a message does not fit a pattern, or None; note new names in `known`."""
    if isinstance(pattern, str):
        match = NAMED.fullmatch(pattern)
        if match:
            return None if match[1] == "any" or known.setdefault(match[1], value) == value else f"{path}: not the same <{match[1]}>"
        if pattern.endswith("…") and isinstance(value, str):
            return None if value.startswith(pattern[:-1]) else f"{path}: {value!r} does not begin so"
    if isinstance(pattern, dict) and isinstance(value, dict):
        wanted = {name: item for name, item in pattern.items() if name != "…"}
        if set(wanted) - set(value) or ("…" not in pattern and set(value) - set(wanted)):
            return f"{path}: members {sorted(value)}, not {sorted(wanted)}"
        return next((found for name, item in wanted.items() if (found := difference(item, value[name], known, f"{path}.{name}"))), None)
    if isinstance(pattern, list) and isinstance(value, list) and len(pattern) == len(value):
        return next((found for at, item in enumerate(pattern) if (found := difference(item, value[at], known, f"{path}[{at}]"))), None)
    return None if pattern == value and type(pattern) is type(value) else f"{path}: {value!r}, not {pattern!r}"


def play(steps, say, hear):
    """Play a golden dialogue: `say(bytes)` sends a line, `hear()` returns the next message."""
    known = {}
    for number, step in enumerate(steps, 2):
        if "s2c" in step:
            message = hear()
            found = difference(step["s2c"], message, known)
            assert found is None, f"line {number}: {found}\n{json.dumps(message, ensure_ascii=False)}"
        else:
            say((step["raw"] if "raw" in step else json.dumps(filled(step["c2s"], known))).encode() + b"\n")


def transcripts(shared):
    """Yield (name, messages) of every process in the recorded transcripts: what the client sent, in order."""
    for folder in ("mcp-clients", "host-checks"):
        folder = os.path.join(shared, folder, "transcripts")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".jsonl") and not name.startswith("hooks."):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    rows = [json.loads(line) for line in file]
                yield from ((f"{name}#{number}", sent) for number, sent in enumerate(_processes(rows)) if sent)


def _processes(rows):
    """Part the rows by process: a `spawn` line or another pid begins one."""
    current, last = [], None
    for row in rows:
        kind = row.get("dir") or row.get("direction")
        pid = row.get("pid", last)
        if kind == "spawn" or pid != last:
            yield current
            current, last = [], pid
        if kind in ("c2s", "client->server") and "message" in row:
            current.append(row["message"])
    yield current
