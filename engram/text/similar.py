"""How alike two texts are, for verdicts and for duplicates.

Symmetric and deterministic; knows no corpus, so a word weighs by what it is, not by how rare it is.
"""
from __future__ import annotations

from math import fsum

from engram.text.words import is_common, terms

_COMMON_WEIGHT = 0.15


def similarity(a: str, b: str) -> float:
    """Return 0.0 (nothing shared) to 1.0 (the same terms): the mean of shared words and shared character grams."""
    left, right = terms(a), terms(b)
    if left == right:
        return 1.0 if left else 0.0
    return 0.65 * _dice(_weights(left), _weights(right)) + 0.35 * _dice(_gram_weights(left), _gram_weights(right))


def explain(a: str, b: str) -> dict:
    """Return what two texts share and what each has alone: `{score, shared, left, right}`, terms in order of the text."""
    left, right = terms(a), terms(b)
    return {"score": similarity(a, b),
            "shared": _unique(t for t in left if t in set(right) and not is_common(t)),
            "left": _unique(t for t in left if t not in set(right) and not is_common(t)),
            "right": _unique(t for t in right if t not in set(left) and not is_common(t))}


def _unique(found) -> list[str]:
    return list(dict.fromkeys(found))


def _weights(found: list[str]) -> dict[str, float]:
    """Weight of each distinct term; common words count little."""
    return {t: _COMMON_WEIGHT if is_common(t) else 1.0 for t in found}


def _gram_weights(found: list[str]) -> dict[str, float]:
    """Distinct character grams of the terms that say something."""
    out: dict[str, float] = {}
    for term in found:
        if not is_common(term):
            framed = f"^{term}$"
            for i in range(max(1, len(framed) - 3)):
                out[framed[i:i + 4]] = 1.0
    return out


def _dice(a: dict[str, float], b: dict[str, float]) -> float:
    """Weighted Dice coefficient of two sets."""
    total = fsum(a.values()) + fsum(b.values())
    if not total:
        return 0.0
    return 2 * fsum(weight for key, weight in a.items() if key in b) / total  # fsum: the same in either order
