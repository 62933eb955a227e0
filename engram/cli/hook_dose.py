"""What a session is told at an event: what it does not have yet of the memories that matter, and of trust one line.

Must not know how memories are chosen (`recall`), nor any host by name: its row says what differs.
"""
from __future__ import annotations

from collections import namedtuple

from engram import recall
from engram.cli import hook_events, hook_seen
from engram.errors import EngramError
from engram.store import trust

UNSEEN = ("Engram: the memories of this workspace are not loaded, because the user has not trusted it yet. "
          "They can read the memories and do so with `engram trust`.")
HELD = ("Engram: rules or skills left out here, because they changed since the user last looked: {}. "
        "`engram trust` shows them and lets them load.")

# What a session is about to get: the text, {key: mark} of all that it has then, the keys of the memories chosen for the
# event, and how many of those it has already. Marks that are no memory's say what it was told of trust.
Dose = namedtuple("Dose", "text marks chosen reused")


def text(place, host, row, event, read, proof, note):
    """Return what to tell the session at an event, "" for nothing; record that it was told.

    `read` and `proof` are the settings of these names; `note(line)` hears what could not be recorded.
    """
    choose = _recalled
    if place.workspace.exists and not trust.read(place).workspace_trusted:
        choose = _unseen
        if next(iter(place.workspace.files()), None) is None:
            return ""
    # by its id alone where it has one: a host that also runs another host's hooks reports one session to both
    session = hook_seen.Session(place.user_dir, "\0".join((place.root, event.session or host)))
    try:
        dose, new = _deliver(choose, session, place, event, row, read)
    except (hook_seen.Error, EngramError) as error:
        # told twice is a smaller harm than not at all
        note(f"engram hook: can't keep what this session got: {error}")
        dose = choose(place, event, {})
        new = bool(dose.text)
    told = dose.text if new and row.injects else ""
    proved = _proof(dose, new, row) if proof and told != UNSEEN else ""
    return "\n\n".join(filter(None, (proved, told)))


def _deliver(choose, session, place, event, row, read):
    """Return the Dose for an event, and whether the session gets it: not when it has all of it already."""
    start, kept = event.kind == hook_events.START, (hook_events.START, hook_events.PROMPT)
    if start:  # what a host's own store of the conversation brings back is there already
        kept = row.resumed if event.source == "resume" else ()
    dose = choose(place, event, session.got(kept) if row.injects and kept and read != "always" else {})
    if start and row.injects:
        return dose, session.begin(event.source, dose.marks, kept=kept) and bool(dose.text)
    if not dose.text or not row.injects or not row.keeps:
        return dose, bool(dose.text)
    return dose, session.claim(dose.marks) or read == "always"


def _unseen(place, event, known):
    marks = {"workspace": "unseen"}
    return Dose("" if marks.items() <= known.items() else UNSEEN, marks, (), 0)


def _recalled(place, event, known):
    if event.kind == hook_events.START:
        found = recall.fresh(place, "", known, start=True, objective=place.env.get("ENGRAM_SESSION_OBJECTIVE"))
    else:
        found = recall.fresh(place, event.prompt, known)
    said, marks = found.text, dict(found.marks)
    if found.held and "held" not in known:
        said = "\n\n".join(filter(None, (said, HELD.format(len(found.held)))))
        marks["held"] = "told"
    return Dose(said, marks, sorted(found.marks), found.reused)


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
