"""What a human is shown: for each candidate its verdict and exactly the text that would be written.

Every line of a file stands behind a bar and every changed line behind `+` or `-`, so that a memory's text
can't pass for a line of Engram's. Pure; must not know terminals: colour and control characters are theirs.
"""

from __future__ import annotations

import difflib
import time

from engram.propose import screen

BAR, PLUS, MINUS, SAME = "  | ", "  + ", "  - ", "    "
CONTEXT_LINES = 3


def proposal(made, *, explain=False):
    """Return the preview of a Proposal."""
    numbers = {row.number for row in made.rows}
    what = "a note" if made.kind == "note" else "1 candidate" if len(numbers) == 1 else f"{len(numbers)} candidates"
    lines = [f"Engram proposal: {what} for {' and '.join(made.scopes)}. Nothing is written yet."]
    shown = {}
    for row in made.rows:
        lines += ["", *candidate(row, shown, explain=explain)]
    return "\n".join(lines) + "\n"


def candidate(row, shown, *, explain=False):
    """Return the lines of one row; `shown` holds the texts above, so that the second store names its twin."""
    lines = [f"[{row.number}] {row.type} {row.id} ({row.scope})"]
    lines.append(f"Verdict: {row.verdict}" + (" duplicate of" if row.verdict == "NOOP" else "") + (f" {row.target}" if row.target else ""))
    for kind, id in row.hints:
        resolve = "DEPENDS_ON" if kind == "suggested DEPENDS_ON" else "NOT_DUPLICATE"
        lines.append(f"Hint: {kind} {id}; deferred unless the candidate says {resolve}: {id}")
    if row.redacted:
        lines.append(f"Redacted: {screen.described(row.redacted)}")
    lines += [f"Note: {note}" for note in row.notes]
    if explain:
        lines += [f"Because: {why}" for why in row.why]
    for write in row.writes:
        old = (row.old or {}).get(write.rel)
        lines.append(f"File: {row.scope}:{write.rel}" + ("" if old is None else ", changed"))
        twin = shown.get((row.number, write.rel))
        if old is not None:
            lines += difference(old, write.text)
        elif twin is not None and twin == _unscoped(write.text):
            lines.append(f"{SAME}(as above, with `scope: {row.scope}`)")
        else:
            lines += [BAR + line for line in write.text.removesuffix("\n").split("\n")]
            shown[row.number, write.rel] = _unscoped(write.text)
    return lines


def difference(old, new):
    """Return the lines of a diff of two texts, each behind its mark, with three lines around each change."""
    lines = []
    old_lines, new_lines = (text.replace("\r\n", "\n").split("\n") for text in (old, new))
    groups = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_grouped_opcodes(CONTEXT_LINES)
    for number, group in enumerate(groups):
        if number or group[0][1]:
            lines.append(f"{SAME}… line {group[0][3] + 1}")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [SAME + line for line in old_lines[i1:i2]]
            else:
                lines += [MINUS + line for line in old_lines[i1:i2]]
                lines += [PLUS + line for line in new_lines[j1:j2]]
    return lines


def how_to_commit(made):
    """Return what has to happen with the token, for an agent whose host has no dialog."""
    choice = '"all"' if made.kind == "note" or len(made.numbers) == 1 else f'"all" or a list of {made.numbers}'
    return (
        f"Nothing was saved. Show this to the human. After their yes, call engram_commit with approval_token "
        f"{made.token} and approve {choice}. Good once, until {made.expires_at}. "
        "Without a yes, do nothing; `engram pending` shows it too."
    )


def instant(seconds):
    """Return seconds since 1970 as 2026-11-30T15:01:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _unscoped(text):
    """Return a file's text without its scope line, to see whether two stores get the same."""
    head, mark, rest = text.partition("\nscope: ")
    return head + mark + rest.partition("\n")[2] if mark else text
