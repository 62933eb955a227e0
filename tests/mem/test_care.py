"""Verdicts on pairs, reviews, the doctor."""

from __future__ import annotations

import pytest

from engram.mem import care, doctor, overview, reading, writing
from engram.mem.refusals import Refusal
from tests.mem.conftest import rows

DAY = 86_400


def save(tier, title, content="words", **more):
    return writing.save(tier, title=title, content=content, **more).structured


def refused(code, call, *arguments, **more):
    with pytest.raises(Refusal) as caught:
        call(*arguments, **more)
    assert caught.value.code == code, caught.value
    return caught.value


@pytest.fixture
def pair(tier):
    save(tier, "Chose fixed window for rate limiting", "Simple.", type="decision")
    return tier, save(tier, "Chose token bucket for rate limiting", "Per key.", type="decision")


def test_a_save_names_what_it_may_conflict_with(pair):
    tier, made = pair
    assert (made["judgment_required"], made["judgment_status"]) == (True, "pending")
    (candidate,) = made["candidates"]
    assert (candidate["id"], candidate["title"], candidate["judgment_id"]) == (
        1,
        "Chose fixed window for rate limiting",
        made["judgment_id"],
    )
    assert made["judgment_id"] in made["result"]
    assert "conflict: contested by #1 (pending)" in reading.search(tier, query="token").text
    assert save(tier, "The office moves to another street")["judgment_required"] is False


def test_at_most_three_are_named_and_each_pair_is_asked_once(tier):
    for number in range(6):
        made = save(tier, f"Retry policy of the payment worker {number}", f"text {number}")
    assert len(made["candidates"]) == 3
    pairs = [frozenset((row["source_id"], row["target_id"])) for row in rows(tier, "SELECT * FROM relations")]
    assert len(pairs) == len(set(pairs))


def test_a_verdict_shows_in_every_search_by_its_documented_prefix(pair):
    tier, made = pair
    row = care.judge(tier, judgment_id=made["judgment_id"], relation="supersedes", reason="Replaced.", confidence=0.95).structured[
        "relation"
    ]
    assert (row["relation"], row["judgment_status"], row["confidence"], row["marked_by_kind"]) == ("supersedes", "judged", 0.95, "agent")
    text = reading.search(tier, query="rate limiting").text
    assert "  supersedes: #1 (Chose fixed window for rate limiting)" in text
    assert "  superseded_by: #2 (Chose token bucket for rate limiting)" in text
    care.judge(tier, judgment_id=made["judgment_id"], relation="conflicts_with")
    assert "  conflicts: #1 (Chose fixed window for rate limiting)" in reading.search(tier, query="token").text
    writing.delete(tier, id=1, expected_project="alpha")
    assert "  conflicts: #1 (deleted)" in reading.search(tier, query="token").text
    writing.delete(tier, id=1, expected_project="alpha", hard_delete=True)
    assert rows(tier, "SELECT judgment_status FROM relations") == [{"judgment_status": "orphaned"}]
    assert "conflicts" not in reading.search(tier, query="token").text


def test_a_not_conflict_is_kept_so_that_the_pair_is_not_offered_again(pair):
    tier, made = pair
    care.judge(tier, judgment_id=made["judgment_id"], relation="not_conflict")
    assert "conflict" not in reading.search(tier, query="token").text
    assert [row["relation"] for row in rows(tier, "SELECT relation FROM relations")] == ["not_conflict"]


def test_a_verdict_that_does_not_fit_leaves_the_pair_as_it_was(pair):
    tier, made = pair
    before = rows(tier, "SELECT * FROM relations")
    refused("not_found", care.judge, tier, judgment_id="rel-none", relation="related")
    refused("invalid_argument", care.judge, tier, judgment_id=made["judgment_id"], relation="pending")
    refused("invalid_argument", care.judge, tier, judgment_id=made["judgment_id"], relation="related", confidence=1.5)
    refused("limit_exceeded", care.judge, tier, judgment_id=made["judgment_id"], relation="related", reason="x" * 10_001)
    assert rows(tier, "SELECT * FROM relations") == before


def test_a_comparison_is_one_row_for_a_pair_whatever_its_order(tier):
    save(tier, "one")
    save(tier, "another thing")
    given = {"relation": "related", "confidence": 0.5, "reasoning": "Both."}
    first = care.compare(tier, memory_id_a=1, memory_id_b=2, model="m", **given).structured
    second = care.compare(tier, memory_id_a=2, memory_id_b=1, **{**given, "relation": "not_conflict"}).structured
    assert first["sync_id"] == second["sync_id"]
    (row,) = rows(tier, "SELECT * FROM relations")
    assert (row["relation"], row["marked_by_kind"], row["marked_by_actor"]) == ("not_conflict", "system", "engram")
    refused("invalid_argument", care.compare, tier, memory_id_a=1, memory_id_b=1, **given)
    refused("not_found", care.compare, tier, memory_id_a=1, memory_id_b=9, **given)


def test_a_pair_across_projects_is_refused(tiers):
    save(tiers(override="p1"), "one")
    tier = tiers(override="p2")
    save(tier, "two")
    refused("project_mismatch", care.compare, tier, memory_id_a=1, memory_id_b=2, relation="related", confidence=1, reasoning="x")


def test_what_is_due_is_listed_oldest_first_and_a_review_sets_the_next_date(tiers, clock):
    tier = tiers(override="p1")
    save(tier, "preference", type="preference")
    save(tier, "decision", type="decision")
    save(tiers(override="p2"), "policy", type="policy")
    save(tier, "never due", type="discovery")
    assert care.review(tier, action="list").structured["observations"] == []
    clock.now += 370 * DAY
    assert [row["title"] for row in care.review(tier, action="list").structured["observations"]] == ["preference", "decision", "policy"]
    assert [row["title"] for row in care.review(tier, action="list", project="p1", limit=1).structured["observations"]] == ["preference"]
    found = reading.search(tier, query="decision")
    assert found.structured["results"][0]["state"] == "needs_review"
    assert "needs_review since" in found.text
    made = care.review(tier, action="mark_reviewed", observation_id=2).structured
    assert (made["state"], made["review_after"][:7]) == ("active", "2027-12")
    assert "decision" not in [row["title"] for row in care.review(tier, action="list").structured["observations"]]
    refused("invalid_argument", care.review, tier, action="burn")
    refused("missing_argument", care.review, tier, action="mark_reviewed")
    refused("not_found", care.review, tier, action="mark_reviewed", observation_id=77)
    refused("unknown_project", care.review, tier, action="list", project="p9")


def test_the_doctor_reports_every_check_and_names_what_does_not_fit(tiers, repository):
    tier = tiers(repository("r"))
    assert doctor.report(tier).structured["status"] == "ok"
    assert not tier.database.exists()
    save(tier, "one")
    made = doctor.report(tier).structured
    assert {
        "session_project_directory_mismatch",
        "manual_session_name_project_mismatch",
        "ambiguous_active_runtime_sessions",
        "sync_mutation_required_fields",
        "orphaned_observation_session",
        "orphaned_pending_relations",
        "unowned_session_project",
        "invalid_session_identity",
        "sync_target_closed_space",
        "sqlite_lock_contention",
    } <= {row["check_id"] for row in made["checks"]}
    assert made["summary"]["total"] == len(made["checks"]) == made["summary"]["ok"]
    folder = str(repository("other"))
    with tier.database.writing() as connection:
        for row in (("manual-save-x", "r", ""), ("lost", "", ""), ("there", "r", folder), ("bad\nid", "r", "")):
            connection.execute("INSERT INTO sessions (id, project, directory, started_at) VALUES (?, ?, ?, '2026-01-01 00:00:00')", row)
        connection.execute(
            "INSERT INTO relations (sync_id, source_id, target_id, created_at, updated_at) VALUES ('rel-1', 'a', 'b', '', '')"
        )
        connection.execute("DELETE FROM terms")
    found = doctor.report(tier)
    wrong = {row["check_id"] for row in found.structured["checks"] if row["result"] == "warning"}
    assert wrong == {
        "manual_session_name_project_mismatch",
        "unowned_session_project",
        "session_project_directory_mismatch",
        "invalid_session_identity",
        "orphaned_pending_relations",
        "term_index",
    }
    assert found.structured["status"] == "warning"
    assert found.ok
    one = doctor.report(tier, check="unowned_session_project").structured
    assert [row["findings"] for row in one["checks"]] == [["lost"]]
    refused("invalid_argument", doctor.report, tier, check="nonsense")


def test_current_project_and_topic_keys_are_there_before_anything_is_saved(tier):
    assert overview.current_project(tier).structured["cwd"] == tier.folder
    made = overview.suggest_topic_key(tier, type="bugfix", title="Fixed N+1 query in UserList")
    assert made.structured["topic_key"] == "bug/fixed-n-1-query-in-userlist"
    refused("missing_argument", overview.suggest_topic_key, tier)
    save(tier, "Fixed N+1 query in UserList", topic_key=made.structured["topic_key"])
    assert overview.suggest_topic_key(tier, type="bugfix", title="Fixed N+1 query in UserList").structured["used_by"] == 1
