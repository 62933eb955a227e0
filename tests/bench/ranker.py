#!/usr/bin/env python3
"""Speaks the protocol of ../shared/bench/evaluate.py for the product's own ranker, with the settings that `engram load` uses.

A group of documents is a store of its own: that is where such documents would live.
"""
from __future__ import annotations

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from engram.recall import rank, words
from engram.store import index_tables, places


class Ranker:
    """Documents in, ranked ids out."""

    def __init__(self):
        # `recall.vectors` on, as by default; no folder of a user is looked at
        self.table = words.table(places.find(os.curdir, env={})) if "--lexical" not in sys.argv else None

    def index(self, docs) -> None:
        groups = {}
        for doc in docs:
            groups.setdefault(doc.get("group"), []).append(doc)
        self.stores = {}
        for group, members in groups.items():
            tables = index_tables.in_memory()
            tables.add((number, (doc.get("title") or "", "\n".join(doc.get("tags") or ()), doc["text"]))
                       for number, doc in enumerate(members))
            self.stores[group] = tables, [doc["id"] for doc in members]

    def query(self, text, k, group):
        if group not in self.stores:
            return [], []
        tables, ids = self.stores[group]
        hits = rank.rank([tables], text, limit=k, table=self.table).hits
        return [ids[hit.doc] for hit in hits], [hit.score for hit in hits]


def main() -> None:
    ranker = Ranker()
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["op"] == "index":
            ranker.index(asked["docs"])
            answer = {"ok": True}
        else:
            ids, scores = ranker.query(asked["text"], asked.get("k", 10), asked.get("group"))
            answer = {"ids": ids, "scores": scores}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
