"""The second half of ranking: the best by their words are looked at by their sketches, and the best of those are read.

1. A first look at all of them, by sketches: character grams, and whether their words point where the query's point.
2. The `NEAR` best of those are read and ordered again with what postings and sketches can't say: words side by side, common
   words, and how often the grams occur, also across word ends.

Words, grams and pairs are each taken relative to their best. Pure, as `rank` is; must not know how candidates are found.
"""
from __future__ import annotations

from array import array
from collections import Counter, namedtuple
from itertools import compress
from math import log
from operator import itemgetter

from engram.recall.slots import rarity
from engram.store import sketch
from engram.store.index_tables import length_code, spelled
from engram.text.words import is_common, is_unspaced

K1 = 1.6
EVEN = 14.0  # terms added to every length, so that very short texts are not told apart by theirs
GRAM_SHARE, GRAM_K1, GRAM_B = 0.5, 1.0, 0.6
EVEN_GRAMS = 6 * EVEN  # characters
PAIR_SHARE = 0.1
COMMON_SHARE = 0.35
LIKENESS_SHARE = 1.0
NEAR = 20
LONGEST_SPELLED = 2000  # characters

# score: 1.0 and more for the best; segment: number in the list of indexes
Hit = namedtuple("Hit", "score segment doc")
_Near = namedtuple("_Near", "score likeness length pairs grams segment doc")


def ordered(segments, query: str, sequence, slots, unseen, pool, norms, number: int, table, limit: int) -> list[Hit]:
    """Return the best of a pool, `[(segment << 32 | document, score of its words), …]`, as hits in order, without removed documents.

    `unseen`: the slots whose postings are not in the scores; `norms`: what a length code weighs; `number`: documents in all.
    """
    said = [word for word in sequence if not is_common(word)]
    strong = list(dict.fromkeys(said))
    weight = {slot.word: slot.weight * slot.idf for slot in slots}
    total = sum(weight.get(word, 0.0) for word in strong)
    wide = {word for word in strong if is_unspaced(word)}
    share = sum(weight.get(word, 0.0) for word in strong if word not in wide) / total if total else 0.0
    known = {word: weight[word] for word in strong if word in weight and table.vector(word)} if table else {}
    direction = sketch.Direction(known, table, LIKENESS_SHARE * sum(known.values()) / total) if known else None
    wanted = sketch.text_grams(spelled([query[:LONGEST_SPELLED]]))
    looked, grams, columns = _first_look(segments, pool, wanted, share, direction, number)
    if not looked:
        return []
    # words side by side once common ones are left out; not those of unspaced scripts
    pairs = [pair for pair in dict.fromkeys(zip(said, said[1:])) if pair[0] != pair[1] and wide.isdisjoint(pair)]
    hits = _scored(_read(segments, looked[:NEAR], columns, slots, unseen, pairs, norms), grams, share, number)
    least = hits[-1].score if hits else 0.0
    hits += [Hit(min(least, round(-first, 6)), key >> 32, key & 0xFFFFFFFF) for first, key, *_ in looked[NEAR:limit]]
    return hits[:limit]


def _first_look(segments, pool, wanted, share: float, direction, number: int):
    """Return (looked, {gram: weight}, {gram: a byte for each place}).

    `looked`: `[(score of the first look below zero, key, score of the words, worth of the likeness, place), …]`, best first.
    """
    rows = []
    for segment, found in _by_segment(pool):
        sketches = segments[segment].sketches([doc for doc, _ in found])
        # a removed document leaves its postings
        rows += [(segment << 32 | doc, score, *sketches[doc]) for doc, score in found if doc in sketches]
    if not rows:
        return [], {}, {}
    keys, scores, _, lengths, parts, vectors, sketches = zip(*rows)
    grams, columns, hits, all_of_it = sketch.gram_hits(sketches, wanted, parts,
                                                       lambda gram, df: (1 + log(wanted[gram])) * rarity(df, number))
    average = sum(lengths) / len(rows) + EVEN_GRAMS
    fair = [max(0.0, hit - part * all_of_it) / (1 - part) / (1 + _gram_norm(length, average))
            for hit, part, length in zip(hits, parts, lengths)]
    likeness = direction.likeness(vectors) if direction else [0.0] * len(rows)
    best, top = max(scores) or 1.0, max(fair) or 1.0
    looked = [(-(score / best + share * GRAM_SHARE * gram / top + like), key, score, like, place)
              for place, (score, gram, like, key) in enumerate(zip(scores, fair, likeness, keys))]
    looked.sort()  # equal ones by key
    return looked, grams, columns


def _read(segments, looked, columns, slots, unseen, pairs, norms) -> list[_Near]:
    """Return what the texts of a few documents say beside their words: pairs, common words, grams with their counts."""
    rows = []
    names, columns = list(columns), list(columns.values())
    for segment, found in _by_segment((key, more) for _, key, *more in looked):
        sequences = segments[segment].sequences([doc for doc, _ in found])
        ids = {slot.word: [term for at, term, _, _ in slot.members[:slot.own] if at == segment] for slot in slots}
        common = [(COMMON_SHARE * slot.weight * slot.idf * (K1 + 1), [_packed(term) for term in ids[slot.word]])
                  for slot in slots if slot.common and ids[slot.word]]
        keys = [(pair, [_packed(left, right) for left in ids.get(pair[0], ()) for right in ids.get(pair[1], ())]) for pair in pairs]
        for doc, (score, likeness, place) in found:
            if doc not in sequences:  # another process took it out just now
                continue
            _, length, packed, words = sequences[doc]
            norm, words = K1 * norms[length_code(length)], f" {words} "
            score += _unseen(unseen, ids, packed, norm)
            score += sum(worth for worth, packs in common if _has(packed, packs)) / (1 + norm)
            grams = [(gram, words.count(gram)) for gram in compress(names, map(itemgetter(place), columns))]
            rows.append(_Near(score, likeness, len(words), [pair for pair, packs in keys if _has(packed, packs)],
                              grams, segment, doc))
    return rows


def _scored(near: list[_Near], grams, share: float, number: int) -> list[Hit]:
    """Return what was read as hits, best first."""
    if not near:
        return []
    pairs = {pair: rarity(count, number) for pair, count in Counter([pair for one in near for pair in one.pairs]).items()}
    average = sum(one.length for one in near) / len(near) + EVEN_GRAMS
    parts = []
    for one in near:
        norm = _gram_norm(one.length, average)
        parts.append((one.score, sum([grams[gram] * count / (count + norm) for gram, count in one.grams]),
                      sum([pairs[pair] for pair in one.pairs])))
    word, gram, pair = (max(values) or 1.0 for values in zip(*parts))
    hits = [Hit(round(a / word + share * (GRAM_SHARE * b / gram + PAIR_SHARE * c / pair) + one.likeness, 6), one.segment, one.doc)
            for (a, b, c), one in zip(parts, near)]
    hits.sort(key=lambda hit: (-hit.score, hit.segment, hit.doc))
    return hits


def _gram_norm(length: int, average: float) -> float:
    return GRAM_K1 * (1 - GRAM_B + GRAM_B * (length + EVEN_GRAMS) / average)


def _by_segment(rows):
    """Return (segment, [(document, more), …]) of pairs that begin with a key."""
    found: dict[int, list] = {}
    for key, more in rows:
        found.setdefault(key >> 32, []).append((key & 0xFFFFFFFF, more))
    return found.items()


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


def _packed(*terms: int) -> bytes:
    """Return term ids as a sequence packs them."""
    return array("I", terms).tobytes()


def _has(packed: bytes, packs: list[bytes]) -> bool:
    """Whether one of some packed runs of ids stands in a packed sequence."""
    for one in packs:
        at = packed.find(one)
        while at > 0 and at & 3:
            at = packed.find(one, at + 1)
        if at >= 0:
            return True
    return False
