"""`engram hook <host>`: answer one event of a host with what its model should know now.

Must not know the hosts' formats (`hook_events`) or how memories are chosen (`recall`). People wait for this at
every prompt, so no parser runs, and in a folder without a store nothing of `recall` is loaded. It fails open
(link.md, Hooks): whatever goes wrong, the host gets its empty answer and exit code 0, and stderr says why.
"""
from __future__ import annotations

import sqlite3
from collections import namedtuple

from engram.cli import hook_events, hook_seen
from engram.cli.context import write
from engram.errors import EngramError
from engram.store import places, trust

LARGEST_EVENT = 16 * 1024 * 1024
HELP = """usage: engram hook <host>    (claude, codex, gemini, cursor, windsurf, opencode)

Reads a host's hook event as JSON on standard input and answers in the host's own format; `engram link <host>`
sets it up. Writes which memories a session got into your Engram folder, and no prompt text.
"""
UNSEEN = ("Engram: the memories of this workspace are not loaded, because the user has not trusted it yet. "
          "They can read the memories and do so with `engram trust`.")
HELD = ("Engram: rules or skills that match are left out here, because they changed since the user last looked ({}). "
        "`engram trust` shows them and lets them load.")

# What a session is about to get: the text, {key: mark} of all that it has then, the keys of the memories chosen for the
# event, and how many of those it has already. Marks that are no memory's: what it was told of trust.
Dose = namedtuple("Dose", "text marks chosen reused")


def main(words, context):
    """Answer the event on stdin for the host that `words` name. Returns 0, always."""
    if "--help" in words or "-h" in words:
        write(context.stdout, HELP)
        return 0
    name = hook_events.host(words)
    event, text = None, ""
    try:
        if name is None:
            raise ValueError(f"no such host: {' '.join(words) or '(none named)'}.")
        event = hook_events.read(name, _stdin(context), context.env)
        text = _text(name, event, context) if event else ""
    except Exception as error:  # broad like the two doors of architecture.md: a hook must never stop a prompt
        if context.env.get("ENGRAM_DEBUG"):
            raise
        context.note(f"engram hook: {error if isinstance(error, (EngramError, ValueError)) else repr(error)}")
    write(context.stdout, hook_events.answer(name, event, text) if name else "{}")
    return 0


def _stdin(context):
    if context.stdin is None or context.stdin.isatty():
        raise ValueError("no event on standard input, where a host sends it.")
    return context.stdin.buffer.read(LARGEST_EVENT)


def _text(name, event, context):
    place = places.find(event.folder, env=context.env)
    row, read, proof = hook_events.HOSTS[name], place.settings.get("read"), place.settings.get("proof") == "compact"
    if not place.stores or not (row.injects or proof):
        return ""
    if read in ("manual", "off") or read == "startup" and event.kind == hook_events.PROMPT:
        return f"Engram proof: skipped, `read` is `{read}`." if proof else ""
    if event.kind == hook_events.PROMPT and not event.prompt:
        return ""
    if place.workspace.exists and not trust.read(place).workspace_trusted:
        if next(iter(place.workspace.files()), None) is None:
            return ""
        dose = _unseen
    else:
        dose = _recalled
    session = hook_seen.Session(place.user_dir, "\0".join((name, place.root, event.session)))
    dose, new = _deliver(dose, session, place, event, row, read, context)
    told = dose.text if new and row.injects else ""
    proved = _proof(dose, new, row) if proof and told != UNSEEN else ""
    return "\n\n".join(filter(None, (proved, told)))


def _deliver(dose, session, place, event, row, read, context):
    """Return the Dose for an event, and whether the session gets it: not when it has all of it already."""
    start = event.kind == hook_events.START
    try:
        known = session.got() if row.injects and not start and read != "always" else {}
    except (sqlite3.Error, EngramError) as error:
        return _unrecorded(dose(place, event, {}), error, context)
    made = dose(place, event, known)
    try:
        if not row.injects or not (start or row.keeps):
            new = bool(made.text)
        elif start:
            new = session.begin(event.source, made.marks) and bool(made.text)
        else:
            new = bool(made.text) and (session.claim(made.marks) or read == "always")
    except (sqlite3.Error, EngramError) as error:
        return _unrecorded(made, error, context)
    return made, new


def _unrecorded(dose, error, context):
    # told twice is a smaller harm than not at all
    context.note(f"engram hook: can't keep what this session got: {error}")
    return dose, bool(dose.text)


def _unseen(place, event, known):
    marks = {"workspace": "unseen"}
    return Dose("" if marks.items() <= known.items() else UNSEEN, marks, (), 0)


def _recalled(place, event, known):
    from engram import recall  # not at the top: a folder without a store, where most hooks run, pays nothing for it

    if event.kind == hook_events.START:
        found = recall.fresh(place, "", {}, start=True, objective=place.env.get("ENGRAM_SESSION_OBJECTIVE"))
    else:
        found = recall.fresh(place, event.prompt, known)
    text, marks = found.text, dict(found.marks)
    if found.held and "held" not in known:
        text = "\n\n".join(filter(None, (text, HELD.format(len(found.held)))))
        marks["held"] = "told"
    return Dose(text, marks, sorted(found.marks), found.reused)


def _proof(dose, new, row):
    """Return the one line that says what was loaded, reused or skipped."""
    count = len(dose.chosen)
    if "workspace" in dose.marks:
        said = "skipped, this workspace is not trusted yet."
    elif not count:
        said = "skipped, nothing matches."
    elif not row.injects:
        said = f"{count} match this prompt ({', '.join(dose.chosen[:8])}); hooks can't load them here, engram_load can."
    elif not new:
        said = f"reused {count}, unchanged in this session."
    else:
        said = f"loaded {count - dose.reused}" + (f", reused {dose.reused}." if dose.reused else ".")
    return "Engram proof: " + said
