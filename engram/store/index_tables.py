"""The tables of the derived index: documents, vocabulary, postings, and the grams of the vocabulary.

Answers what a ranker asks (`lookup`, `postings`, `sequences`, …) and takes documents in and out. Knows SQLite and terms;
must not know files, hashes, visibility or how scores are made.

Postings of a term lie in chunks of `CHUNK` documents, as two packed columns: document ids (4 bytes each) and codes (2 bytes:
the weighted term count in halves, then the length of the document as `length_code` writes it). A removed document leaves its
postings behind; its row is gone, so they count for nothing, and `dead` in `meta` says when a rebuild pays.
"""
from __future__ import annotations

import _sqlite3 as sqlite  # the C module: `sqlite3` adds datetime and 2 ms to every start
from array import array
from collections import Counter
from math import log2

from engram.store import sketch, word_table
from engram.text.folding import plain
from engram.text.words import common, is_unspaced, stemmed, terms, words

CHUNK_BITS = 12
MOST_KEPT = 4096  # rows of a kind that a process keeps at hand; some 3 MB of the largest kind
_TERM_SHIFT = 20  # chunk numbers below it: 2^32 documents
FIELD_WEIGHTS = (4, 3, 2)  # title, tags and triggers, text; in halves
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE term (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, df INTEGER NOT NULL);
CREATE TABLE alias (plain TEXT NOT NULL, term INTEGER NOT NULL, PRIMARY KEY (plain, term)) WITHOUT ROWID;
CREATE TABLE posting (id INTEGER PRIMARY KEY, docs BLOB NOT NULL, codes BLOB NOT NULL);
CREATE TABLE gram (gram TEXT PRIMARY KEY, terms BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE sequence (id INTEGER PRIMARY KEY, length INTEGER NOT NULL, terms BLOB NOT NULL, words TEXT NOT NULL);
CREATE TABLE sketch (id INTEGER PRIMARY KEY, length INTEGER NOT NULL, part REAL NOT NULL, vector BLOB NOT NULL, grams BLOB NOT NULL);
"""


def length_code(length: int) -> int:
    """Return a document length in terms as one byte, in steps of 4 %."""
    return min(255, int(16 * log2(1 + length) + 0.5))


LENGTHS = [2 ** (code / 16) - 1 for code in range(256)]  # that codes stand for


def spelling_grams(term: str) -> list[str]:
    """Return the distinct runs of three letters of a term with its ends marked; none for unspaced scripts and numbers."""
    if len(term) < 3 or len(term) > 40 or not term[0].isalpha() or is_unspaced(term):
        return []
    framed = f"^{term}$"
    return list(dict.fromkeys(framed[at:at + 3] for at in range(len(framed) - 2)))


def spelled(fields) -> str:
    """Return the words of a document as character grams read them: folded, unstemmed, common words and unspaced runs out."""
    skipped = common()
    kept = [word for field in fields for word in words(field) if word not in skipped]
    return " ".join(kept if all(map(str.isascii, kept)) else [word for word in kept if not is_unspaced(word)])


class Tables:
    """One open index. Reading methods may be called at any time, writing ones inside the caller's transaction."""

    def __init__(self, connection):
        self.db = connection
        self._ids: dict[str, int] = {}
        self._version = None
        self._kept: dict[str, dict] = {}  # rows that were read, until somebody writes

    def forget(self) -> None:
        """Forget what was read, and the ids of words that a transaction made: it is over, or was not kept."""
        self._ids.clear()
        self._kept.clear()

    # -- what a ranker asks -------------------------------------------------------------------------------------------

    def notice(self) -> None:
        """Forget what was read when another connection has written since."""
        version = self.db.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._kept.clear()

    def totals(self) -> tuple[int, int]:
        """Return the number of documents and the sum of their lengths."""
        rows = dict(self.db.execute("SELECT key, value FROM meta WHERE key IN ('documents', 'length')"))
        return int(rows.get("documents", 0)), int(rows.get("length", 0))

    def lookup(self, words) -> dict[str, tuple[int, int]]:
        """Return `{word: (term id, document frequency)}` of the words that documents have."""
        found = self.rows("SELECT word, id, df FROM term WHERE df > 0 AND word IN", words)
        return {word: (term, df) for word, term, df in found.values()}

    def rows(self, select: str, keys, tail: str = "", *, keep: bool = True) -> dict:
        """Return `{key: row}` of the rows whose first column is one of the keys; a process that asks again has them at hand.

        `keep`: whether it has; rows that may be large are read each time.
        """
        keys = list(keys)
        kept = self._kept.setdefault(select + tail, {}) if keep else {}
        missing = [key for key in dict.fromkeys(keys) if key not in kept]
        if kept and len(kept) + len(missing) > MOST_KEPT:
            kept.clear()
            missing = list(dict.fromkeys(keys))
        kept.update(dict.fromkeys(missing))
        for at in range(0, len(missing), 500):
            part = missing[at:at + 500]
            for row in self.db.execute(f"{select} ({','.join('?' * len(part))}){tail}", part):
                kept[row[0]] = row
        return {key: kept[key] for key in keys if kept[key] is not None}

    def unaccented(self, word: str) -> list[tuple[str, int, int]]:
        """Return `(word, id, df)` of the words that are `word` once their accents are dropped."""
        return list(self.db.execute("SELECT t.word, t.id, t.df FROM alias a JOIN term t ON t.id = a.term "
                                    "WHERE a.plain = ? AND t.df > 0 ORDER BY t.word", (word,)))

    def by_id(self, ids) -> dict[int, tuple[str, int]]:
        """Return `{term id: (word, df)}`."""
        return {term: (word, df) for term, word, df in self.rows("SELECT id, word, df FROM term WHERE df > 0 AND id IN", ids).values()}

    def postings(self, term: int, most: int = 1 << 30) -> tuple[array, array]:
        """Return the document ids and codes of a term, by document id; about `most` of them when there are more."""
        kept = self._kept.setdefault("postings", {})
        if term in kept and len(kept[term][0]) < most:  # else a process that has all would answer otherwise than a fresh one
            return kept[term]
        docs, codes = array("I"), array("H")
        first = term << _TERM_SHIFT
        for d, c in self.db.execute("SELECT docs, codes FROM posting WHERE id BETWEEN ? AND ? ORDER BY id",
                                    (first, first + (1 << _TERM_SHIFT) - 1)):
            docs.frombytes(d)
            codes.frombytes(c)
            if len(docs) >= most:
                break
        if len(docs) < min(most, MOST_KEPT):
            if len(kept) >= 500:
                kept.clear()
            kept[term] = docs, codes
        return docs, codes

    def sequences(self, ids) -> dict[int, tuple[int, int, bytes, str]]:
        """Return `{document id: (id, length, packed ids of its uncommon terms in order, its uncommon words)}`.

        Removed documents are missing.
        """
        return self.rows("SELECT id, length, terms, words FROM sequence WHERE id IN", ids, keep=False)

    def sketches(self, ids) -> dict[int, tuple[int, int, float, bytes, bytes]]:
        """Return `{document id: (id, characters of its uncommon words, part of the gram bits that are set, vector, grams)}`.

        See `sketch`. Removed documents are missing.
        """
        return self.rows("SELECT id, length, part, vector, grams FROM sketch WHERE id IN", ids)

    def grams(self, grams) -> dict[str, array]:
        """Return `{gram: term ids}` of the vocabulary."""
        return {gram: array("I", packed) for gram, packed in self.rows("SELECT gram, terms FROM gram WHERE gram IN", grams).values()}

    # -- documents in and out -----------------------------------------------------------------------------------------

    def add(self, documents) -> None:
        """Take in documents: `(id, (title, tags, text))`, ids unused so far and rising."""
        postings: dict[int, tuple[array, array]] = {}
        counts: dict[int, int] = {}
        self._kept.clear()
        table = word_table.opened()
        rows, sketches, chunk, number, total = [], [], None, 0, 0
        for doc, fields in documents:
            if chunk is not None and doc >> CHUNK_BITS != chunk:
                self._flush(chunk, postings, rows, sketches)
                postings, rows, sketches = {}, [], []
            chunk = doc >> CHUNK_BITS
            sequence, weights, length, counted = self._analyse(fields)
            code = length_code(length)
            for term, weight in weights.items():
                slot = postings.get(term)
                if slot is None:
                    slot = postings[term] = (array("I"), array("H"))
                slot[0].append(doc)
                slot[1].append((weight if weight < 255 else 255) << 8 | code)
                counts[term] = counts.get(term, 0) + 1
            said = spelled(fields)
            rows.append((doc, length, sequence.tobytes(), said))
            part, grams = sketch.gram_sketch(said)
            sketches.append((doc, len(said), part, sketch.vector_sketch(counted, table) if table else b"", grams))
            number += 1
            total += length
        if rows:
            self._flush(chunk, postings, rows, sketches)
        self.db.executemany("UPDATE term SET df = df + ? WHERE id = ?", [(n, t) for t, n in counts.items()])
        self._count(number, total)

    def remove(self, ids) -> None:
        """Take documents out."""
        counts: dict[int, int] = {}
        number = total = 0
        found = self.sequences(ids)
        self._kept.clear()
        for _, length, packed, _ in found.values():
            for term in set(array("I", packed)):
                counts[term] = counts.get(term, 0) + 1
            number += 1
            total += length
        self.db.executemany("UPDATE term SET df = df - ? WHERE id = ?", [(n, t) for t, n in counts.items() if t])
        for name in ("sequence", "sketch"):
            self.db.executemany(f"DELETE FROM {name} WHERE id = ?", [(doc,) for doc in found])
        self._count(-number, -total)
        self.db.execute("INSERT INTO meta VALUES ('dead', ?) ON CONFLICT DO UPDATE SET value = value + excluded.value", (number,))

    def _count(self, number: int, length: int) -> None:
        """Add to the totals."""
        self.db.executemany("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
                            (("documents", number), ("length", length)))

    def _analyse(self, fields) -> tuple[array, dict[int, int], int, dict[str, int]]:
        """Return the sequence (fields apart by a 0), the weighted counts in halves, the length, and the counts by word."""
        sequence, weights, length, counted = array("I"), {}, 0, Counter()
        skipped = common()
        for field, weight in zip(fields, FIELD_WEIGHTS):
            found = terms(field)
            ids = self._term_ids(found)
            for term in ids:
                weights[term] = weights.get(term, 0) + weight
            counted.update(found)
            length += len(ids)
            sequence.extend([term for term, word in zip(ids, found) if word not in skipped])
            sequence.append(0)
        sequence.extend(weights.keys() - set(sequence))
        return sequence, weights, length, counted

    def _term_ids(self, words: list[str]) -> list[int]:
        """Return the ids of words, making the missing ones."""
        known = self._ids
        try:
            return [known[w] for w in words]
        except KeyError:
            pass
        missing = [w for w in dict.fromkeys(words) if w not in known]
        for at in range(0, len(missing), 500):
            part = missing[at:at + 500]
            marks = ",".join("?" * len(part))
            known.update(self.db.execute(f"SELECT word, id FROM term WHERE word IN ({marks})", part))
        self._make([w for w in missing if w not in known])
        return [known[w] for w in words]

    def _make(self, words: list[str]) -> None:
        """Give new words their ids, their accentless form and their grams."""
        if not words:
            return
        grams: dict[str, array] = {}
        aliases = []
        top = self.db.execute("SELECT max(id) FROM term").fetchone()[0] or 0
        for number, word in enumerate(words, top + 1):
            self._ids[word] = number
            if not word.isascii() and not is_unspaced(word):
                bare = stemmed(plain(word))
                if bare != word:
                    aliases.append((bare, number))
            for gram in spelling_grams(word):
                slot = grams.get(gram)
                if slot is None:
                    slot = grams[gram] = array("I")
                slot.append(number)
        self.db.executemany("INSERT INTO term VALUES (?, ?, 0)", [(self._ids[w], w) for w in words])
        self.db.executemany("INSERT OR IGNORE INTO alias VALUES (?, ?)", aliases)
        self.db.executemany("INSERT INTO gram VALUES (?, ?) ON CONFLICT DO UPDATE SET terms = CAST(terms || excluded.terms AS BLOB)",
                            [(g, ids.tobytes()) for g, ids in grams.items()])

    def _flush(self, chunk: int, postings, rows, sketches) -> None:
        """Write the postings of one chunk and the sequences of its documents."""
        self.db.executemany(
            "INSERT INTO posting VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
            "SET docs = CAST(docs || excluded.docs AS BLOB), codes = CAST(codes || excluded.codes AS BLOB)",
            [(term << _TERM_SHIFT | chunk, docs.tobytes(), codes.tobytes()) for term, (docs, codes) in sorted(postings.items())])
        self.db.executemany("INSERT INTO sequence VALUES (?, ?, ?, ?)", rows)
        self.db.executemany("INSERT INTO sketch VALUES (?, ?, ?, ?, ?)", sketches)


def in_memory() -> Tables:
    """Return empty tables that live in memory alone."""
    connection = sqlite.connect(":memory:", isolation_level=None)
    connection.executescript(SCHEMA)
    return Tables(connection)
