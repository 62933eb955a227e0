"""Related words in recall: found without a word in common, named by `--explain`, switched off, never needed."""
from __future__ import annotations

import os

import pytest

from engram import recall
from engram.errors import StorageError
from engram.propose import preferences
from engram.store import word_table
from tests.recall.shelf import Shelf


@pytest.fixture
def fresh_table():
    """Let the test open the table itself, and the next one again."""
    word_table._tables.clear()
    yield
    word_table._tables.clear()


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path / "store")
    shelf.put("purge-rows", "Erase stale rows every night.")
    shelf.put("tea", "The kitchen has green tea.")
    return shelf


def ids(result):
    return [key.rpartition("/")[2].removesuffix(".md") for key in result.data["selected_keys"]]


def test_a_memory_in_other_words_is_found(shelf):
    assert ids(recall.load(shelf.place, "delete")) == ["purge-rows"]


@pytest.mark.parametrize("query", ["xóa các dòng cũ", "xoá hàng cũ", "sao lưu", "删除旧数据", "清理旧的记录", "备份"])
def test_a_question_in_vietnamese_or_chinese_finds_an_english_memory(shelf, query):
    shelf.put("backups", "Backups go to the cold bucket.")
    assert ids(recall.load(shelf.place, query))[0] == ("backups" if query in ("sao lưu", "备份") else "purge-rows")


def test_explain_names_the_related_words_of_a_match(shelf):
    assert "delet ~ eras" in recall.route(shelf.place, "delete", explain=True).text


def test_the_setting_takes_related_words_away(shelf):
    preferences.put(shelf.place, "recall.vectors", "off")
    assert ids(recall.load(shelf.place, "delete")) == []


@pytest.mark.parametrize("span", [StorageError("not there"), (os.devnull, 0, 0), (__file__, 0, 400)])
def test_without_a_good_table_recall_goes_on(shelf, fresh_table, monkeypatch, span):
    def answer(name):
        if isinstance(span, Exception):
            raise span
        return span
    monkeypatch.setattr(word_table.files, "package_span", answer)
    assert word_table.opened() is None
    assert ids(recall.load(shelf.place, "stale rows")) == ["purge-rows"]


def test_an_open_table_survives_the_replacement_of_its_file(shelf, fresh_table, monkeypatch, tmp_path):
    path = tmp_path / "archive"
    data = word_table.files.package_data(word_table.NAME)
    path.write_bytes(b"before" + data)
    monkeypatch.setattr(word_table.files, "package_span", lambda name: (str(path), 6, len(data)))
    table = word_table.opened()
    other = tmp_path / "other"
    other.write_bytes(b"x" * 100)
    os.replace(other, path)
    assert "remov" in dict(table.related(["delet"])["delet"]) and table.vector("delet")


@pytest.mark.built
def test_the_single_file_has_the_table(run, tmp_path):
    shelf = Shelf(tmp_path / "store")
    shelf.put("purge-rows", "Erase stale rows every night.")
    assert "purge-rows" in run("load", "delete", cwd=shelf.root).stdout
