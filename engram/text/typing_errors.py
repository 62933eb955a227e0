"""Words that differ by a slip of the finger: how many slips, and how many a word may have.

Must not know where the vocabulary is kept.
"""
from __future__ import annotations


def tolerance(word: str) -> int:
    """How many slips a word of its length may have: none under 4 letters, one under 8, else two."""
    if len(word) < 4 or any(c.isdigit() for c in word):
        return 0
    return 1 if len(word) < 8 else 2


def slips(a: str, b: str, limit: int) -> int:
    """Count the insertions, deletions, substitutions and swaps that turn `a` into `b`; more than `limit` is `limit + 1`."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row = row, [i]
        for j, y in enumerate(b, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before = previous
    return row[-1]
