"""Names of projects and topics, stamps: small pure rules."""

from __future__ import annotations

import pytest

from engram.mem import names, stamps, topics
from engram.mem.refusals import Refusal


@pytest.mark.parametrize(
    ("given", "made"),
    [("Alpha", "alpha"), ("  orchard-API ", "orchard-api"), ("a--b", "a-b"), ("a___b", "a_b"), ("a-_-b", "a-_-b"), ("Ünïcode", "ünïcode")],
)
def test_a_name_has_one_canonical_form(given, made):
    assert names.spoken(given) == made


@pytest.mark.case("SE-05")
@pytest.mark.parametrize("given", ["../../etc", "..", "/", "a/b", "a\\b", "", "  ", "x" * 5000, "a\nb", "a\0b", ".", "a\u202eb"])
def test_a_path_or_a_control_character_is_no_project_name(given):
    with pytest.raises(Refusal) as caught:
        names.spoken(given)
    assert caught.value.code == "invalid_project"


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [("alfa", "alpha", True), ("alpha", "alpha-api", True), ("foo_bar", "foo-bar", True), ("alpha", "omega", False), ("ab", "cd", False)],
)
def test_names_that_look_alike_are_told(one, other, near):
    assert names.similar(one, [other]) == ([other] if near else [])


@pytest.mark.parametrize(
    ("type", "title", "key"),
    [
        ("bugfix", "Fixed N+1 query in UserList", "bug/fixed-n-1-query-in-userlist"),
        ("decision", "Decision: use JWT", "decision/use-jwt"),
        ("manual", "Renamed the prefix helper", "topic/renamed-the-prefix-helper"),
        ("decision", "Sesión caducada", "decision/sesi-n-caducada-u-60c438b5c9e9"),
    ],
)
def test_a_topic_key_is_suggested_from_type_and_title(type, title, key):
    assert topics.suggest(type, title) == key


def test_two_titles_without_ascii_letters_get_two_keys():
    one, other = topics.suggest("architecture", "検索を毎晩再構築"), topics.suggest("architecture", "部署流程说明")
    assert one != other
    assert one.startswith("architecture/")
    assert topics.suggest("", "", "") == "topic/general"


def test_a_topic_key_beyond_its_limit_is_refused_not_cut():
    assert topics.canonical("  Arch  Auth ") == "arch-auth"
    assert topics.canonical("x" * 120) == "x" * 120
    with pytest.raises(Refusal) as caught:
        topics.canonical("é" * 61)
    assert caught.value.code == "limit_exceeded"


@pytest.mark.case("TM-01", "TM-03")
def test_foreign_stamps_are_read_in_all_their_forms():
    forms = ("2026-01-31 23:59:59", "2026-01-31T23:59:59Z", "2026-01-31 23:59:59.123456789", "2026-02-01 06:59:59+07:00")
    assert {stamps.tidy(form, "?") for form in forms} == {"2026-01-31 23:59:59"}
    assert stamps.tidy("2026-01-31", "?") == "2026-01-31 00:00:00"
    for odd in ("2026-02-30", "05/06/2026", "", None, 7):
        assert stamps.tidy(odd, "?") == "?"


def test_months_later_stays_in_the_month():
    assert stamps.months_later("2026-08-31 10:00:00", 6) == "2027-02-28 10:00:00"
    assert stamps.months_later("2026-12-01 10:00:00", 12) == "2027-12-01 10:00:00"
