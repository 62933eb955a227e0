"""The one ranker: a query and some indexes in, scored documents out.

Pure: reads through the methods of `store.index_tables.Tables`; must not know files, visibility, budgets or who asks. One
setting for every store: the numbers were chosen on the open benchmark sets together, never for one of them.

1. Words of the query become slots: a known word, or the words that an unknown one stands for (accents, typing errors), and
   related words when the caller has a table of them.
2. Postings, rare slots first, at most `VISITS` of them, give BM25F scores.
3. The best are ordered again with what postings can't say: words side by side, and character grams that also run across
   word ends. Each of the three is taken relative to its best.

Words that say little never bring a document in (recall.md, Routing); a query of nothing else finds what has all of them.
"""
from __future__ import annotations

from array import array
from collections import namedtuple
from math import log
from struct import pack

from engram.recall.slots import Slot, of_query, rarity
from engram.store.index_tables import decoded_length, length_code, spelled
from engram.text.words import is_common, is_unspaced, terms

K1, B = 1.2, 0.75
EVEN = 20.0  # terms added to every length, so that very short texts are not told apart by theirs
GRAM_SHARE, GRAM_K1, GRAM_B = 0.5, 1.2, 0.6
PAIR_SHARE = 0.1
COMMON_SHARE = 0.5
POOL = 64
ENOUGH, FREQUENT = 1000, 10  # with so many candidates, words of more than a tenth of the documents only order them
VISITS, RELATED_VISITS = 100_000, 3_000
GRAM_TESTS = 1600
LEAST_POOL = 25
LONGEST_SPELLED = 2000  # characters
LONGEST_QUERY = 2000  # terms; what a person or an agent asks begins with what it is about

# score: 1.0 and more for the best; segment: number in the list of indexes; slots: how the query was read
Hit = namedtuple("Hit", "score segment doc")
Ranking = namedtuple("Ranking", "hits slots")
_NOTHING = Ranking([], [])


def rank(segments, query: str, *, limit: int = POOL, related=None) -> Ranking:
    """Return the documents of `segments` that match, best first; the same input gives the same order.

    `related(words) -> {word: [(other word, similarity 0 to 1), …]}` brings in words that mean nearly the same.
    """
    sequence = terms(query)[:LONGEST_QUERY]
    totals = [segment.totals() for segment in segments]
    number = sum(count for count, _ in totals)
    if not number or not sequence:
        return _NOTHING
    average = max(1.0, sum(length for _, length in totals) / number)
    slots = of_query(segments, sequence, number, related)
    norms = [K1 * (1 - B + B * (decoded_length(code) + EVEN) / (average + EVEN)) for code in range(256)]
    strong = [slot for slot in slots if slot.members and not slot.common]
    if strong:
        scores, unseen = _candidates(segments, strong, norms, number)
    else:
        scores, unseen = _with_all(segments, slots, norms), []
    pool = _best(scores, max(limit, POOL))
    return Ranking(_ordered(segments, query, sequence, slots, unseen, pool, norms, number)[:limit], slots)


def matched(segments, ranking: Ranking, hit: Hit) -> list[str]:
    """Return the words of the query that a hit has, for `--explain`: `word`, or `word ~ stand-in` for a near one."""
    found = segments[hit.segment].sequences([hit.doc])
    if not found:
        return []
    have = set(array("I", found[hit.doc][1]))
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
        if left <= 0 or (len(scores) >= ENOUGH and slot.df * FREQUENT > number):
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
    for at, (segment, term, _, factor) in enumerate(slot.members):
        related = at >= slot.own
        if related and seen[1] >= spare:
            break
        docs, codes = segments[segment].postings(term, spare - seen[1] if related else most)
        seen[related] += len(docs)
        weight = slot.weight * slot.idf * factor * (K1 + 1)
        worth = {code: weight * (code >> 8) / ((code >> 8) + 2 * norms[code & 255]) for code in set(codes)}
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
    near.sort(key=_by_score)
    return near[:number]


def _by_score(row: tuple[int, float]) -> tuple[float, int]:
    return -row[1], row[0]


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


def _ordered(segments, query, sequence, slots, unseen, pool, norms, number) -> list[Hit]:
    """Score the pool with pairs and grams beside its words; return hits in order."""
    strong = [word for word in sequence if not is_common(word)]
    wide = {word for word in strong if is_unspaced(word)}
    weight = {slot.word: slot.weight * slot.idf for slot in slots}
    total = sum(weight.get(word, 0.0) for word in dict.fromkeys(strong))
    share = sum(weight.get(word, 0.0) for word in dict.fromkeys(strong) if word not in wide) / total if total else 0.0
    pairs = [pair for pair in dict.fromkeys(zip(strong, strong[1:])) if pair[0] != pair[1] and wide.isdisjoint(pair)]
    wanted = _text_grams(spelled([query[:LONGEST_SPELLED]]))
    near, rest = pool, []
    if len(wanted) * len(pool) > GRAM_TESTS:  # those far down keep their word scores
        most = max(LEAST_POOL, GRAM_TESTS // len(wanted))
        near, rest = pool[:most], pool[most:]
    rows = []
    for segment, found in _by_segment(near):
        sequences = segments[segment].sequences([doc for doc, _ in found])
        ids = {slot.word: [term for at, term, _, _ in slot.members[:slot.own] if at == segment] for slot in slots}
        common = [(COMMON_SHARE * slot.weight * slot.idf * (K1 + 1), [pack("=I", term) for term in ids[slot.word]])
                  for slot in slots if slot.common and ids[slot.word]]
        keys = [(pair, [pack("=II", left, right) for left in ids.get(pair[0], ()) for right in ids.get(pair[1], ())]) for pair in pairs]
        for doc, score in found:
            if doc in sequences:  # a removed document leaves its postings
                length, packed, words = sequences[doc]
                norm = norms[length_code(length)]
                score += _unseen(unseen, ids, packed, norm)
                for worth, packs in common:
                    if _has(packed, packs):
                        score += worth / (1 + norm)
                words = f" {words} "
                rows.append((score, len(words), [pair for pair, packs in keys if _has(packed, packs)],
                             [(gram, words.count(gram)) for gram in wanted if gram in words], segment, doc))
    if not rows:
        return []
    grams = _rarity(wanted, (gram for row in rows for gram, _ in row[3]), number)
    pairs = _rarity(None, (pair for row in rows for pair in row[2]), number)
    even = 6 * EVEN
    average = sum(row[1] for row in rows) / len(rows) + even
    parts = []
    for score, length, has_pairs, has_grams, segment, doc in rows:
        norm = GRAM_K1 * (1 - GRAM_B + GRAM_B * (length + even) / average)
        parts.append((score, sum(grams[gram] * count / (count + norm) for gram, count in has_grams),
                      sum(pairs[pair] for pair in has_pairs), segment, doc))
    best = [max(part[i] for part in parts) or 1.0 for i in range(3)]
    hits = [Hit(round(score / best[0] + share * (GRAM_SHARE * gram / best[1] + PAIR_SHARE * pair / best[2]), 6), segment, doc)
            for score, gram, pair, segment, doc in parts]
    hits += [Hit(round(score / best[0], 6), key >> 32, key & 0xFFFFFFFF) for key, score in rest]
    hits.sort(key=lambda hit: (-hit.score, hit.segment, hit.doc))
    return hits


def _by_segment(pool):
    """Yield (segment, [(document, score), …]) of a pool."""
    found: dict[int, list] = {}
    for key, score in pool:
        found.setdefault(key >> 32, []).append((key & 0xFFFFFFFF, score))
    return found.items()


def _text_grams(text: str) -> dict[str, int]:
    """Return how often each run of four characters occurs."""
    framed, found = f" {text} ", {}
    for at in range(len(framed) - 3):
        gram = framed[at:at + 4]
        found[gram] = found.get(gram, 0) + 1
    return found


def _rarity(counts, seen, number: int) -> dict:
    """Return the weight of each thing seen in the pool: rare ones count more, repeated ones of the query a little more."""
    found: dict = {}
    for thing in seen:
        found[thing] = found.get(thing, 0) + 1
    return {thing: (1 + log(counts[thing]) if counts else 1.0) * rarity(df, number) for thing, df in found.items()}


def _unseen(slots, ids, packed: bytes, norm: float) -> float:
    """Return what the slots that were not visited give a document, counted in its text alone."""
    if not slots:
        return 0.0
    have = array("I", packed)
    score = 0.0
    for slot in slots:
        count = sum(map(have.count, ids[slot.word]))
        if count:
            score += slot.weight * slot.idf * count * (K1 + 1) / (count + norm)
    return score


def _has(packed: bytes, packs: list[bytes]) -> bool:
    """Whether one of some packed runs of ids stands in a packed sequence."""
    for one in packs:
        at = packed.find(one)
        while at >= 0 and at % 4:
            at = packed.find(one, at + 1)
        if at >= 0:
            return True
    return False
