"""The word table: for each of its words, the words that mean nearly the same, with how nearly, and the direction it points in.

Pure: bytes come from a function; must not know where they lie. The table was distilled from an embedding model
(tests/bench/distill.py, NOTICE); here a look-up is all there is.

Layout, integers little-endian: `MAGIC`, then size of the words (4 bytes), neighbours a record, bytes a vector (1 byte each), 2
bytes of zeros; the words in UTF-8, sorted as bytes, a line end after each; then a record for each word:
- the number of the record of each neighbour, nearest first (2 bytes each);
- their similarities in fifteenths, two to a byte, the first in the low half; 0 where there are no more;
- the vector, four dimensions to a byte, the first in the lowest bits: 0 to 3 stand for -1.5, -0.5, 0.5 and 1.5.
"""
from __future__ import annotations

from bisect import bisect_left

MAGIC = b"EngramW2"
HEADER = 16
LANE = 2  # bytes of a dimension in `vector`
_MEMO_LIMIT = 20_000
_NUMBER = 2

# of every byte the dimension at each of its four places; made of runs, which costs a start nothing
_PLACES = [b"".join(bytes((value,)) * (1 << shift) for value in range(4)) * (64 >> shift) for shift in (0, 2, 4, 6)]


class Table:
    """One open table. `read(offset, size) -> bytes` gives a part of it; raises ValueError when it is no such table."""

    def __init__(self, read):
        head = read(0, HEADER)
        if len(head) != HEADER or head[:8] != MAGIC or not head[13]:
            raise ValueError("not a word table of this version")
        self._read = read
        self._most, self.dimensions = head[12], 4 * head[13]
        self._shares = _NUMBER * self._most
        self._direction = self._shares + (self._most + 1) // 2
        self._size = self._direction + head[13]
        # all of them at once: one read costs less than the dozens that a query's words and their neighbours would need
        size = int.from_bytes(head[8:12], "little")
        self.words = read(HEADER, size).split(b"\n")[:-1]
        self._start = HEADER + size
        self._related: dict[str, tuple] = {}
        self._vectors: dict[str, int] = {}

    def related(self, words) -> dict[str, list[tuple[str, float]]]:
        """Return `{word: [(related word, similarity 0 to 1), …]}`, nearest first, for those of the words that the table has.

        Words are terms as `text.words.terms` makes them, on both sides.
        """
        found = {}
        for word in words:
            row = self._related.get(word)
            if row is None:
                row = _remember(self._related, word, self._neighbours(self._record(word)))
            if row:
                found[word] = list(row)
        return found

    def vector(self, word: str) -> int:
        """Return the vector of a word as one integer, its dimensions 0 to 3 in lanes of `LANE` bytes; 0 for an unknown word.

        So vectors are added, and multiplied by small weights, all dimensions at once.
        """
        lanes = self._vectors.get(word)
        if lanes is None:
            packed = self._record(word)[self._direction:]
            spread = bytearray(4 * LANE * len(packed))
            for at, place in enumerate(_PLACES):
                spread[at * LANE::4 * LANE] = packed.translate(place)
            lanes = _remember(self._vectors, word, int.from_bytes(spread, "little"))
        return lanes

    def _record(self, word: str) -> bytes:
        """Return the record of a word, found by bisection; empty for an unknown word."""
        wanted = word.encode("utf-8", "surrogatepass")
        at = bisect_left(self.words, wanted)
        return self._read(self._start + at * self._size, self._size) if self.words[at:at + 1] == [wanted] else b""

    def _neighbours(self, record: bytes) -> tuple[tuple[str, float], ...]:
        out = []
        for place, byte in enumerate(record[self._shares:self._direction]):
            for at, share in ((2 * place, byte & 15), (2 * place + 1, byte >> 4)):
                if not share:
                    return tuple(out)
                number = int.from_bytes(record[_NUMBER * at:_NUMBER * (at + 1)], "little")
                if number < len(self.words):
                    out.append((self.words[number].decode("utf-8", "replace"), share / 15))
        return tuple(out)


def _remember(memo: dict, word: str, value):
    if len(memo) >= _MEMO_LIMIT:
        memo.clear()
    memo[word] = value
    return value


def packed(neighbours: dict[str, list[tuple[str, float]]], vectors: dict[str, list[int]], *, most: int) -> bytes:
    """Return the bytes of a table; related words that are no words of the table themselves are left out.

    `vectors`: dimensions 0 to 3 of each word, four or a multiple of them.
    """
    words = sorted(neighbours, key=str.encode)
    if len(words) > 0xFFFF:
        raise ValueError("a word table holds 65,535 words at most")
    number = {word: place for place, word in enumerate(words)}
    size = len(vectors[words[0]]) // 4 if words else 0
    lines = "".join(word + "\n" for word in words).encode()
    out = [MAGIC, len(lines).to_bytes(4, "little"), bytes((most, size, 0, 0)), lines]
    for word in words:
        rows = [(number[other], min(15, round(similarity * 15))) for other, similarity in neighbours[word]
                if other in number and other != word]
        rows = [(place, share) for place, share in rows if share > 0][:most]
        shares = [share for _, share in rows] + [0] * (most + 1 - len(rows))
        out += [place.to_bytes(_NUMBER, "little") for place, _ in rows]
        out.append(bytes(_NUMBER * (most - len(rows))))
        out.append(bytes(shares[at] | shares[at + 1] << 4 for at in range(0, most, 2)))
        vector = vectors[word]
        out.append(bytes(sum(vector[at + part] << 2 * part for part in range(4)) for at in range(0, len(vector), 4)))
    return b"".join(out)
