"""Searching: any text is a query, every language is found, order is steady (cases G, H, RK)."""

from __future__ import annotations

import csv
import io
import json

import pytest

from engram.mem import answers, limits, reading, writing
from engram.mem.refusals import Refusal
from tests.cases import case_file
from tests.mem.conftest import rows
from tests.trials import count, dice

PUNCTUATION = case_file("queries/punctuation.txt").decode().splitlines()
CORPUS = [json.loads(line) for line in case_file("search/corpus.jsonl").decode().splitlines()]
QUERIES = list(csv.DictReader(io.StringIO(case_file("search/queries-handover.tsv").decode()), delimiter="\t"))


def save(tier, title, content, **more):
    return writing.save(tier, title=title, content=content, **more).structured


def found(tier, query, **more):
    return [hit["title"] for hit in reading.search(tier, query=query, **more).structured["results"]]


@pytest.fixture
def punctuated(tier):
    for number, line in enumerate(PUNCTUATION):
        save(tier, f"entry {number:02}", line)
    return tier


@pytest.fixture
def languages(tier):
    for row in CORPUS:
        save(tier, row["id"], row["text"])
    return tier


@pytest.mark.case("QS-01")
@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_line_with_punctuation_finds_itself_first(punctuated, mode):
    for number, line in enumerate(PUNCTUATION):
        assert found(punctuated, line, match_mode=mode)[:1] == [f"entry {number:02}"], line


@pytest.mark.case("QS-02")
@pytest.mark.parametrize("line", PUNCTUATION[1:5])
def test_a_name_with_hyphens_that_nothing_has_is_an_empty_answer(tier, line):
    save(tier, "another", "entirely different words")
    assert found(tier, line) == []


def test_no_text_is_a_syntax_error(languages):
    chance = dice("queries")
    alphabet = "ab \"'*()^:-+~|&<>%_\\/\0\n\t\u3000語ด🚀é\ud800" + "ANDORNOTNEAR"
    for _ in range(count(300, 5000)):
        query = "".join(chance.choice(alphabet) for _ in range(chance.randrange(1, 24)))
        reading.search(languages, query=query, match_mode=chance.choice(["all", "any"]))
    for query in ('"', '""', "AND", "NEAR(a b)", "title:x", "*", "a*", "^a", "-a", "{title}:a", "%", "→", "\0"):
        reading.search(languages, query=query)


@pytest.mark.case("QS-04")
@pytest.mark.parametrize("query", ["", "   ", "\u3000"])
def test_a_blank_query_lists_the_newest(tier, clock, query):
    for number in range(3):
        save(tier, f"t{number}", f"c{number}")
        clock.now += 1
    assert found(tier, query) == ["t2", "t1", "t0"]
    assert "the newest first" in reading.search(tier, query=query).text


@pytest.mark.case("QS-04")
def test_an_odd_limit_is_the_default_or_the_most(tier):
    for number in range(25):
        save(tier, f"t{number}", f"words in common {number}")
    for given, most in ((0, limits.SEARCH_DEFAULT), (-5, limits.SEARCH_DEFAULT), (3, 3), (100_000, limits.SEARCH_MOST)):
        assert len(found(tier, "common", limit=given)) == most
        assert len(found(tier, "", limit=given)) == most


@pytest.mark.case("QS-05")
def test_one_unknown_word_gives_a_hint_and_match_mode_any_the_memory(tier):
    save(tier, "worker", "The staging queue worker runs on host blue-3")
    save(tier, "other", "Releases are cut on Tuesdays")
    query = "can you recall which machine hosts the queue worker for rehearsals?"
    assert found(tier, query, match_mode="any")[:1] == ["worker"]
    assert found(tier, query) == ["worker"] or "match_mode any" in reading.search(tier, query=query).text
    assert found(tier, "zzzq qqqz") == []
    assert found(tier, "zzzq qqqz", match_mode="any") == []


@pytest.mark.case("QL-01", "QL-02", "QL-03", "QL-04", "QL-05")
@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("row", QUERIES, ids=lambda row: row["query"])
def test_every_language_is_found(languages, mode, row):
    hits = found(languages, row["query"], match_mode=mode, limit=20)
    if row["first_hit"]:
        assert hits[:1] == [row["first_hit"]]
    assert set((row["must_include"] or "").split(",")) - {""} <= set(hits)
    assert not set((row["must_not_include"] or "").split(",")) & set(hits) - {""}


@pytest.mark.parametrize(
    ("query", "hit"),
    [
        ("C++", "en1"),
        ("C#", "en1"),
        (".NET", "en1"),
        ("fetch user name", "en2"),
        ("fetchUserName", "en2"),
        ("tlsHandshake", "en2"),
        ("parse_url", "en2"),
        ("net_utils", "en2"),
        ("🚀", "em1"),
        ("lacze", "pl1"),
        ("İnşaat", "tr1"),
        ("قواعد", "ar1"),
        ("हिन्दी", "hi1"),
    ],
)
def test_names_in_code_signs_and_scripts_are_found(languages, query, hit):
    assert found(languages, query)[:1] == [hit]


def test_a_joined_name_and_its_parts_find_each_other(tier):
    save(tier, "joined", "the setting is retryMaxCount")
    save(tier, "parts", "retry max count is the setting")
    for query in ("retry_max_count", "retry max count", "retryMaxCount"):
        assert set(found(tier, query)) == {"joined", "parts"}


def test_a_topic_key_as_query_comes_first(tier):
    save(tier, "mentions", "decision/rate-limiting is the key that matters for rate limiting, decision/rate-limiting")
    save(tier, "has it", "Token bucket.", topic_key="decision/rate-limiting")
    assert found(tier, "decision/rate-limiting")[0] == "has it"


def test_title_counts_more_than_text_and_a_rare_word_more_than_a_common_one(tier):
    save(tier, "Retries", "How often we try.")
    save(tier, "Payments", "Payments are sent with retries, and retries are counted.")
    assert found(tier, "retries")[0] == "Retries"


@pytest.mark.case("RK-06")
def test_equal_rows_come_in_one_order_newest_then_highest_id(tiers, clock):
    tier = tiers()
    for number in range(10):
        save(tier, f"t{number}", "the very same words")
        if number == 4:
            clock.now += 90_000
    orders = {tuple(found(one, "same words")) for one in [tier, tiers()] for _ in range(20)}
    assert orders == {tuple(f"t{number}" for number in (9, 8, 7, 6, 5, 4, 3, 2, 1, 0))}


@pytest.mark.case("RP-18")
def test_an_answer_stays_small_and_says_what_was_cut(tier):
    for number in range(50):
        save(tier, f"t{number}", f"word {number} " + "lorem ipsum dolor " * 1100)
    shown = reading.search(tier, query="word", limit=50)
    assert len(json.dumps(shown.structured)) + len(shown.text) < 100_000
    assert all(hit["truncated"] and hit["preview"].endswith(answers.CUT) for hit in shown.structured["results"])
    assert answers.FOOTER in shown.text
    compact = reading.search(tier, query="word", response_format="compact").structured
    assert compact["result"] == "10 memories found."
    assert "relations" in compact["results"][0]


@pytest.mark.parametrize(
    ("scope", "named", "seen"),
    [
        ("", False, {"p1 project", "p1 personal", "p1 global"}),
        ("project", False, {"p1 project"}),
        ("global", False, {"p1 global"}),
        ("personal", False, {"p1 personal", "p2 personal"}),
        ("", True, {"p2 project", "p2 personal", "p2 global"}),
        ("personal", True, {"p2 personal"}),
    ],
)
def test_scope_and_project_have_a_table(tiers, scope, named, seen):
    for project in ("p1", "p2"):
        for kind in ("project", "personal", "global"):
            save(tiers(override=project), f"{project} {kind}", f"words {project} {kind}", scope=kind)
    assert set(found(tiers(override="p1"), "words", scope=scope, **({"project": "p2"} if named else {}))) == seen
    assert set(found(tiers(override="p1"), "", scope=scope, **({"project": "p2"} if named else {}))) == seen


def test_all_projects_are_searched_on_request_and_a_miss_says_so(tiers):
    save(tiers(override="p1"), "one", "words here")
    other = tiers(override="p2")
    save(other, "two", "something")
    assert found(other, "words") == []
    assert "all_projects" in reading.search(other, query="words").text
    shown = reading.search(other, query="words", all_projects=True).structured
    assert (shown["project"], shown["project_source"], shown["results"][0]["project"]) == ("", "all_projects", "p1")


@pytest.mark.parametrize("given", [{"match_mode": "some"}, {"response_format": "long"}])
def test_an_unknown_mode_is_refused_before_any_work(tier, given):
    with pytest.raises(Refusal) as caught:
        reading.search(tier, query="x", **given)
    assert caught.value.code == "invalid_argument"
    assert not tier.database.exists()


def test_a_search_of_nothing_creates_nothing(tier):
    assert found(tier, "x") == []
    assert not tier.database.exists()


def test_a_rebuilt_index_finds_what_the_first_one_found(languages):
    from engram.mem import index

    before = [found(languages, row["query"]) for row in QUERIES]
    with languages.database.writing() as connection:
        index.rebuild(connection)
    assert [found(languages, row["query"]) for row in QUERIES] == before


def test_another_tokeniser_builds_the_index_anew(tiers):
    save(tiers(), "t", "words")
    other = tiers()
    with other.database.writing() as connection:
        connection.execute("UPDATE settings SET value = 'old' WHERE name = 'terms'")
        connection.execute("DELETE FROM terms")
    last = tiers()
    save(last, "t2", "more")
    assert found(last, "words") == ["t"]
    assert rows(last, "SELECT value FROM settings WHERE name = 'terms'") != [{"value": "old"}]


def test_seen_again_pinned_and_recent_ones_rank_a_little_higher_and_bring_nothing_in(tier, clock):
    save(tier, "a", "the same words")
    save(tier, "b", "the same words")
    writing.pin(tier, id=1, pinned=True)
    assert found(tier, "same words") == ["a", "b"]
    assert found(tier, "other") == []
