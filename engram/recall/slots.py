"""How a query is read: its words, what each stands for in the vocabulary, and what it weighs.

Pure, as `rank` is. An unknown word may be one without its accents, an abbreviation by letter count (`kubernetes` for `k8s`),
or a typing error; each finds the words of the vocabulary that it stands for.
"""
from __future__ import annotations

from math import log

from engram.store.index_tables import spelling_grams
from engram.text.folding import plain
from engram.text.typing_errors import slips, tolerance
from engram.text.words import is_common, stemmed

MOST_SLOTS = 64
BACKGROUND = 20  # documents of the world around a store, which have none of its words
MOST_UNKNOWN = 12  # words of a query that are looked up as typing errors
SLIP = 0.8  # what one typing error leaves of a word's weight
NEAR = 40  # words of the vocabulary that are compared letter by letter
MOST_MEMBERS = 12  # the word and its related ones, nearest first
RELATED = 0.7  # what a related word counts, beside its similarity


class Slot:
    """One word of a query. `members` are `(segment, term id, word, factor)`: what it matches, the word itself with factor 1.

    The first `own` of them spell the word or what was meant by it; the others are related words.
    """

    __slots__ = ("common", "df", "idf", "members", "own", "weight", "word")

    def __init__(self, word: str, weight: float, common: bool):
        self.word, self.weight, self.common = word, weight, common
        self.members: list[tuple[int, int, str, float]] = []
        self.df, self.idf, self.own = 0, 0.0, 0


def of_query(segments, sequence, number: int, table=None) -> list[Slot]:
    """Return the slots of a query in its order; of a long one those that weigh most. `number`: documents in all."""
    counts: dict[str, int] = {}
    for word in sequence:
        counts[word] = counts.get(word, 0) + 1
    slots = [Slot(word, 1 + log(count), is_common(word)) for word, count in counts.items()]
    found = [segment.lookup(counts) for segment in segments]
    unknown = 0
    for slot in slots:
        for at, known in enumerate(found):
            if slot.word in known:
                term, df = known[slot.word]
                slot.members.append((at, term, slot.word, 1.0))
                slot.df += df
        if not slot.members and not slot.common and unknown < MOST_UNKNOWN:
            unknown += 1
            _stand_in(segments, slot)
    for slot in slots:
        slot.own = len(slot.members)
    if table:
        _relate(segments, sequence, slots, table)
    for slot in slots:
        slot.idf = rarity(min(slot.df, number), number)
    if len(slots) > MOST_SLOTS:
        heaviest = sorted((slot for slot in slots if slot.members), key=lambda slot: (slot.common, -slot.weight * slot.idf, slot.word))
        kept = {slot.word for slot in heaviest[:MOST_SLOTS]}
        slots = [slot for slot in slots if slot.word in kept]
    return slots


def rarity(df: int, number: int) -> float:
    """Return the weight of a thing that `df` of `number` documents have.

    Without the background a store of a few memories would take each of its words for a common one.
    """
    return log(1 + (number + BACKGROUND - df + 0.5) / (df + 0.5))


def _stand_in(segments, slot: Slot) -> None:
    """Give an unknown word the words that it stands for."""
    bare = stemmed(plain(slot.word))
    for at, segment in enumerate(segments):
        for word, term, df in segment.unaccented(bare):
            _add(slot, at, term, word, 1.0, df)
        if bare != slot.word:
            for word, (term, df) in segment.lookup([bare]).items():
                _add(slot, at, term, word, 1.0, df)
    if slot.members:
        return
    if len(bare) > 5 and bare.isalpha():
        short = f"{bare[0]}{len(bare) - 2}{bare[-1]}"
        for at, segment in enumerate(segments):
            for word, (term, df) in segment.lookup([short]).items():
                _add(slot, at, term, word, 1.0, df)
    limit = tolerance(slot.word)
    near = []
    if limit and not slot.members:
        for at, segment in enumerate(segments):
            near += [(count, word, at, term, df) for count, word, term, df in _near(segment, slot.word, limit)]
    least = min((row[0] for row in near), default=0)
    for count, word, at, term, df in sorted(near):
        if count == least:
            _add(slot, at, term, word, SLIP ** count, df)


def _near(segment, word: str, limit: int) -> list[tuple[int, str, int, int]]:
    """Return `(slips, word, term id, df)` of the vocabulary's words within `limit` slips."""
    shared: dict[int, int] = {}
    for ids in segment.grams(spelling_grams(word)).values():
        for term in ids:
            shared[term] = shared.get(term, 0) + 1
    likely = sorted(shared.items(), key=lambda row: (-row[1], row[0]))
    # a slip spoils three grams at most
    least = max(1, len(word) - 3 * limit)
    likely = [term for term, count in likely[:4 * NEAR] if count >= least or count >= likely[0][1] - 1]
    words = [(known, term, df) for term, (known, df) in segment.by_id(likely).items() if abs(len(known) - len(word)) <= limit]
    words.sort(key=lambda row: (-shared[row[1]], row[0]))
    found = [(slips(word, known, limit), known, term, df) for known, term, df in words[:NEAR]]
    return [row for row in found if row[0] <= limit]


def _relate(segments, sequence, slots: list[Slot], table) -> None:
    """Add related words to the slots; they count less than the word, and not for its rarity."""
    wanted = table.related([slot.word for slot in slots if not slot.common])
    for left, right in zip(sequence, sequence[1:]):
        if not (left.isascii() and right.isascii()):  # Vietnamese writes the syllables of a word apart
            for rows in table.related([f"{left} {right}"]).values():
                wanted[left] = rows
    words = {word for rows in wanted.values() for word, _ in rows}
    found = [segment.lookup(words) for segment in segments]
    for slot in slots:
        for word, similarity in wanted.get(slot.word, ()):
            for at, known in enumerate(found):
                if word in known and word != slot.word:
                    term, df = known[word]
                    _add(slot, at, term, word, RELATED * similarity, df if not slot.df else 0)


def _add(slot: Slot, segment: int, term: int, word: str, factor: float, df: int) -> None:
    if len(slot.members) < MOST_MEMBERS:
        slot.members.append((segment, term, word, factor))
        slot.df += df
