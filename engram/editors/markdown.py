"""Keep one managed block in a Markdown file, between two marker lines. Text around it stays as it is.

Must not know files or hosts, nor what the block says. A marker counts where it stands alone on a line outside a
code fence. As in `editors/toml.py`, one empty line goes in before the block, and a line end after it only where the
text had one: that is enough to take the block out exactly.
"""
from __future__ import annotations

from engram.editors.source import BOM, newline_of, unreadable

START = "<!-- engram:start -->"
END = "<!-- engram:end -->"


def put_block(text, lines):
    """Return `text` with `lines` between the markers: in place of the block that is there, else at the end.

    Raises Unreadable for a marker without its partner or a second block: nobody can say whose text is between.
    """
    newline = newline_of(text)
    block = newline.join([START, *lines, END])
    found = _find(text)
    if found:
        return text[:found[0]] + block + text[found[1]:]
    body = text.removeprefix(BOM)
    ended = not body or body.endswith("\n")
    before = "" if not body else newline if ended else newline * 2
    return text + before + block + (newline if ended else "")


def drop_block(text):
    """Return `text` without the block; unchanged when there is none. Raises Unreadable as `put_block`."""
    found = _find(text)
    if not found:
        return text
    start, end = found
    closed = text.startswith("\n", end) or text.startswith("\r\n", end)
    if closed:
        end = text.index("\n", end) + 1
    start -= len(_empty_line_before(text, start))
    if not closed:
        start -= len(_line_end_before(text, start))
    return text[:start] + text[end:]


def block_of(text):
    """Return the lines between the markers, or None. Raises Unreadable as `put_block`."""
    found = _find(text)
    return text[found[0]:found[1]].splitlines()[1:-1] if found else None


def _find(text):
    """Return (start, end) of the block with its markers, or None."""
    starts, ends = [], []
    lines = text.split("\n")
    fenced = _fenced(lines)
    at = 0
    for number, line in enumerate(lines):
        bare = line.strip().removeprefix(BOM) if number == 0 else line.strip()
        if bare == START and number not in fenced:
            starts.append(at + line.index(START))
        elif bare == END and number not in fenced:
            ends.append(at + line.index(END) + len(END))
        at += len(line) + 1
    if not starts and not ends:
        return None
    if len(starts) == len(ends) == 1 and starts[0] < ends[0]:
        return starts[0], ends[0]
    marks = sorted([(at, "start") for at in starts] + [(at - len(END), "end") for at in ends])
    odd = next((at for (at, kind), wanted in zip(marks, ("start", "end")) if kind != wanted), marks[2 if len(marks) > 2 else 0][0])
    raise unreadable(text, odd, f"the markers `{START}` and `{END}` should stand there once each, in this order")


def _line_end_before(text, start):
    return "\r\n" if text[:start].endswith("\r\n") else "\n" if text[:start].endswith("\n") else ""


def _empty_line_before(text, start):
    end = _line_end_before(text, start)
    before = text[:start - len(end)]
    return end if end and (not before or before.endswith(("\n", BOM))) else ""


def _fenced(lines):
    """Return the numbers of the lines in code fences that are closed; what follows one that never is counts as text."""
    fences = []  # (number, sign, length, whether it may close)
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare[:3] in ("```", "~~~"):
            length = len(bare) - len(bare.lstrip(bare[0]))
            fences.append((number, bare[0], length, length == len(bare)))
    longest, most = [], {}
    for _, sign, length, closes in reversed(fences):
        longest.append(most.get(sign, 0))  # the longest fence after this one that may close it
        if closes:
            most[sign] = max(length, most.get(sign, 0))
    longest.reverse()
    within, opening = set(), None
    for (number, sign, length, closes), after in zip(fences, longest):
        if opening and closes and sign == opening[1] and length >= opening[2]:
            within.update(range(opening[0], number + 1))
            opening = None
        elif opening is None and after >= length:
            opening = (number, sign, length)
    return within
