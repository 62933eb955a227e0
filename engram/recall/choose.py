"""Which memories answer a task: ranked, visible, verified against their files, prerequisites first.

Every memory that leaves here was read from its file, and the file's hash is the one that was approved: an index is never
believed (upstream-format.md S-2). Must not know budgets or how things print.
"""
from __future__ import annotations

import time
from collections import Counter, namedtuple

from engram import files
from engram.errors import EngramError, diagnostic
from engram.recall import rank
from engram.store import index, index_file, index_rows
from engram.store import memory as memories
from engram.store.index_rows import APPROVED, EDITED, STATES, UNKNOWN

FLOOR = 0.2  # a match under this part of the best one is noise beside it
POOL_OF_ALL = 5000
START_SCORES = (1.0, 0.9, 0.4)  # of a session start: tagged memories, rules, the rest

Chosen = namedtuple("Chosen", "memory score matched why")
# chosen: in load order; related: how many match at all; left_out: (id or path, scope, reason)
Choice = namedtuple("Choice", "chosen related left_out diagnostics")


_parsed: dict[tuple, object] = {}  # memories by path and hash, for a process that answers many calls
MOST_PARSED = 256


def _read(store, rel: str):
    """Return the Memory in a file as it is now, None when there is none; the same bytes are parsed once."""
    try:
        raw = store.read_bytes(rel)
        key = (store.root, rel, files.sha256(raw))
        found = _parsed.get(key)
        if found is None:
            if len(_parsed) >= MOST_PARSED:
                _parsed.clear()
            found = _parsed[key] = memories.parse(raw, rel, store.scope)
        return found
    except EngramError:
        return None


class Sources:
    """The indexes of the stores in reach, with what decides visibility."""

    def __init__(self, place, indexes, *, now=None):
        self.indexes = indexes
        self.now = time.time() if now is None else now
        self.roles = {role.lower() for role in place.settings.get("roles") or ()}
        self._ignored: dict[int, object] = {}
        self._hashes: dict[int, object] = {}
        self._alone: set[tuple[int, str]] = set()  # (index, id) that no other file has
        self.renewed: dict[tuple[int, str], index_rows.Row] = {}  # by index and path, rows that were not what the file says

    def hidden(self, at: int, row, *, archived=False, expired=False, edited=False) -> str:
        """Return why a row is not to be seen, or an empty text (recall.md, "What is visible"). The arguments lift a rule each."""
        if row.state != APPROVED and not (edited and row.state in (EDITED, UNKNOWN)):
            return STATES[row.state]
        if row.flagged and row.flagged != index_rows.UNSCANNED:
            return f"flagged by the safety scan ({row.flagged})"
        if row.hidden and not archived:
            return row.hidden
        if row.valid_from is not None and row.valid_from > self.now:
            return "not valid yet"
        if row.valid_until is not None and row.valid_until <= self.now and not expired:
            return "expired"
        if self.roles and row.roles and self.roles.isdisjoint(row.roles.split("\n")):
            return "for another role"
        if at not in self._ignored:
            self._ignored[at] = self.indexes[at].store.ignored()
        if self._ignored[at](row.rel):
            return "ignored by .engramignore"
        return "" if (at, row.name) in self._alone else self._shadowed(at, row)

    def _shadowed(self, at: int, row) -> str:
        """Return why another file with the same id stands before this one, or an empty text."""
        if self.indexes[at].named(row.name)[0].rel != row.rel:
            return "another file has the same id"
        if at and any(not self.hidden(0, other) for other in self.indexes[0].named(row.name)):
            return "the workspace has a memory with this id"
        return ""

    def note_alone(self, at: int, rows) -> None:
        """Find out in one query which ids of many rows are nobody else's."""
        names = [row.name for row in rows]
        shared = self.indexes[at].shared_names(names) | (self.indexes[0].present_names(names) if at else set())
        self._alone.update((at, name) for name in names if name not in shared)

    def memory(self, at: int, row, **lifted):
        """Return (Memory, "") of a row, read from its file and checked, or (None, why it is not to be seen)."""
        index_of = self.indexes[at]
        for _ in range(2):
            reason = self.hidden(at, row, **lifted)
            if reason:
                return None, reason
            found = _read(index_of.store, row.rel)
            if found is not None and found.sha256 == row.sha:
                return self._checked(at, row, found, **lifted)
            index_of.refresh(row)
            fresh = index_of.rows("rel = ?", (row.rel,))
            if not fresh:
                return None, "gone"
            row = self.renewed[at, row.rel] = fresh[0]
        return None, "it changes while it is read"

    def _checked(self, at: int, row, found, *, edited=False, **_):
        index_of = self.indexes[at]
        if index_of.sealed(row):
            if row.flagged != index_rows.UNSCANNED:
                return found, ""
            flagged = index_rows.scanned(found)
            index_of.note_scan(row, flagged)
            return (None, f"flagged by the safety scan ({flagged})") if flagged else (found, "")
        if index_of.key or row.name != found.id.lower() or row.type != found.type:
            raise index.Damaged("a row that this user's Engram did not write")
        # without a key nothing in the index counts: look at everything again
        if at not in self._hashes:
            self._hashes[at] = index_of.store.hashes()
        again = index_rows.of_memory(row.id, found, row.stat, self._hashes[at], b"")
        reason = self.hidden(at, again, edited=edited)
        return (None, reason) if reason else (found, "")

    def rank(self, query: str, pool: int = rank.POOL, table=None):
        """Return (Ranking, [(score, index number, Row)]) with ties in order of confidence, freshness, scope and path."""
        tables = [one.tables for one in self.indexes]
        ranking = rank.rank(tables, query, limit=pool, table=table)
        by_index: dict[int, list[int]] = {}
        for hit in ranking.hits:
            by_index.setdefault(hit.segment, []).append(hit.doc)
        rows = {at: self.indexes[at].rows_of(docs) for at, docs in by_index.items()}
        for at, of_index in rows.items():
            self.note_alone(at, of_index.values())
        found = [(hit.score, hit.segment, rows[hit.segment][hit.doc], hit) for hit in ranking.hits if hit.doc in rows[hit.segment]]
        scores = Counter([one[0] for one in found])
        if len(scores) < len(found):  # only ties need more than the order that they came in
            found.sort(key=lambda one: (-one[0], *_tie(one[1], one[2])) if scores[one[0]] > 1 else (-one[0],))
        return ranking, found

    def named(self, id: str):
        """Return (index number, Row) of the memory that an id means: the first visible one, else any; None when there is none."""
        found = [(at, row) for at, one in enumerate(self.indexes) for row in one.named(id) if row.name]
        return next((pair for pair in found if not self.hidden(*pair)), found[0] if found else None)


def for_task(sources: Sources, query: str, limit: int, *, everything=False, why=False, table=None) -> Choice:
    """Return the choice for a task: at most `limit` memories, each after those that it depends on."""
    pool = POOL_OF_ALL if everything else rank.POOL
    ranking, found = sources.rank(query, pool, table)
    floor = FLOOR * found[0][0] if found else 0.0
    picker = _Picker(sources, len(found) if everything else limit)
    matching = 0
    for score, at, row, hit in found:
        low = score < floor and not everything
        reason = sources.hidden(at, row) if why or not low else ""
        if reason or low:
            picker.leave(at, row, reason or "matches little beside the best")
        elif picker.full:
            matching += 1  # its row alone was looked at: a count, nothing that is shown
            picker.leave(at, row, "beyond the limit")
        else:
            matched = rank.matched([one.tables for one in sources.indexes], ranking, hit) if why else ()
            matching += picker.pick(at, row, score, matched)
    chosen = picker.chosen
    extra = sum(one.why == "prerequisite" for one in chosen)
    return Choice(chosen, max(matching + extra, len(chosen)), picker.left_out, picker.diagnostics)


def for_start(sources: Sources, limit: int) -> Choice:
    """Return the choice for a session start: memories tagged `always-load` or `session-start`, then rules, then the newest."""
    found = []
    for at, one in enumerate(sources.indexes):
        rows = one.rows("state IN (0, 1, 2) ORDER BY start, updated DESC, rel LIMIT ?", (rank.POOL,))
        sources.note_alone(at, rows)
        found += [(at, row) for row in rows]
    found.sort(key=lambda pair: (pair[1].start, _confidence(pair[1]) if pair[1].start else 0, -pair[1].updated, pair[0],
                                 index_file.path_order(pair[1].rel)))
    picker = _Picker(sources, limit)
    visible = 0
    for at, row in found:
        reason = sources.hidden(at, row)
        if reason:
            picker.leave(at, row, reason)
        elif picker.full:
            visible += 1
            picker.leave(at, row, "beyond the limit")
        else:
            visible += picker.pick(at, row, START_SCORES[row.start], ())
    return Choice(picker.chosen, max(visible, len(picker.chosen)), picker.left_out, picker.diagnostics)


class _Picker:
    """Collects memories up to a limit, prerequisites before what needs them; cycles and missing ids are harmless."""

    def __init__(self, sources: Sources, limit: int):
        self.sources, self.limit = sources, limit
        self.chosen: list[Chosen] = []
        self.left_out: list[tuple[str, str, str]] = []
        self.diagnostics: list[dict] = []
        self._keys: set[str] = set()
        self._told: set[str] = set()

    @property
    def full(self) -> bool:
        return len(self.chosen) >= self.limit

    def leave(self, at: int, row, reason: str) -> None:
        """Note that a match is left out. An edited file is worth a word to the person who edited it."""
        scope = self.sources.indexes[at].store.scope
        self.left_out.append((row.rel, scope, reason))
        if reason in (STATES[EDITED], STATES[UNKNOWN]) or reason.startswith("flagged"):
            self.tell("memory.left-out", f"left out: {reason}.", f"{scope}:{row.rel}",
                      "Take that line out." if reason.startswith("flagged") else "Look at it (engram show), then engram rehash accepts it.")

    def tell(self, id: str, message: str, file=None, remedy=None) -> None:
        if message + str(file) not in self._told:
            self._told.add(message + str(file))
            self.diagnostics.append(diagnostic(id, "warning", message, file=file, remediation=remedy))

    def pick(self, at: int, row, score: float, matched) -> bool:
        """Take a match with its prerequisites when they fit. Returns whether it can be seen at all."""
        memory, reason = self.sources.memory(at, row)
        if memory is None:
            self.leave(at, row, reason)
            return False
        if memory.key in self._keys:
            self.chosen = [one._replace(matched=matched, why="match") if one.memory.key == memory.key and not one.matched else one
                           for one in self.chosen]
            return True
        needs: list = []
        self._prerequisites(memory, needs, {memory.key}, [memory.id])
        if len(self.chosen) + len(needs) + 1 > self.limit:
            if self.chosen:
                self.leave(at, row, "beyond the limit with what it depends on")
                return True
            needs = needs[:self.limit - 1]
        for one in needs:
            self._add(Chosen(one, score, (), "prerequisite"))
        self._add(Chosen(memory, score, matched, "match"))
        return True

    def _add(self, one: Chosen) -> None:
        self.chosen.append(one)
        self._keys.add(one.memory.key)

    def _prerequisites(self, memory, needs: list, seen: set, path: list) -> None:
        """Append what a memory depends on, deepest first."""
        for id in memory.depends_on[:64]:
            if id.lower() in (name.lower() for name in path):
                self.tell("depends_on.cycle", f"depends_on goes round: {' → '.join([*path, id])[:200]}.", memory.key)
                continue
            name = id.removesuffix(".md").rpartition("/")[2].rpartition(":")[2]
            pair = self.sources.named(name)
            found, reason = self.sources.memory(*pair) if pair else (None, "there is no such memory")
            if found is None:
                self.tell("depends_on.missing", f"depends on `{id[:80]}`: {reason}.", memory.key)
            elif found.key not in seen and found.key not in self._keys and len(path) < 32:
                seen.add(found.key)
                self._prerequisites(found, needs, seen, [*path, found.id])
                needs.append(found)


def _tie(at: int, row) -> tuple:
    """Return what orders rows of one score: confidence, freshness, scope, path."""
    return _confidence(row), -row.updated, at, index_file.path_order(row.rel)


def _confidence(row) -> int:
    """Return the place of a row's confidence; read from its card text, which costs less than parsing it."""
    return 2 if '"confidence":"low"' in row.card else 0 if '"confidence":"high"' in row.card else 1
