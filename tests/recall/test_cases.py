"""CASES.md, sections G, H and I: what people typed and did not find, in the shapes that recall answers."""
from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from engram import recall
from engram.errors import UsageError

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "cases")


def lines(*path):
    with open(os.path.join(DATA, *path), encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip("\n")]


def found(shelf, query, **more):
    return [entry["id"] for entry in recall.search(shelf.place, query, **more).data["entries"]]


def loaded(shelf, query):
    return [key.rpartition("/")[2].removesuffix(".md") for key in recall.load(shelf.place, query).data["selected_keys"]]


@pytest.fixture
def corpus(shelf):
    for line in lines("search", "corpus.jsonl"):
        row = json.loads(line)
        shelf.put(row["id"], row["text"], title=row["id"], approve=False)
    shelf.approve()
    return shelf


@pytest.mark.case("QS-01", "QS-02")
def test_every_line_of_punctuation_finds_itself(shelf):
    texts = lines("queries", "punctuation.txt")
    for number, text in enumerate(texts):
        shelf.put(f"m{number:02}", text, title=f"Line {number}", approve=False)
    shelf.approve()
    assert len(texts) == 20
    for number, text in enumerate(texts):
        assert found(shelf, text)[:1] == [f"m{number:02}"], text
        assert loaded(shelf, text)[:1] == [f"m{number:02}"], text


@pytest.mark.case("QS-02")
def test_hyphens_and_underscores_without_a_match_are_an_empty_answer(shelf):
    shelf.put("other", "Nothing of the kind lives here")
    for text in lines("queries", "punctuation.txt")[1:5]:
        assert found(shelf, text) == []
        assert recall.load(shelf.place, text).data["selected_keys"] == []


@pytest.mark.case("QS-04")
def test_a_blank_query_lists_the_newest_and_odd_limits_are_clear(shelf):
    shelf.put("older", "The first", updated="2026-02-01")
    shelf.put("newer", "The second", updated="2026-03-01")
    for blank in ("", "   ", "\u3000", None):
        assert found(shelf, blank) == ["newer", "older"]
    for wrong in (0, -1):
        with pytest.raises(UsageError):
            recall.search(shelf.place, "first", limit=wrong)
    assert len(found(shelf, "", limit=100_000)) == 2


@pytest.mark.case("QS-05")
def test_one_unknown_word_does_not_empty_the_answer(shelf):
    shelf.put("worker", "The staging queue worker runs on host blue-3")
    shelf.put("other", "Invoices are sent on the first of a month")
    question = "can you recall which machine hosts the queue worker for rehearsals?"
    assert found(shelf, question)[:1] == ["worker"] and loaded(shelf, question)[:1] == ["worker"]
    assert found(shelf, "zzzq qqqz") == [] and loaded(shelf, "zzzq qqqz") == []


@pytest.mark.case("QL-01", "QL-02", "QL-03", "QL-04", "QL-05")
def test_every_script_finds_its_memory(corpus):
    for row in lines("search", "queries-handover.tsv")[1:]:
        query, first, include, exclude = (row.split("\t") + [""] * 4)[:4]
        answer = found(corpus, query, limit=50)
        assert not first or answer[:1] == [first], (query, answer)
        assert set(filter(None, include.split(","))) <= set(answer), (query, answer)
        assert not set(filter(None, exclude.split(","))) & set(answer), (query, answer)


@pytest.mark.case("QL-05")
@pytest.mark.parametrize(("query", "first"), [("insaat", "tr1"), ("قواعد", "ar1"), ("हिन्दी", "hi1"), ("🚀", "em1"), ("zrodla", "pl1"),
                                              ("C++", "en1"), ("tls handshake", "en2"), ("parse_url", "en2"), ("grosse", "de1")])
def test_words_of_other_kinds_find_theirs(corpus, query, first):
    assert found(corpus, query)[:1] == [first]


@pytest.mark.case("RK-01")
def test_a_corrected_fact_is_not_above_its_correction(shelf):
    shelf.put("a", "The cache lifetime is 60 seconds", title="Cache lifetime", superseded_by="b")
    shelf.put("b", "The cache lifetime is 900 seconds", title="Cache lifetime", updated="2026-05-01")
    assert loaded(shelf, "cache lifetime") == ["b"] and found(shelf, "cache lifetime") == ["b"]
    shown = recall.search(shelf.place, "cache lifetime", archived=True)
    assert "a" in [entry["id"] for entry in shown.data["entries"]] and "superseded" in shown.text


@pytest.mark.case("RK-06")
def test_equal_scores_keep_their_order(shelf, clean_environment):
    for letter in "lkjhgfedcb":
        shelf.put(f"{letter}-twin", "The very same text about retries", title="Same title", approve=False)
    shelf.approve()
    first = found(shelf, "retries")
    assert first == [f"{letter}-twin" for letter in "bcdefghjkl"]  # equal confidence and date: by path
    for _ in range(19):
        assert found(shelf, "retries") == first
    for letter in "bed":
        os.utime(shelf.path(f"knowledge/{letter}-twin.md"))
    code = ("import sys; sys.path.insert(0, sys.argv[2])\nfrom engram import recall\nfrom engram.store import places\n"
            "for _ in range(20): print(' '.join(e['id'] for e in recall.search(places.find(sys.argv[1]), 'retries').data['entries']))")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    said = subprocess.run([sys.executable, "-c", code, shelf.root, root], capture_output=True, text=True, check=True,
                          env={**os.environ, "HOME": str(clean_environment)})
    assert said.stdout.splitlines() == [" ".join(first)] * 20


@pytest.mark.case("RK-05")
def test_recalled_text_is_proposed_back_without_its_wrapping(shelf):
    shelf.put("retry", "Invoices retry with exponential backoff.", title="Invoice retry")
    for printed in (recall.load(shelf.place, "invoice retry").text, recall.load(shelf.place, "invoice retry", disclosure="cards").text,
                    recall.body(shelf.place, "retry")):
        assert recall.unwrapped(printed).strip() == "Invoices retry with exponential backoff."
    assert recall.unwrapped("Plain text\nof two lines") == "Plain text\nof two lines"


@pytest.mark.case("RK-07")
def test_an_expired_memory_comes_only_when_asked_for(shelf):
    shelf.put("old", "The licence server is named granite", valid_until="2020-01-01")
    assert loaded(shelf, "licence server") == [] and found(shelf, "licence server") == []
    shown = recall.search(shelf.place, "licence server", expired=True)
    assert [entry["id"] for entry in shown.data["entries"]] == ["old"] and "expired" in shown.text


@pytest.mark.case("TM-01")
def test_dates_with_and_without_zone_are_in_one_order(shelf):
    for id, date in (("utc", "2026-01-31T23:59:59Z"), ("plain", "2026-01-31T23:59:59"), ("day", "2026-01-31"),
                     ("zoned", "2026-01-31 23:59:59+07:00")):
        shelf.put(id, "A dated fact", updated=date, approve=False)
    shelf.approve()
    assert found(shelf, "") == ["plain", "utc", "zoned", "day"]


@pytest.mark.case("TM-03")
def test_impossible_dates_hide_their_file_and_no_other(shelf):
    shelf.put("good", "A dated fact about granite", approve=False)
    for id, date in (("a", "2026-02-30"), ("b", "2026-1-5"), ("c", "05/06/2026")):
        shelf.put(id, "A dated fact about granite", valid_from=date, approve=False)
    shelf.approve()
    assert loaded(shelf, "granite fact") == ["good"] and found(shelf, "granite fact") == ["good"]
