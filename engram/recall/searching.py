"""Search, list, show, and the look-ups that other rooms ask for: cards, related memories, most used.

Must not know MCP or terminals. Anything typed is a query (case QS-01): `type:`, `scope:`, `tag:` and quoted phrases narrow,
and what does not read as one of them is words.
"""
from __future__ import annotations

import re
from collections import namedtuple
from functools import lru_cache

from engram.errors import EngramError, Result, UsageError
from engram.recall import archive, choose, notes, rank, render, uses
from engram.recall.words import table
from engram.store import index, index_file, index_rows
from engram.store.index_rows import STATES
from engram.text import fold, terms
from engram.text.words import is_common

MOST = 50
DEFAULT = 10
NARROWED_POOL = 5000
# Patterns are compiled at their first use: most runs need none of them, and each costs a start 0.1 to 0.3 ms.
SENTENCE_END = r"(?<=[.!?。！？])\s*"
PART = r'(?i)"([^"]*)"|\b(type|scope|tag):(\S+)'

Query = namedtuple("Query", "words phrases types scopes tags")


def read_query(text: str) -> Query:
    """Return a typed query taken apart; an unknown type or scope is words."""
    phrases, types, scopes, tags = [], [], [], []

    def take(found):
        phrase, key, value = found[1], (found[2] or "").lower(), found[3]
        if phrase is not None:
            phrases.append(phrase)
            return f" {phrase} "
        if key == "type" and value.lower() in ("rule", "skill", "knowledge"):
            types.append(value.lower())
        elif key == "scope" and value.lower() in ("workspace", "global"):
            scopes.append(value.lower())
        elif key == "tag":
            tags.append(fold(value.strip('",;')))
        else:
            return found[0]
        return " "

    words = re.sub(PART, take, text)
    return Query(words.strip(), [phrase for phrase in phrases if terms(phrase)], types, scopes, tags)


def search(place, query, *, limit=DEFAULT, archived=False, expired=False, scope=None) -> Result:
    """Return the memories that match a query, best first, with the sentence that matches; a blank query lists the newest.

    `data`: {entries: [{id, type, scope, score}]}. Edited memories are shown, marked. Raises UsageError.
    """
    if limit is None:
        limit = DEFAULT
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise UsageError(f"limit is a number from 1 to {MOST}.")
    limit = min(limit, MOST)
    asked = read_query(query or "")
    stores = [store for store in place.need_stores() if (scope in (None, "both", "all") or store.scope == scope)
              and (not asked.scopes or store.scope in asked.scopes)]
    lifted = {"archived": archived, "expired": expired, "edited": True}
    found = index.using_all(stores, lambda indexes: _found(place, indexes, asked, limit, lifted), whole=True)
    if archived:
        found = _merged(found, archive.search(place, stores, asked, limit), limit)
    entries = [{"id": memory.id, "type": memory.type, "scope": memory.scope, "score": round(score, 4)} for score, memory, _ in found]
    for entry, (_, _, marks) in zip(entries, found):
        if marks:
            entry["marks"] = marks
    lines = [f"Engram found: {len(entries)} " + ("memory." if len(entries) == 1 else "memories.")]
    lines += [_line(score, memory, marks, asked) for score, memory, marks in found]
    if not entries and asked.words:
        lines.append("No memory has these words. Fewer or other words may find one; engram list shows all.")
    return Result({"entries": entries}, "\n".join(lines), place.all_diagnostics())


def related(place, text, *, type=None, scope=None, limit=8) -> list:
    """Return [(Memory, score)] of approved, visible memories that a text is about, best first; `scope` names one store."""
    stores = [store for store in place.stores if scope in (None, store.scope)]

    def work(indexes):
        sources, found = choose.Sources(place, indexes), []
        sources.roles = set()  # a duplicate for another role is a duplicate
        for score, at, row, _ in sources.rank(text)[1]:
            if len(found) >= limit:
                break
            if type in (None, row.type):
                memory, _ = sources.memory(at, row)
                if memory is not None:
                    found.append((memory, score))
        return found

    return index.using_all(stores, work)


def by_id(store, id):
    """Return the durable memory with an id as it is on disk now, edited ones too, or None; cheap under the store's lock."""
    rel = index.path_of(store, id)
    if rel is None:
        return None
    try:
        return store.read(rel)
    except EngramError:
        return None


def catalog(place) -> list[dict]:
    """Return a row for each visible memory, by scope and path: {key, id, type, scope, title, summary, card}."""
    return index.using_all(place.need_stores(), lambda indexes: _cards(choose.Sources(place, indexes), None))


def cards(place, ids) -> list[dict]:
    """Return the rows of `catalog` for these ids alone, in their order; ids that can't be seen are left out."""
    return index.using_all(place.need_stores(), lambda indexes: _cards(choose.Sources(place, indexes), ids))


def most_used(place, number: int) -> list[str]:
    """Return the ids of the most used visible memories, most used first, then by id; those never used count as used 0 times."""
    stores = place.need_stores()

    def work(indexes):
        sources, out, told = choose.Sources(place, indexes), [], set()
        for at, one in enumerate(indexes):
            counts = dict(uses.most_used(one.store, 4 * number + 20))
            rows = [row for rel in counts for row in one.rows("rel = ?", (rel,))]
            rows += one.rows("state = 0 ORDER BY name LIMIT ?", (4 * number + 20,))
            for row in rows:
                memory, _ = sources.memory(at, row) if (at, row.rel) not in told else (None, "")
                told.add((at, row.rel))
                if memory is not None:
                    out.append((-counts.get(row.rel, 0), memory.id))
        return [id for _, id in sorted(out)[:number]]

    return index.using_all(stores, work) if number > 0 else []


def listing(place, *, type=None, scope=None, limit=None, archived=False) -> Result:
    """Return a card for each visible memory and each note, by scope and path. `data`: {entries: [{id, type, scope}], total}."""
    rows = [row for row in catalog(place) if type in (None, row["type"]) and scope in (None, "both", "all", row["scope"])]
    short = [] if type else [note for note in notes.all_of(place) if scope in (None, "both", "all", note.scope)]
    made = [(row["id"], row["type"], row["scope"], row["card"]) for row in rows]
    made += [(note.id, "note", note.scope, render.card(note.id, "note", note.scope, note.summary)) for note in short]
    if archived:
        made += [(memory.id, memory.type, memory.scope, render.card(memory.id, f"{memory.type}, archived", memory.scope, memory.summary))
                 for memory in archive.all_of(place.need_stores())]
    kept = made[:limit] if limit else made
    lines = [card for _, _, _, card in kept]
    if len(kept) < len(made):
        lines.append(f"{len(made) - len(kept)} more.")
    if not made:
        lines = ["No memories yet. engram save proposes one."]
    return Result({"entries": [{"id": id, "type": type, "scope": scope} for id, type, scope, _ in kept], "total": len(made)},
                  "\n".join(lines), place.all_diagnostics())


def show(place, id) -> Result:
    """Return one memory's whole file, edited ones too, marked. Raises NotFound."""
    from engram.recall import loading  # it knows how an unknown id is answered; only `show` needs that here

    def work(indexes):
        sources = choose.Sources(place, indexes)
        pair = sources.named(str(id))
        if pair is None:
            return loading.seen(place, sources, id), []
        memory, reason = sources.memory(*pair, archived=True, expired=True, edited=True)
        if memory is None:
            return loading.seen(place, sources, id), []
        return memory, _marks(sources, *pair)

    memory, marks = index.using_all(place.need_stores(), work, whole=True)
    head = f"{memory.key}" + (f" ({', '.join(marks)})" if marks else "")
    text = render.one_line(head) + "\n" + render.barred(memory.raw.decode("utf-8", "replace"))
    return Result({"id": memory.id, "type": memory.type, "scope": memory.scope, "file": memory.key, "sha256": memory.sha256,
                   "marks": marks, "content": memory.raw.decode("utf-8", "replace")}, text, place.all_diagnostics())


def _found(place, indexes, asked: Query, limit: int, lifted) -> list:
    """Return [(score, Memory, marks)]."""
    sources = choose.Sources(place, indexes)
    if asked.words:
        pool = NARROWED_POOL if asked.phrases or asked.types or asked.tags else rank.POOL
        rows = [(score, at, row) for score, at, row, _ in sources.rank(asked.words, pool, table(place))[1]]
    else:
        rows = []
        for at, one in enumerate(indexes):
            most = NARROWED_POOL if asked.types or asked.tags else 4 * MOST
            newest = one.rows("state IN (0, 1, 2) ORDER BY updated DESC, rel LIMIT ?", (most,))
            rows += [(0.0, at, row) for row in newest]
        rows.sort(key=lambda one: (-one[2].updated, one[1], index_file.path_order(one[2].rel)))
    found = []
    for score, at, row in rows:
        if len(found) >= limit:
            break
        if asked.types and row.type not in asked.types:
            continue
        memory, _ = sources.memory(at, row, **lifted)
        if memory is not None and fits(memory, asked):
            found.append((score, memory, _marks(sources, at, row)))
    return found


def fits(memory, asked: Query) -> bool:
    """Whether a memory meets the phrases, types and tags of a query; a query of common words must stand in it as it is."""
    if asked.types and memory.type not in asked.types:
        return False
    if asked.tags and not {fold(tag.removeprefix("task_type:")) for tag in memory.tags}.issuperset(asked.tags):
        return False
    wanted = list(asked.phrases)
    said = terms(asked.words)
    if said and all(is_common(term) for term in said):
        wanted.append(asked.words)
    if not wanted:
        return True
    have = f" {' '.join(terms(' . '.join(index_rows.fields(memory))))} "
    return all(f" {' '.join(terms(phrase))} " in have for phrase in wanted)


def _marks(sources, at: int, row) -> list[str]:
    """Return what is to be said of a memory that a load would not show."""
    row = sources.renewed.get((at, row.rel), row)
    marks = [] if row.state == index_rows.APPROVED else [STATES[row.state]]
    if row.hidden:
        marks.append(row.hidden)
    if row.valid_until is not None and row.valid_until <= sources.now:
        marks.append("expired")
    return marks


def _line(score: float, memory, marks, asked: Query) -> str:
    """Return one hit as a line: card, score, marks, the sentence that matches."""
    told = f", {', '.join(marks)}" if marks else ""
    value = f" {score:.2f}" if asked.words else ""
    line = f"- [{render.shown_id(memory.id)}] ({memory.type}, {memory.scope}{told}){value} {render.one_line(sentence(memory, asked.words))}"
    return line if len(line) <= 240 else line[:239].rstrip() + "…"


def sentence(memory, words: str) -> str:
    """Return the sentence of a memory that has most of a query's words; its summary when none has any."""
    wanted = {term for term in terms(words) if not is_common(term)}
    if not wanted:
        return memory.summary
    best, most = memory.summary, len(wanted.intersection(terms(memory.summary)))
    for part, said in _sentences(memory):
        count = len(wanted.intersection(said))
        if count > most:
            best, most = part, count
    return best


@lru_cache(128)
def _sentences(memory) -> list[tuple[str, frozenset]]:
    """Return the sentences of a memory with their terms."""
    parts = [part for line in index_rows.searched(memory).splitlines() for part in re.split(SENTENCE_END, line.strip(" \t-*>#")) if part]
    return [(part, frozenset(terms(part))) for part in parts]


def _cards(sources, ids) -> list[dict]:
    out = []
    for at, one in enumerate(sources.indexes):
        if ids is None:
            rows = sorted(one.rows("state = 0"), key=lambda row: index_file.path_order(row.rel))
        else:
            rows = [row for id in ids for row in one.named(str(id))]
        sources.note_alone(at, rows)
        for row in rows:
            if sources.hidden(at, row):
                continue
            if row.flagged == "" and one.sealed(row):
                card = row.read_card()
            else:
                memory, _ = sources.memory(at, row)
                if memory is None:
                    continue
                card = index_rows.card(memory)
            out.append({"key": f"{one.store.scope}:{row.rel}", "id": card["id"], "type": card["type"], "scope": one.store.scope,
                        "title": card["title"], "summary": card["summary"],
                        "card": render.card(card["id"], card["type"], one.store.scope, card["summary"])})
    if ids is not None:
        order = {str(id).lower(): at for at, id in reversed(list(enumerate(ids)))}
        out.sort(key=lambda row: order[row["id"].lower()])
    return out


def _merged(found, more, limit: int) -> list:
    """Return two lists of hits as one, best first."""
    return sorted([*found, *more], key=lambda row: -row[0])[:limit]
