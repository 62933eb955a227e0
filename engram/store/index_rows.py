"""One memory as a row of the index: what ranking and listing need to know without its file.

Pure but for the scan that it calls. Nothing in a row is believed on its own: a row can come with a clone. `seal` binds what
was found out about a content (approval, safety scan, card) to that content under a key of the user's (upstream-format.md S-2).
"""
from __future__ import annotations

import json
import os
from collections import namedtuple

from engram import files, safety
from engram.errors import EngramError
from engram.store import dates
from engram.store import memory as memories
from engram.text.words import terms

APPROVED, EDITED, UNKNOWN, UNREADABLE, GONE = range(5)
STATES = ("approved", "edited", "not approved", "unreadable", "gone")
UNSCANNED = "?"  # in `flagged`: the safety scan waits for the first time that the memory is looked at
START_TAGS = frozenset(("always-load", "session-start"))

# rel to lf: the file; state to seal: what was found out; name to start: columns to choose by
_Columns = namedtuple("_Columns", "id rel stat sha lf state flagged card seal name type hidden valid_from valid_until roles updated start")
COLUMNS = ", ".join(_Columns._fields)
SCHEMA = """
CREATE TABLE doc (id INTEGER PRIMARY KEY, rel TEXT NOT NULL UNIQUE, stat TEXT NOT NULL, sha TEXT NOT NULL, lf TEXT NOT NULL,
    state INTEGER NOT NULL, flagged TEXT NOT NULL, card TEXT NOT NULL, seal TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
    hidden TEXT NOT NULL, valid_from REAL, valid_until REAL, roles TEXT NOT NULL, updated REAL NOT NULL, start INTEGER NOT NULL);
CREATE INDEX doc_name ON doc (name);
CREATE INDEX doc_updated ON doc (updated DESC, rel);
CREATE INDEX doc_start ON doc (start, updated DESC, rel);
CREATE INDEX doc_state ON doc (state) WHERE state IN (1, 3, 4);
"""


class Row(_Columns):
    """A row of the table `doc`."""

    __slots__ = ()

    def read_card(self) -> dict:
        """Return what `card` made; for a sealed row only."""
        return json.loads(self.card)


def stat_text(found, now_ns: int) -> str:
    """Return what changes with a file, as text; empty when it is so young, or dated ahead, that a change might not show.

    A clock tick of the file system is up to 10 ms, of some network ones 2 s, which whole seconds give away.
    """
    # st_ctime moves with every write and nobody can set it; on Windows it is the time of creation
    latest = found.st_ctime_ns if os.name == "posix" else found.st_mtime_ns
    grain = 50_000_000 if latest % 1_000_000_000 else 2_000_000_000
    if latest > now_ns - grain:
        return ""
    return f"{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_size}.{found.st_ino}"


def state_of(known, rel: str, sha: str, lf: str) -> int:
    """Return the state of a content under a file's approved hashes; `lf` is the hash of its form with plain line ends."""
    if known.approves(rel, sha) or (lf and known.approves(rel, lf)):
        return APPROVED
    return EDITED if known.known(rel) else UNKNOWN


def of_memory(number: int, memory, stat: str, known, key: bytes, *, scan=True) -> Row:
    """Return the row of a readable memory file; scans its text unless that can wait."""
    lf = files.sha256(memory.raw.replace(b"\r\n", b"\n")) if b"\r\n" in memory.raw else ""
    state = state_of(known, memory.rel, memory.sha256, lf)
    flagged = scanned(memory) if scan else UNSCANNED
    made = json.dumps(card(memory), ensure_ascii=False, separators=(",", ":"))
    tags = START_TAGS.intersection(tag.lower() for tag in memory.tags)
    row = Row(number, memory.rel, stat, memory.sha256, lf, state, flagged, made, "", memory.id.lower(), memory.type, hidden(memory),
              memory.valid_from, memory.valid_until, "\n".join(role.lower() for role in memory.role), updated(memory),
              0 if tags else 1 if memory.type == "rule" else 2)
    return row._replace(seal=seal(row, key))


def of_fault(number: int, rel: str, sha: str, stat: str, message: str) -> Row:
    """Return the row of a file that can't be read as a memory."""
    return Row(number, rel, stat, sha, "", UNREADABLE, "", message, "", "", "", "unreadable", None, None, "", 0.0, 2)


def of_absence(number: int, rel: str) -> Row:
    """Return the row of a file that was approved and isn't there."""
    return of_fault(number, rel, "", "", "")._replace(state=GONE, hidden="gone")


def seal(row: Row, key: bytes) -> str:
    """Return what binds the findings of a row to its content; empty without a key."""
    if not key:
        return ""
    text = "\0".join(("engram row 1", row.rel, row.sha, str(row.state), row.flagged, row.card, row.name)).encode("utf-8", "surrogatepass")
    return files.sha256(key + files.sha256(key + text).encode())[:32]


def scanned(memory) -> str:
    """Return why the safety scan keeps a memory out, or an empty text."""
    outcome = safety.scan_file(memory.raw.decode("utf-8", "replace"))
    found = [*outcome.instructions, *outcome.findings]
    return f"line {found[0].line}: {found[0].label}" if found else ""


def hidden(memory) -> str:
    """Return `archived` or `superseded` for a memory that left routing by its own header, else an empty text."""
    if memory.lifecycle.lower() == "archived":
        return "archived"
    return "superseded" if memory.superseded_by or memory.lifecycle.lower() == "superseded" else ""


def updated(memory) -> float:
    """Return the instant of a memory's last change in seconds since 1970, 0 when it names none that can be read."""
    for key in ("updated", "last_confirmed", "created", "valid_from"):
        try:
            return float(dates.instant(memory.text(key)))
        except ValueError:
            continue
    return 0.0


def card(memory) -> dict:
    """Return what a one-line card shows."""
    return {"id": memory.id, "type": memory.type, "title": memory.title, "summary": memory.summary, "tags": memory.tags,
            "confidence": memory.confidence, "authority": memory.authority}


def fields(memory) -> tuple[str, str, str]:
    """Return the texts that are searched: title and id, tags and triggers, content."""
    tags = [tag.removeprefix("task_type:") for tag in memory.tags]
    title = memory.title
    said = set(terms(title))
    if not said.issuperset(terms(memory.id)):  # an id that is the title in short would count it twice
        title += "\n" + memory.id
    return (title, "\n".join([*tags, *memory.triggers]), searched(memory))


def searched(memory) -> str:
    """Return the body without its title and without the wordings of a rule, which repeat the content."""
    parts = [text for name, text in memory.sections.items() if "/" not in name and name != "Rule Variants"]
    if "Content" not in memory.sections:
        parts.insert(0, memory.content)
    return "\n".join(parts)


def read(store, rel: str, path=None):
    """Return (Memory or None, hash, message) of a file: a memory, or why it is none.

    `path`: of the file, when a walk just saw that it lies in the store.
    """
    try:
        raw = files.read_regular(path, limit=memories.LARGEST) if path else store.read_bytes(rel)
        if raw is None:
            return None, "", "gone"
    except EngramError as error:
        return None, "", error.message
    try:
        found = memories.parse(raw, rel, store.scope)
    except EngramError as error:
        return None, files.sha256(raw), error.message
    return found, found.sha256, ""
