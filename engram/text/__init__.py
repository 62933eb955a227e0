"""Text to terms: folding, stems, compound words, unspaced scripts, typing errors, similarity of two texts.

Must not know memories or files.
"""
from __future__ import annotations

from engram.text.folding import fold, plain
from engram.text.similar import explain, similarity
from engram.text.words import is_common, is_unspaced, terms, words

__all__ = ["explain", "fold", "is_common", "is_unspaced", "plain", "similarity", "terms", "words"]
