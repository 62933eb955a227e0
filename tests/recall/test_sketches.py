"""Sketches: what a first look at many memories can tell of each."""
from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys

import pytest

import build
from engram import files, recall
from engram.recall import rank, uses
from engram.store import index_file, index_tables, sketch, word_table
from engram.text import related
from engram.text.words import terms

TABLE = word_table.opened()


def table_of(vectors):
    data = related.packed(dict.fromkeys(vectors, ()), vectors, most=2)
    return related.Table(lambda offset, size: data[offset:offset + size])


def likeness(query, text, table=TABLE):
    direction = sketch.Direction(dict.fromkeys(terms(query), 1.0), table, 1.0)
    return direction.likeness([sketch.vector_sketch(dict.fromkeys(terms(text), 1), table)])[0]


def test_a_text_about_the_same_is_more_alike_than_another():
    assert likeness("delete old records", "erase stale rows") > likeness("delete old records", "the kitchen has green tea") + 0.1


def test_likeness_is_the_cosine_with_the_signs_of_the_sum():
    dice = random.Random(5)
    vectors = {word: dice.choices(range(4), k=64) for word in ("lamp", "harbour", "crane", "rope")}
    table = table_of(vectors)
    counts = {"lamp": 1, "crane": 1, "unknown": 9}
    signs = [1 if a + b > 3 else -1 for a, b in zip(vectors["lamp"], vectors["crane"])]
    wanted = [value - 1.5 for value in vectors["rope"]]
    exact = sum(a * b for a, b in zip(wanted, signs)) / (sum(a * a for a in wanted) * 64) ** 0.5
    found = sketch.Direction({"rope": 1.0}, table, 1.0).likeness([sketch.vector_sketch(counts, table)])[0]
    assert found == pytest.approx(max(0.0, exact), abs=0.01)


def test_a_text_without_known_words_is_like_nothing():
    empty = sketch.vector_sketch({"zzqx": 3}, TABLE)
    assert not any(empty)
    assert sketch.Direction({"delet": 1.0}, TABLE, 1.0).likeness([empty, b""]) == [0.0, 0.0]


def test_vectors_of_a_huge_text_never_run_over():
    words = [word.decode() for word in TABLE.words[:9000]]
    bits = sketch.vector_sketch(dict.fromkeys(words, 500), TABLE)
    ones = int.from_bytes(bits, "big").bit_count()
    assert 0.2 < ones / TABLE.dimensions < 0.8


@pytest.mark.parametrize("text", ["", "a", "retry policy", "größe straße 重试", "\ud800 lone", "x" * 5000])
def test_a_sketch_has_every_gram_of_its_text(text):
    part, bits = sketch.gram_sketch(text)
    grams = sketch.text_grams(text)
    _, columns, hits, total = sketch.gram_hits([bits, bytes(len(bits))], grams, [part, 0.0], lambda gram, number: 1.0)
    assert set(columns) == set(grams) and all(column == b"\1\0" for column in columns.values())
    assert hits == [total, 0]


def test_gram_weights_follow_how_many_have_them_and_add_up():
    texts = ["rare common", "common", "common", "common"]
    parts, sketches = zip(*map(sketch.gram_sketch, texts))
    weights, _, hits, total = sketch.gram_hits(sketches, sketch.text_grams("rare common"), parts, lambda gram, number: 1 / number)
    assert weights["rare"] > 2 * weights["comm"]
    assert hits[0] == total and hits[1] == hits[2] == hits[3] < total


def test_many_heavy_grams_keep_their_sum():
    text = " ".join(f"word{number}" for number in range(200))
    part, bits = sketch.gram_sketch(text)
    _, _, hits, total = sketch.gram_hits([bits] * 3, sketch.text_grams(text), [part] * 3, lambda gram, number: 1.0)
    assert total > 255 * 3 and hits == [total] * 3


def test_of_two_with_the_same_words_the_one_that_is_about_the_same_comes_first():
    tables = index_tables.in_memory()
    texts = ["A log cabin stands by the lake in the forest, far from the road.",
             "A log entry names the query, its plan and the database server."]
    tables.add((number, ("", "", text)) for number, text in enumerate(texts))
    assert rank.rank([tables], "sql statements in the log", table=TABLE).hits[0].doc == 1


def test_an_index_of_another_table_is_not_this_version():
    """Sketches are made with the shipped table: when it changes, so must the version of the index."""
    digest = hashlib.sha256(files.package_data("text/related.bin")).hexdigest()
    assert (index_file.VERSION, digest[:16]) == ("2", "e90bb530f973095c")


def test_what_another_process_wrote_into_the_index_is_seen(shelf):
    for name, text in (("crane", "The harbour crane lifts steel."), ("tea", "The kitchen has green tea.")):
        shelf.put(name, text)
    assert ids(shelf, "crane") == ["crane"]
    shelf.put("crane", "Now it is about coffee.", title="Coffee")
    shelf.put("hoist", "A second crane lifts stone.")
    code = ("import sys; sys.path.insert(0, sys.argv[2])\nfrom engram import recall\nfrom engram.store import places\n"
            "print(recall.search(places.find(sys.argv[1]), 'crane').text)")
    said = subprocess.run([sys.executable, "-c", code, shelf.root, build.ROOT], capture_output=True, text=True, check=True, env=shelf.env)
    assert "hoist" in said.stdout
    assert set(ids(shelf, "crane")) == {"hoist", "crane"} and ids(shelf, "harbour steel") == []


def test_a_document_that_another_process_takes_out_meanwhile_is_left_out():
    tables = index_tables.in_memory()
    tables.add((number, ("", "", f"The harbour crane number {number} lifts steel.")) for number in range(40))
    assert len(rank.rank([tables], "harbour crane", table=TABLE).hits) == 40
    tables.db.execute("DELETE FROM sequence WHERE id % 2 = 0")
    hits = rank.rank([tables], "harbour crane", table=TABLE).hits
    assert hits and all(hit.doc % 2 for hit in hits[:5])
    tables.db.execute("DELETE FROM sequence")
    assert rank.rank([tables], "harbour crane", table=TABLE, limit=10).hits == []


def test_uses_that_were_gathered_are_written_later(shelf, monkeypatch):
    shelf.put("tea", "The kitchen has green tea.")
    monkeypatch.setattr(uses, "_waiting", [])
    uses.gather()
    recall.load(shelf.place, "green tea")
    assert not os.path.exists(shelf.path(uses.FILE))
    uses.flush()
    monkeypatch.setattr(uses, "_waiting", [])
    assert uses.most_used(shelf.store, 5) == [("knowledge/tea.md", 1)]


def ids(shelf, query):
    return [entry["id"] for entry in recall.search(shelf.place, query).data["entries"]]
