"""The human at a terminal: show a proposal, ask, and hand the answer to the committer (propose.md).

Must not know what is proposed. Control characters are made visible before anything reaches the terminal.
"""

from __future__ import annotations

import re

from engram import propose
from engram.cli.main import clean
from engram.errors import HumanNeeded, Result
from engram.propose import preview

NEEDED = "Nothing was saved: approval needs a person at a terminal. With a human's yes, run it again with --force."
REJECTED = "Rejected. Nothing was written."
_ANSWER = re.compile(r"\s*([AaBbCc])(?:\s+(.*?))?\s*")
_COLOURS = (
    (preview.PLUS, ("green",)),
    (preview.MINUS, ("red",)),
    ("Verdict: ", ("bold",)),
    ("Hint: ", ("yellow",)),
    ("Redacted: ", ("yellow",)),
    ("Note: ", ("yellow",)),
    ("File: ", ("dim",)),
)


def show(context, text):
    """Show a preview: coloured on a terminal, every character that it would obey written out."""
    lines = []
    for line in clean(text).rstrip("\n").split("\n"):
        colours = next((names for start, names in _COLOURS if line.startswith(start)), ())
        lines.append(context.paint(line, *colours) if colours else line)
    context.show("\n".join(lines))


def ask(context, numbers, *, noun="candidate"):
    """Ask until the answer is one: (approve, note) for a yes, None for a no or the end of input."""
    several = len(numbers) > 1
    prompt = "A accept" + (" all, A 1,3 accept some" if several else "") + ", B <note> accept with a note, C reject: "
    while True:
        line = context.ask(prompt)
        if line is None:
            return None
        found = _ANSWER.fullmatch(line)
        if not found:
            continue
        letter, rest = found[1].upper(), (found[2] or "").strip()
        if letter == "C" and not rest:
            return None
        if letter == "B" and rest:
            return "all", rest
        if letter == "A":
            chosen = _numbers(rest) if rest else "all"
            if chosen == "all" or chosen and set(chosen) <= set(numbers):
                return chosen, None
            context.show(f"There is {noun} {', '.join(map(str, numbers))}.")


def _numbers(text):
    """Return [1, 3] for "1,3" or "1 3"; None for anything else."""
    parts = re.split(r"[\s,]+", text)
    return [int(part) for part in parts] if all(re.fullmatch(r"[0-9]{1,4}", part) for part in parts) else None


def settle(context, proposal, *, force):
    """Show a proposal, get its answer and carry it out; a Result (exit 3 when nobody is there to answer)."""
    if not proposal.asks:
        return Result({"candidates": proposal.candidates, "saved": [], "deferred": []}, proposal.text, proposal.diagnostics)
    if force:
        return _done(propose.accept(context.place, proposal, by="force"))
    show(context, proposal.text)
    if not context.interactive:
        return Result({"candidates": proposal.candidates}, NEEDED, proposal.diagnostics, exit_code=3, error=(HumanNeeded.code, NEEDED))
    answer = ask(context, proposal.numbers)
    if answer is None:
        return Result({"saved": [], "deferred": []}, REJECTED, exit_code=1)
    approve, note = answer
    return _done(propose.accept(context.place, proposal, approve, by="terminal", note=note))


def _done(result):
    """Exit 1 when all that was approved was put off: then the answer to "save this" is no."""
    if result.data.get("deferred") and not result.data.get("saved"):
        result.exit_code = 1
    return result
