"""Notes: the working tier (propose.md, Notes). Proposed like a memory, kept beside the memories, gone after a while.

Reads and plans; `commit` writes. Must not know who asks the human.
"""

from __future__ import annotations

from engram.errors import MemoryFileError, NotFound, Refused, StorageError, UsageError
from engram.propose import candidates, compose, plan, screen, verdict
from engram.propose.proposal import NOTE, Proposal, Row, Write
from engram.store import dates, ids, memory
from engram.store.author import author

FOLDER = "working"
LONGEST = candidates.LARGEST


def proposal(place, text, *, objective=None, type=None, scope=None):
    """Return the Proposal of one note. Raises UsageError, Refused."""
    if scope == "both":
        raise UsageError("a note lies in one store: scope is workspace or global.")
    scopes, diagnostics = plan.scopes(place, scope or ("global" if place.global_only else "workspace"))
    if len(text) > 2 * LONGEST:  # said before a long text is scanned for nothing
        raise UsageError(f"the note is larger than {LONGEST // 1024} KiB.")
    clean, findings = screen.screened(candidates.clean(text).strip())
    if not clean:
        raise UsageError("a note needs a text.")
    if len(clean.encode()) > LONGEST:
        raise UsageError(f"the note has {len(clean.encode())} bytes, and at most {LONGEST} fit.")
    screen.refuse_orders(clean, "the note")
    objective, more = screen.screened(candidates.clean(objective or ""))
    objective = " ".join(objective.split())
    screen.refuse_orders(objective, "the objective")
    type = candidates.read_type(type) if type else "knowledge"
    store = place.store_of(scopes[0])
    signed, notes = author(place)
    today, until = dates.today(), dates.day_after(place.settings.get("load.working_ttl_days"))
    id = _free_id(store, compose.wanted_id(clean, type))
    header = {
        "schema_version": 3,
        "id": id,
        "type": type,
        "scope": store.scope,
        "source": "note",
        "tier": "working",
        "objective": objective or None,
        "author_name": signed[0],
        "author_email": signed[1],
        "authority": "reference",
        "confidence": "medium",
        "revision": 1,
        "created": today,
        "updated": today,
        "valid_from": today,
        "last_confirmed": today,
        "valid_until": until,
    }
    rel = f"{FOLDER}/{id}.md"
    raw = memory.new(header, memory.title_of(clean), [("Content", compose.content(clean))])
    row = Row(
        number=1,
        scope=store.scope,
        type=type,
        verdict=verdict.ADD,
        id=id,
        rel=rel,
        redacted=[*findings, *more],
        notes=[f"kept until {until}, in the git-ignored {FOLDER}/ folder"],
        fields={"type": type, "text": clean},
        writes=[Write(rel, None, raw.decode("utf-8"))],
    )
    return Proposal(NOTE, [row], scopes, [*diagnostics, *notes], extra={"valid_until": until})


def find(place, id):
    """Return (store, Memory) of a note. Raises NotFound for one that is not there or no longer valid."""
    ids.check(id)
    for store in place.need_stores():
        try:
            found = store.read(f"{FOLDER}/{id}.md")
        except (NotFound, MemoryFileError, StorageError, Refused):
            continue
        if not over(found):
            return store, found
    raise NotFound(f"there is no note `{id}`.", hint="engram list shows notes.")


def over(note, now=None):
    """Whether a note is past its `valid_until`."""
    return note.valid_until is not None and note.valid_until <= (dates.instant(dates.stamp()) if now is None else now)


def _free_id(store, wanted):
    taken = set()
    while True:
        made = ids.unique(wanted, taken)
        try:
            store.read_bytes(f"{FOLDER}/{made}.md")
        except NotFound:
            return made
        taken.add(made.lower())
