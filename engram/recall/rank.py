"""The one ranker: a query and some indexes in, scored documents out.

Pure: reads through the methods of `store.index_tables.Tables`; must not know files, visibility, budgets or who asks. One
setting for every store: the numbers below were chosen on the open benchmark sets together, never for one of them.

1. Words of the query become slots: a known word, or the words that an unknown one stands for (accents, typing errors), plus
   related words when the caller has some.
2. Postings, rare slots first, at most `VISITS` of them, give BM25F scores.
3. The best `POOL` are scored again with what postings can't say: common words, neighbouring words, character grams.
"""
from __future__ import annotations

from array import array
from math import exp, log
from struct import pack

from engram.store.index_tables import decoded_length, grams_of
from engram.text.folding import plain
from engram.text.typing_errors import slips, tolerance
from engram.text.words import is_common, terms

P = dict(k1=1.2, b=0.6, common=0.2, pair=0.2, gram=0.4, gk1=1.2, gb=0.6, fuzzy=0.8, qlog=1, pool=300, visits=150_000, gtf=1, floor=0.0)


class Slot:
    """One word of the query: its weight and the index terms that stand for it, `(segment, term id, factor)`."""

    __slots__ = ("word", "weight", "idf", "members", "words", "common", "df")

    def __init__(self, word, weight, common):
        self.word, self.weight, self.common = word, weight, common
        self.members, self.words, self.idf, self.df = [], [], 0.0, 0


def rank(segments, query, limit=50, related=None):
    """Return `[(score, segment number, document id)]`, best first."""
    sequence = terms(query)
    totals = [s.totals() for s in segments]
    n = sum(t[0] for t in totals)
    if not n or not sequence:
        return []
    average = max(1.0, sum(t[1] for t in totals) / n)
    slots = _slots(segments, sequence, n)
    live = [s for s in slots if s.members]
    strong = [s for s in live if not s.common]
    if not strong:
        return []
    norms = [P["k1"] * (1 - P["b"] + P["b"] * decoded_length(c) / average) for c in range(256)]
    scores = {}
    left = P["visits"]
    unseen = []
    for slot in sorted(strong, key=lambda s: (s.df, s.word)):
        if left <= 0:
            unseen.append(slot)
            continue
        left -= _visit(segments, slot, norms, scores)
    pool = sorted(scores.items(), key=lambda kv: (-kv[1], kv[0]))[:P["pool"]]
    return _rerank(segments, sequence, slots, unseen, pool, norms, average, n)[:limit]


def _slots(segments, sequence, n):
    counts = {}
    for t in sequence:
        counts[t] = counts.get(t, 0) + 1
    slots = []
    found = [s.lookup(counts) for s in segments]
    for word, count in counts.items():
        common = is_common(word)
        weight = (1 + log(count) if P["qlog"] else count) * (P["common"] if common else 1.0)
        slot = Slot(word, weight, common)
        for i, f in enumerate(found):
            if word in f:
                slot.members.append((i, f[word][0], 1.0))
                slot.df += f[word][1]
        if not slot.members and not common:
            for i, s in enumerate(segments):
                for w, tid, df, factor in _stand_ins(s, word):
                    slot.members.append((i, tid, factor))
                    slot.words.append(w)
                    slot.df += df
        slot.df = min(slot.df, n)
        slot.idf = log(1 + (n - slot.df + 0.5) / (slot.df + 0.5))
        slots.append(slot)
    return slots


def _stand_ins(segment, word):
    bare = plain(word)
    same = segment.unaccented(bare)
    if bare != word:
        same += [(w, t, d) for w, (t, d) in segment.lookup([bare]).items()]
    if same:
        return [(w, t, d, 1.0) for w, t, d in same]
    limit = tolerance(word)
    if not limit:
        return []
    counts = {}
    for ids in segment.grams(grams_of(word)).values():
        for t in ids:
            counts[t] = counts.get(t, 0) + 1
    best = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:200]
    near = []
    for t, (w, d) in segment.by_id([t for t, _ in best]).items():
        k = slips(word, w, limit)
        if k <= limit:
            near.append((k, w, t, d))
    if not near:
        return []
    near.sort()
    least = near[0][0]
    return [(w, t, d, P["fuzzy"] ** k) for k, w, t, d in near if k == least][:5]


def _visit(segments, slot, norms, scores):
    seen = 0
    best = {} if len(slot.members) > 1 else None
    for seg, tid, factor in slot.members:
        docs, codes = segments[seg].postings(tid)
        table = {}
        base = seg << 32
        w = slot.weight * slot.idf * factor * (P["k1"] + 1)
        for code in set(codes):
            tf = (code >> 8) / 2
            table[code] = w * tf / (tf + norms[code & 255])
        seen += len(docs)
        if best is None:
            get = scores.get
            for d, c in zip(docs, codes):
                d += base
                scores[d] = get(d, 0.0) + table[c]
        else:
            for d, c in zip(docs, codes):
                d += base
                if table[c] > best.get(d, 0.0):
                    best[d] = table[c]
    if best:
        for d, v in best.items():
            scores[d] = scores.get(d, 0.0) + v
    return seen


def _rerank(segments, sequence, slots, unseen, pool, norms, average, n):
    by_seg = {}
    for key, score in pool:
        by_seg.setdefault(key >> 32, []).append((key & 0xFFFFFFFF, score))
    slot_of = {s.word: s for s in slots}
    out = []
    for seg, rows in by_seg.items():
        segment = segments[seg]
        seqs = segment.sequences([d for d, _ in rows])
        ids = {s.word: [t for g, t, _ in s.members if g == seg] for s in slots}
        pairs = {}
        for a, b in zip(sequence, sequence[1:]):
            if a != b and (a, b) not in pairs and not (slot_of[a].common and slot_of[b].common):
                w = P["pair"] * (slot_of[a].idf * slot_of[a].weight + slot_of[b].idf * slot_of[b].weight) 
                pairs[a, b] = (w, [pack("=II", x, y) for x in ids[a] for y in ids[b]])
        pairs = [p for p in pairs.values() if p[1]]
        extra = [(s, ids[s.word]) for s in slots if (s.common or s in unseen) and ids[s.word]]
        gramw, gtable = _gram_terms(segment, sequence, n)
        for d, score in rows:
            if d not in seqs:
                continue
            length, packed = seqs[d]
            arr = array("I", packed)
            norm = norms[_code(length)]
            for s, tids in extra:
                tf = sum(map(arr.count, tids))
                if tf:
                    score += s.weight * s.idf * tf * (P["k1"] + 1) / (tf + norm)
            for w, keys in pairs:
                for key in keys:
                    at = packed.find(key)
                    while at >= 0 and at % 4:
                        at = packed.find(key, at + 1)
                    if at >= 0:
                        score += w
                        break
            g = 0.0
            hits = gtable.keys() & set(arr)
            if hits:
                acc = {}
                for t in hits:
                    tf = arr.count(t) if P["gtf"] else 1
                    for gram in gtable[t]:
                        acc[gram] = acc.get(gram, 0) + tf
                gn = P["gk1"] * (1 - P["gb"] + P["gb"] * length / average)
                for gram, tf in acc.items():
                    g += gramw[gram] * tf / (tf + gn)
            out.append([score, g, seg, d])
    top = max((r[0] for r in out), default=1.0) or 1.0
    gtop = max((r[1] for r in out), default=0.0) or 1.0
    res = [(r[0] / top + P["gram"] * r[1] / gtop, r[2], r[3]) for r in out]
    res.sort(key=lambda r: (-round(r[0], 6), r[1], r[2]))
    return res


def _code(length):
    from engram.store.index_tables import length_code
    return length_code(length)


def _gram_terms(segment, sequence, n):
    want = {}
    for t in dict.fromkeys(sequence):
        if not is_common(t):
            for g in grams_of(t):
                want[g] = want.get(g, 0) + 1
    found = segment.grams(want)
    tids = set()
    for ids in found.values():
        tids.update(ids)
    dfs = segment.by_id(tids)
    gramw, gtable = {}, {}
    for g, ids in found.items():
        df = sum(dfs[t][1] for t in ids if t in dfs)
        df = n * (1 - exp(-df / n)) if df else 0
        gramw[g] = log(1 + (n - df + 0.5) / (df + 0.5)) * (1 + log(want[g]))
        for t in ids:
            if t in dfs:
                gtable.setdefault(t, []).append(g)
    return gramw, gtable
