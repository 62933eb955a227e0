"""Sketches: a document in a few hundred bytes, by which many are looked at before some are read.

Pure. A sketch has two parts: the direction that the words of a document point in together, a bit for each dimension of the word
table; and which character grams it has, a bit each, shared by chance with others. Must not know SQLite, ranking or files.
"""
from __future__ import annotations

from array import array
from math import log, sqrt
from operator import add, mul
from sys import byteorder

from engram.text.related import LANE

GRAM = 4  # characters
GRAM_BITS = 4096
_PRIME = 4093  # below GRAM_BITS, so that every character of a gram counts
_STEPS = 32  # to which a query's dimensions are rounded
# what a byte becomes by one of its bits, as text or as a number; made of runs, which costs a start nothing
_DIGITS = [(b"0" * (1 << bit) + b"1" * (1 << bit)) * (128 >> bit) for bit in range(8)]
_BIT = [(bytes(1 << bit) + b"\1" * (1 << bit)) * (128 >> bit) for bit in range(8)]
_WEIGHTS = [0, *(round(4 * (1 + log(count))) for count in range(1, 64))]  # of a word by its count, in quarters
_HALF = 0x8000  # of what a lane of two bytes holds
_MOST = 10_000  # more weight of words could reach the highest bit of a lane

_LEVELS = 31  # to which weights of grams are rounded

_MEMO_LIMIT = 100_000


def text_grams(text: str) -> dict[str, int]:
    """Return how often each gram occurs in a text, whose ends count as blanks."""
    framed, found = f" {text} ", {}
    for at in range(len(framed) - GRAM + 1):
        gram = framed[at:at + GRAM]
        found[gram] = found.get(gram, 0) + 1
    return found


class _Bits(dict):
    """The number of a gram's bit by gram."""

    def __missing__(self, gram):
        if len(self) >= _MEMO_LIMIT:
            self.clear()
        bit = self[gram] = int.from_bytes(gram.encode("utf-8", "surrogatepass"), "little") % _PRIME
        return bit


_bits = _Bits()


def gram_sketch(text: str) -> tuple[float, bytes]:
    """Return (part of the bits that are set, bits of a text's grams, bit 0 last)."""
    framed = f" {text} "
    bits = set(map(_bits.__getitem__, [framed[at:at + GRAM] for at in range(len(framed) - GRAM + 1)]))
    flags = bytearray(b"0") * GRAM_BITS
    for bit in bits:
        flags[~bit] = 49
    return len(bits) / GRAM_BITS, int(flags, 2).to_bytes(GRAM_BITS // 8, "big")


def vector_sketch(counts, table) -> bytes:
    """Return the bits of the direction of `{word: count}`; zeros when the table has none of the words."""
    most, size = len(_WEIGHTS) - 1, table.dimensions
    total, lanes = _summed([(word, _WEIGHTS[min(count, most)]) for word, count in counts.items()], table)
    # a lane's highest bit shows whether it is above the middle, once what is missing from there is added to each of them
    lanes += (_HALF - 3 * total // 2 - 1) * int.from_bytes(b"\1\0" * size, "little")
    return int(lanes.to_bytes(LANE * size, "little")[1::LANE].translate(_DIGITS[7]), 2).to_bytes(size // 8, "big")


def gram_hits(sketches, wanted, parts, weigh):
    """Return ({gram: weight}, {gram: a byte for each sketch, 1 where it may have the gram}, [weight of what each has, …], weight of all).

    Grams that no sketch has are left out. `parts`: what part of its bits each sketch has, and so the chance that it has one for
    another gram's sake. `weigh(gram, number)` gives the weight of a gram that about so many have; in sums it is rounded.
    """
    whole, size, count, chance = b"".join(sketches), GRAM_BITS // 8, len(sketches), sum(parts)
    columns, weights = {}, {}
    for gram in wanted:
        bit = _bits[gram]
        # a byte a sketch: each size-th byte of all of them, then its bit alone
        column = whole[size - 1 - (bit >> 3)::size].translate(_BIT[bit & 7])
        number = column.count(1)
        if number:
            columns[gram] = column
            weights[gram] = weigh(gram, max(1.0, (number - chance) / (1 - chance / count)))
    top = max(weights.values(), default=1.0)
    hits, lanes, full, total = [0] * count, 0, 0, 0
    for gram, weight in weights.items():
        level = round(_LEVELS * weight / top)
        if full + level > 255:
            hits = list(map(add, hits, lanes.to_bytes(count, "little")))
            lanes = full = 0
        lanes += level * int.from_bytes(columns[gram], "little")
        full += level
        total += level
    return weights, columns, list(map(add, hits, lanes.to_bytes(count, "little"))), total


class Direction:
    """Where the words of a query point together: `{word: weight}`, words of the table. `most`: what the same direction is worth."""

    def __init__(self, weights, table, most: float):
        total, lanes = _summed([(word, max(1, round(4 * weight))) for word, weight in weights.items()], table)
        lanes = array("H", lanes.to_bytes(LANE * table.dimensions, "little"))
        if byteorder == "big":
            lanes.byteswap()
        low = min(lanes)
        step = (max(lanes) - low) / (_STEPS - 1) or 1.0
        steps = bytes([int((value - low) / step + 0.5) for value in lanes])
        # a plane holds one binary digit of every dimension: products with bits are counts of common bits
        self._planes = [int(steps.translate(digit), 2) for digit in _DIGITS[:5]]
        middle = 1.5 * total
        self._sum, squares = sum(lanes) - middle * len(lanes), sum(map(mul, lanes, lanes))
        squares -= 2 * middle * self._sum + middle * middle * len(lanes)  # of the distances from the middle
        self._share = most / sqrt(max(1.0, squares) * len(lanes))
        self._low, self._step = low - middle, step

    def likeness(self, sketches) -> list[float]:
        """Return how near the direction of each vector sketch is, 0 to `most`; by the cosine with its signs alone."""
        one, two, four, eight, sixteen = self._planes
        step, low, base = 2 * self._step * self._share, 2 * self._low * self._share, self._sum * self._share
        return [max(0.0, step * ((one & bits).bit_count() + 2 * (two & bits).bit_count() + 4 * (four & bits).bit_count()
                                 + 8 * (eight & bits).bit_count() + 16 * (sixteen & bits).bit_count()) + low * bits.bit_count() - base)
                if bits else 0.0 for bits in [int.from_bytes(sketch, "big") for sketch in sketches]]


def _summed(weights, table):
    """Return (weight of all words, sum of their weighted vectors as lanes) of pairs of a word and a small integer."""
    total = lanes = 0
    for word, weight in weights:
        vector = table.vector(word)
        if vector:
            lanes += weight * vector
            total += weight
            if total > _MOST:
                break
    return total, lanes
