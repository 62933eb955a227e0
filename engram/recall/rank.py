"""The one ranker: a query and some indexes in, scored documents out.

Pure: reads through the methods of `store.index_tables.Tables`; must not know files, visibility, budgets or who asks. One
setting for every store: the numbers, here and in `order` and `slots`, were chosen on the open benchmark sets together, never for
one of them.

1. Words of the query become slots: a known word, or the words that an unknown one stands for (accents, typing errors), and
   related words when the caller has a table of them.
2. Postings, rare slots first, at most `VISITS` of them, give BM25F scores.
3. The best `LOOKED` are put in order by more than that (`order`).

Words that say little never bring a document in (recall.md, Routing); a query of nothing else finds what has all of them.
"""
from __future__ import annotations

from array import array
from collections import namedtuple
from operator import itemgetter

from engram.recall.order import EVEN, K1, Hit, ordered
from engram.recall.slots import Slot, of_query
from engram.store.index_tables import LENGTHS
from engram.text.words import is_unspaced, terms

B = 0.75
WIDE_K1 = 0.7  # signs and pairs of signs repeat more than words, and say less by it
POOL = 64
LOOKED = 128
# with so many candidates, words of more than one in so many documents only order them
ENOUGH = ((300, 4), (1000, 10))
VISITS, RELATED_VISITS = 100_000, 10_000
LONGEST_QUERY = 2000  # terms; what a person or an agent asks begins with what it is about

# slots: how the query was read
Ranking = namedtuple("Ranking", "hits slots")
_NOTHING = Ranking([], [])


def rank(segments, query: str, *, limit: int = POOL, table=None) -> Ranking:
    """Return the documents of `segments` that match, best first; the same input gives the same order.

    A word table (`text.related`) brings in words that mean nearly the same.
    """
    sequence = terms(query)[:LONGEST_QUERY]
    totals = [segment.totals() for segment in segments]
    number = sum(count for count, _ in totals)
    if not number or not sequence:
        return _NOTHING
    average = max(1.0, sum(length for _, length in totals) / number)
    slots = of_query(segments, sequence, number, table)
    norms = [1 - B + B * (length + EVEN) / (average + EVEN) for length in LENGTHS]
    strong = [slot for slot in slots if slot.members and not slot.common]
    if strong:
        scores, unseen = _candidates(segments, strong, norms, number)
    else:
        scores, unseen = _with_all(segments, slots, norms), []
    pool = _best(scores, max(limit, LOOKED))
    return Ranking(ordered(segments, query, sequence, slots, unseen, pool, norms, number, table, limit), slots)


def matched(segments, ranking: Ranking, hit: Hit) -> list[str]:
    """Return the words of the query that a hit has, for `--explain`: `word`, or `word ~ stand-in` for a near one."""
    found = segments[hit.segment].sequences([hit.doc])
    if not found:
        return []
    have = set(array("I", found[hit.doc][2]))
    out = []
    for slot in ranking.slots:
        if not slot.common:
            near = sorted({word for segment, term, word, _ in slot.members if segment == hit.segment and term in have})
            if near:
                out.append(slot.word if slot.word in near else f"{slot.word} ~ {', '.join(near)}")
    return out


def _candidates(segments, strong: list[Slot], norms, number: int) -> tuple[dict[int, float], list[Slot]]:
    """Return `{segment << 32 | document: score}` and the slots too common to be visited."""
    scores: dict[int, float] = {}
    unseen, left, spare = [], VISITS, RELATED_VISITS
    for slot in sorted(strong, key=lambda slot: (slot.df, slot.word)):
        if left <= 0 or any(len(scores) >= enough and slot.df * frequent > number for enough, frequent in ENOUGH):
            unseen.append(slot)
        else:
            own, more = _visit(segments, slot, norms, scores, left, spare)
            left, spare = left - own, spare - more
    return scores, unseen


def _visit(segments, slot: Slot, norms, scores: dict[int, float], most: int, spare: int) -> tuple[int, int]:
    """Add the scores of one slot; a document counts with the slot's own word, else with its nearest related one.

    Returns how many postings were seen of the word itself, and of related ones, of which `spare` may be.
    """
    seen = [0, 0]
    parts = []
    k1 = WIDE_K1 if is_unspaced(slot.word) else K1
    for at, (segment, term, _, factor) in enumerate(slot.members):
        related = at >= slot.own
        if related and seen[1] >= spare:
            break
        docs, codes = segments[segment].postings(term, spare - seen[1] if related else most)
        seen[related] += len(docs)
        weight = slot.weight * slot.idf * factor * (k1 + 1)
        worth = {code: weight * (code >> 8) / ((code >> 8) + 2 * k1 * norms[code & 255]) for code in set(codes)}
        parts.append((segment << 32, docs, map(worth.__getitem__, codes)))
    if len(parts) == 1 and scores:
        base, docs, values = parts[0]
        get = scores.get
        for doc, value in zip(docs, values):
            doc += base
            scores[doc] = get(doc, 0.0) + value
        return seen[0], seen[1]
    mine: dict[int, float] = {}
    for base, docs, values in reversed(parts):
        mine.update(zip([doc + base for doc in docs] if base else docs, values))
    if scores:
        for doc, value in mine.items():
            scores[doc] = scores.get(doc, 0.0) + value
    else:
        scores.update(mine)
    return seen[0], seen[1]


def _best(scores: dict[int, float], number: int) -> list[tuple[int, float]]:
    """Return the best documents with their scores, best first; those far from the best are not even sorted."""
    if len(scores) > 4 * number:
        top = max(scores.values())
        for part in (0.6, 0.3):
            near = [row for row in scores.items() if row[1] >= part * top]
            if len(near) >= number:
                break
        else:
            near = list(scores.items())
    else:
        near = list(scores.items())
    near.sort(key=itemgetter(1), reverse=True)  # equal ones as they were found: by slot, then by document
    return near[:number]


def _with_all(segments, slots: list[Slot], norms) -> dict[int, float]:
    """Return the documents that have every word of a query of common words; one word alone finds nothing."""
    if len(slots) < 2:
        return {}
    kept: dict[int, float] | None = None
    for slot in sorted(slots, key=lambda slot: (slot.df, slot.word)):
        scores: dict[int, float] = {}
        _visit(segments, slot, norms, scores, VISITS, 0)
        kept = scores if kept is None else {doc: kept[doc] + value for doc, value in scores.items() if doc in kept}
    return kept or {}
