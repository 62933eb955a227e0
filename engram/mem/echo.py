"""Text of ours that comes back to be saved: recognised, so that memory doesn't grow by what was only read (case RK-05).

Runs inside the caller's transaction. Knows the lines that `answers` writes; must not know tools.
"""

from __future__ import annotations

import re

from engram.mem import answers

_OURS = []


def unwrap(connection, content):
    """Return (content, row): without our own lines, and the observation that the rest only repeats, or None.

    Only a text with our label is one of ours: somebody's list of `#12 [decision] …` is theirs and stays as it is.
    """
    named, mine, quoted = _forms()
    if answers.LABEL not in content or not named.search(content):
        return content, None
    ids, rest = [], []
    for line in content.splitlines():
        found = named.match(line)
        if found:
            ids.append(int(found[1]))
        elif quoted.match(line):
            rest.append(quoted.sub("", line))
        elif not mine.match(line):
            rest.append(line)
    rows = [
        row
        for id in dict.fromkeys(ids[:100])
        if id < 1 << 63
        for row in connection.execute("SELECT * FROM observations WHERE id = ? AND deleted_at IS NULL", (id,))
    ]
    if not rows:
        return content, None  # somebody's text that happens to look like ours
    known = _asked(connection) + [" ".join(answers.visible(f"{row['title']}\n{row['content']}").split()) for row in rows]
    lines = [" ".join(line.removesuffix(answers.CUT).split()) for line in rest if line.strip()]
    if all(any(line in text for text in known) for line in lines):
        return content, rows[0]
    return "\n".join(rest).strip(), None


def _asked(connection):
    # prompts and summaries stand in a context beside the rows
    found = connection.execute(
        "SELECT * FROM (SELECT content FROM prompts ORDER BY id DESC LIMIT 50) UNION ALL "
        "SELECT * FROM (SELECT summary FROM sessions WHERE summary <> '' ORDER BY started_at DESC LIMIT 20)"
    )
    return [answers.one_line(row[0]) for row in found]


def _forms():
    if not _OURS:
        _OURS.append(re.compile(r"^\s{0,4}(?:\d{1,3}\. |Memory |- )?#(\d{1,18}) \[[^\]\n]{1,200}\] .*$", re.M))
        _OURS.append(
            re.compile(
                r"\s*(?:\d{4}-\d\d-\d\d \d\d:\d\d UTC \| .*|(?:supersedes|superseded_by|conflicts): #\S+ \(.*\)|conflict: contested by .*"
                r"|Project: .* \(\w+\)|Warning: .*|[\d,]+ memor(?:y|ies)\b.*|=== (?:content|end) [0-9a-f]{8} ===|# Memory of .*"
                r"|## (?:Recent (?:sessions|prompts|observations)|Pinned)|- .*, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, (?:open|ended .*): .*"
                r"|- \d{4}-\d\d-\d\d \d\d:\d\d:\d\d|Totals: .*|Session: \S.*|Seen \d+ times, .*|Session \S.*, started .*"
                r"|Earlier, revision \d+ of .*|Asked for by: .*|(?:Approved memories of|Memories that) this project.*:"
                r"|- \[\S+\] \((?:rule|skill|knowledge), (?:workspace|global)[^)]*\) .*|"
                + "|".join(re.escape(line) for line in (answers.LABEL, answers.FOOTER))
                + r")\s*$"
            )
        )
        _OURS.append(re.compile(r"\s{0,4}> "))
    return _OURS
