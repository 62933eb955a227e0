"""The word table: for each of its words, the words that mean nearly the same, with how nearly.

Pure: bytes come from a function; must not know where they lie. The table was distilled from an embedding model
(tests/bench/distill.py, NOTICE); here a look-up is all there is.

Layout, integers little-endian: `MAGIC`, then count (4 bytes), key size, neighbours a record (1 byte each), 2 bytes of zeros;
then `count` records sorted by key: the word in UTF-8 padded with zeros, then for each neighbour, nearest first, the number of
its record (2 bytes) and its similarity in 255ths (1 byte), 0 where there are no more.
"""
from __future__ import annotations

MAGIC = b"EngramW1"
HEADER = 16
_NEIGHBOUR = 3
_MEMO_LIMIT = 20_000


class Table:
    """One open table. `read(offset, size) -> bytes` gives a part of it; raises ValueError when it is no such table."""

    def __init__(self, read):
        head = read(0, HEADER)
        if len(head) != HEADER or head[:8] != MAGIC:
            raise ValueError("not a word table of this version")
        self._read = read
        self.count = int.from_bytes(head[8:12], "little")
        self._key, self._most = head[12], head[13]
        self._size = self._key + _NEIGHBOUR * self._most
        self._memo: dict[str, tuple] = {}

    def related(self, words) -> dict[str, list[tuple[str, float]]]:
        """Return `{word: [(related word, similarity 0 to 1), …]}`, nearest first, for those of the words that the table has.

        Words are terms as `text.words.terms` makes them, on both sides.
        """
        found = {}
        for word in words:
            row = self._memo.get(word)
            if row is None:
                if len(self._memo) >= _MEMO_LIMIT:
                    self._memo.clear()
                row = self._memo[word] = self._look_up(word)
            if row:
                found[word] = list(row)
        return found

    def _look_up(self, word: str) -> tuple[tuple[str, float], ...]:
        wanted = word.encode("utf-8", "surrogatepass")
        if len(wanted) > self._key:
            return ()
        wanted = wanted.ljust(self._key, b"\0")
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self._read(HEADER + middle * self._size, self._key) < wanted:
                low = middle + 1
            else:
                high = middle
        record = self._read(HEADER + low * self._size, self._size) if low < self.count else b""
        if record[:self._key] != wanted:
            return ()
        out = []
        for at in range(self._key, len(record), _NEIGHBOUR):
            similarity = record[at + 2]
            if not similarity:
                break
            number = int.from_bytes(record[at:at + 2], "little")
            key = self._read(HEADER + number * self._size, self._key)
            out.append((key.rstrip(b"\0").decode("utf-8", "replace"), similarity / 255))
        return tuple(out)


def packed(neighbours: dict[str, list[tuple[str, float]]], *, key_size: int, most: int) -> bytes:
    """Return the bytes of a table; related words that are no words of the table themselves are left out."""
    words = sorted((word for word in neighbours if len(word.encode()) <= key_size), key=str.encode)
    if len(words) > 0xFFFF:
        raise ValueError("a word table holds 65,535 words at most")
    number = {word: place for place, word in enumerate(words)}
    out = [MAGIC, len(words).to_bytes(4, "little"), bytes((key_size, most, 0, 0))]
    for word in words:
        rows = [(number[other], round(similarity * 255)) for other, similarity in neighbours[word] if other in number and other != word]
        rows = [(place, share) for place, share in rows if share > 0][:most]
        out.append(word.encode().ljust(key_size, b"\0"))
        out += [place.to_bytes(2, "little") + bytes((min(share, 255),)) for place, share in rows]
        out.append(bytes(_NEIGHBOUR * (most - len(rows))))
    return b"".join(out)
