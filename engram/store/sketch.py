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
_DIGITS = [bytes(48 + (step >> digit & 1) for step in range(256)) for digit in range(5)]  # of a step, as text
_WEIGHTS = [0, *(round(4 * (1 + log(count))) for count in range(1, 64))]  # of a word by its count, in quarters
_MOST = 20_000  # more weight could run over from a lane into the next one

_LEVELS = 31  # to which weights of grams are rounded
_BIT = [bytes(byte >> bit & 1 for byte in range(256)) for bit in range(8)]

_bits: dict[str, int] = {}
_MEMO_LIMIT = 100_000


def text_grams(text: str) -> dict[str, int]:
    """Return how often each gram occurs in a text, whose ends count as blanks."""
    framed, found = f" {text} ", {}
    for at in range(len(framed) - GRAM + 1):
        gram = framed[at:at + GRAM]
        found[gram] = found.get(gram, 0) + 1
    return found


def gram_bit(gram: str) -> int:
    """Return the number of a gram's bit."""
    bit = _bits.get(gram)
    if bit is None:
        if len(_bits) >= _MEMO_LIMIT:
            _bits.clear()
        bit = _bits[gram] = int.from_bytes(gram.encode("utf-8", "surrogatepass"), "little") % _PRIME
    return bit


def gram_sketch(text: str) -> bytes:
    """Return the bits of a text's grams, bit 0 last."""
    framed = f" {text} "
    flags = bytearray(b"0") * GRAM_BITS
    for bit in set(map(gram_bit, {framed[at:at + GRAM] for at in range(len(framed) - GRAM + 1)})):
        flags[~bit] = 49
    return int(flags, 2).to_bytes(GRAM_BITS // 8, "big")


def vector_sketch(counts, table) -> bytes:
    """Return the bits of the direction of `{word: count}`; zeros when the table has none of the words."""
    most = len(_WEIGHTS) - 1
    total, lanes = _summed([(word, _WEIGHTS[min(count, most)]) for word, count in counts.items()], table)
    return _packed([2 * value > 3 * total for value in lanes]).to_bytes(table.dimensions // 8, "big")


def gram_hits(sketches, wanted, parts, weigh):
    """Return ({gram: weight}, {gram: a byte for each sketch, 1 where it may have the gram}, [weight of what each has, …], weight of all).

    Grams that no sketch has are left out. `parts`: what part of its bits each sketch has, and so the chance that it has one for
    another gram's sake. `weigh(gram, number)` gives the weight of a gram that about so many have; in sums it is rounded.
    """
    whole, size, count, chance = b"".join(sketches), GRAM_BITS // 8, len(sketches), sum(parts)
    columns, weights = {}, {}
    for gram in wanted:
        bit = gram_bit(gram)
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
        low = min(lanes)
        step = (max(lanes) - low) / (_STEPS - 1) or 1.0
        steps = bytes([int((value - low) / step + 0.5) for value in lanes])
        # a plane holds one binary digit of every dimension: products with bits are counts of common bits
        self._planes = [int(steps.translate(digit), 2) for digit in _DIGITS]
        middle = 1.5 * total
        self._sum, squares = sum(lanes) - middle * len(lanes), sum(map(mul, lanes, lanes))
        self._share = most / sqrt((squares - 2 * middle * self._sum - middle * middle * len(lanes)) * len(lanes))
        self._low, self._step = low - middle, step

    def likeness(self, sketches) -> list[float]:
        """Return how near the direction of each vector sketch is, 0 to `most`; by the cosine with its signs alone."""
        one, two, four, eight, sixteen = self._planes
        step, low, base, share = 2 * self._step * self._share, 2 * self._low * self._share, self._sum * self._share, int.from_bytes
        return [max(0.0, step * ((one & bits).bit_count() + 2 * (two & bits).bit_count() + 4 * (four & bits).bit_count()
                                 + 8 * (eight & bits).bit_count() + 16 * (sixteen & bits).bit_count()) + low * bits.bit_count() - base)
                if bits else 0.0 for bits in [share(sketch, "big") for sketch in sketches]]


def _summed(weights, table):
    """Return (weight of all words, sum of their weighted vectors) of pairs of a word and a small integer."""
    total = lanes = 0
    for word, weight in weights:
        vector = table.vector(word)
        if vector:
            lanes += weight * vector
            total += weight
            if total > _MOST:
                break
    values = array("H", lanes.to_bytes(LANE * table.dimensions, "little"))
    if byteorder == "big":
        values.byteswap()
    return total, values


def _packed(flags) -> int:
    """Return truths as the bits of an integer, the first one highest."""
    return int("".join(["1" if flag else "0" for flag in flags]) or "0", 2)
