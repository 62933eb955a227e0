"""Sessions, prompts, summaries, learnings: what a session leaves behind."""

from __future__ import annotations

import sqlite3

import pytest

from engram.mem import limits, noting, overview, passive, reading, writing
from engram.mem.refusals import Refusal
from tests.mem.conftest import rows


def save(tier, title="t", content="c", **more):
    return writing.save(tier, title=title, content=content, **more).structured


def refused(code, call, *arguments, **more):
    with pytest.raises(Refusal) as caught:
        call(*arguments, **more)
    assert caught.value.code == code, caught.value
    return caught.value


# -- sessions


def test_two_processes_in_one_repository_save_without_an_id_each_into_its_own_session(tiers, repository):
    folder = repository("r")
    first, second = tiers(folder), tiers(folder)
    for number in range(3):
        one, other = save(first, title=f"a{number}"), save(second, title=f"b{number}")
        assert one["session_id"] != other["session_id"]
    assert len({row["session_id"] for row in rows(first)}) == 2
    noting.session_start(first, id="host-1")
    noting.session_start(second, id="host-2")
    assert (save(first, title="x")["session_id"], save(second, title="y")["session_id"]) == ("host-1", "host-2")


def test_a_session_is_the_callers_and_an_unknown_one_is_named(tier):
    error = refused("unknown_session", save, tier, session_id="never")
    assert error.data["invalid_session_id"] == "never"
    assert error.data["retry_without_session_id"] is True
    assert noting.session_start(tier, id="s-1").structured["created"] is True
    assert noting.session_start(tier, id="s-1").structured["created"] is False
    assert save(tier, session_id="s-1")["session_id"] == "s-1"


def test_an_ended_session_is_not_started_again(tier):
    noting.session_start(tier, id="s-1")
    assert noting.session_end(tier, id="s-1", summary="Did it.").structured["ended"] is True
    error = refused("session_already_ended", noting.session_start, tier, id="s-1")
    assert error.data["session_id"] == "s-1"
    assert noting.session_end(tier, id="s-1").structured["ended"] is False
    assert noting.session_end(tier, id="no-such").structured["ended"] is False
    assert save(tier)["session_id"] != "s-1"
    assert rows(tier, "SELECT summary FROM sessions WHERE id = 's-1'") == [{"summary": "Did it."}]


def test_a_session_and_a_project_that_differ_are_refused(tiers):
    save(tiers(override="p2"))
    tier = tiers(override="p1")
    noting.session_start(tier, id="s-1")
    error = refused("session_project_mismatch", save, tier, session_id="s-1", project="p2")
    assert error.data["session_project"] == "p1"
    refused("session_project_mismatch", noting.session_start, tiers(override="p2"), id="s-1", directory=str(tiers(override="p2").folder))


def test_a_session_without_a_project_takes_that_of_its_rows_or_asks(tiers):
    tier = tiers(override="p1")
    save(tier)
    with tier.database.writing() as connection:
        connection.execute("INSERT INTO sessions (id, started_at) VALUES ('free', '2026-01-01 00:00:00')")
    error = refused("session_project_ownership_ambiguous", save, tier, session_id="free")
    assert error.data["available_projects"] == ["p1"]
    assert save(tier, session_id="free", project="p1")["project"] == "p1"
    assert save(tier, title="again", session_id="free")["project_source"] == "session"


def test_a_process_that_ends_ends_the_session_it_made_and_no_other(tiers):
    tier = tiers()
    noting.session_start(tier, id="host-1")
    save(tier)
    noting.session_end(tier, id="host-1")
    noting.session_start(tier, id="host-2")
    tier.session_id = ""
    own = save(tier, title="another")["session_id"]
    tier.close()
    ended = {row["id"]: row["ended_at"] is not None for row in rows(tiers(), "SELECT id, ended_at FROM sessions")}
    assert ended == {"host-1": True, "host-2": False, own: True}


def test_a_process_that_ends_while_the_database_is_busy_does_not_wait(tiers):
    tier = tiers()
    save(tier)
    connection = sqlite3.connect(tier.database.path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    tier.close()
    connection.close()


def test_what_a_person_saves_by_hand_shares_one_session_per_project(tiers):
    for _ in range(2):
        save(tiers(manual=True), title=f"t{_}")
    assert rows(tiers(), "SELECT id, ownership_mode FROM sessions") == [{"id": "manual-save-alpha", "ownership_mode": "project_owned"}]


@pytest.mark.parametrize("id", ["", "  ", "x" * 201, "a\nb", "AKIA" + "Q7W2E9R4T6Y1U3I5"])
def test_an_id_that_cannot_be_kept_is_refused(tier, id):
    with pytest.raises(Refusal):
        noting.session_start(tier, id=id)


def test_the_timeline_is_of_one_session(tiers, clock):
    tier, other = tiers(override="p"), tiers(override="p")
    for number in range(7):
        save(tier, title=f"a{number}", content=f"{number} " + "word " * 200)
        save(other, title=f"b{number}", content=str(number))
    shown = reading.timeline(tier, observation_id=7, before=2, after=1)
    assert [entry["title"] for entry in shown.structured["results"]] == ["a1", "a2", "a3", "a4"]
    assert [entry["focus"] for entry in shown.structured["results"]] == [False, False, True, False]
    assert shown.structured["total"] == 7
    assert len(reading.timeline(tier, observation_id=7, before=-1, after=0).structured["results"]) == 7
    focus = shown.structured["results"][2]
    assert limits.TIMELINE_FOCUS < len(focus["preview"]) < limits.TIMELINE_FOCUS + 10
    refused("not_found", reading.timeline, tier, observation_id=99)
    save(tiers(override="q"))
    refused("project_mismatch", reading.timeline, tiers(override="q"), observation_id=7)


# -- prompts and summaries


def test_a_prompt_is_linked_to_the_next_save_once(tier):
    first = noting.save_prompt(tier, content="Make it fast.").structured
    assert noting.save_prompt(tier, content="Make it fast.").structured["id"] == first["id"]
    save(tier, title="one", content="one")
    save(tier, title="two", content="two")
    shown = reading.get_observation(tier, id=1)
    assert shown.structured["observation"]["prompt"] == "Make it fast."
    assert "Asked for by: Make it fast." in shown.text
    assert "prompt" not in reading.get_observation(tier, id=2).structured["observation"]
    noting.save_prompt(tier, content="Another.")
    save(tier, title="three", content="three", capture_prompt=False)
    assert "prompt" not in reading.get_observation(tier, id=3).structured["observation"]
    refused("missing_argument", noting.save_prompt, tier, content=" ")


def test_a_summary_is_an_observation_and_ends_nothing(tier):
    save(tier)
    made = noting.session_summary(tier, content="## Goal\nMake it fast.")
    assert "1 save" in made.text
    (_, row) = rows(tier)
    assert (row["type"], row["title"]) == ("session_summary", "Session summary: alpha")
    assert rows(tier, "SELECT ended_at, summary FROM sessions") == [{"ended_at": None, "summary": None}]


# -- learnings

TEXT = """# Report
## Key Learnings:
1. Retry with **jitter** avoids the thundering herd on restart
2. Too short
3) `pool_size` of four is enough for all of the workers
   that one machine has
- not numbered, so not taken here
### Next
- Nothing of this is taken at all, it is another section
## Aprendizajes
* Der Cache muss vor dem *Neustart* geleert werden
"""


def test_the_items_of_the_last_section_that_has_any_are_found():
    assert passive.items(TEXT) == (["Der Cache muss vor dem Neustart geleert werden"], 0)
    kept, short = passive.items(TEXT.split("## Aprendizajes")[0])
    assert kept == [
        "Retry with jitter avoids the thundering herd on restart",
        "pool_size of four is enough for all of the workers that one machine has",
    ]
    assert short == 1
    assert passive.items("## Learnings\nnone here\n") == ([], 0)
    assert passive.items("Key Learnings:\n- without a heading this is no section\n") == ([], 0)


def test_learnings_are_saved_once_each_and_counted(tier, clock):
    made = noting.capture_passive(tier, content=TEXT.split("## Aprendizajes")[0], source="subagent-stop")
    assert made.text.startswith("2 extracted, 2 saved, 0 duplicates.\n1 item left out")
    clock.now += 100_000
    again = noting.capture_passive(tier, content=TEXT.split("## Aprendizajes")[0]).structured
    assert (again["extracted"], again["saved"], again["duplicates"]) == (2, 0, 2)
    assert [(row["type"], row["tool_name"], row["duplicate_count"]) for row in rows(tier)] == [("passive", "subagent-stop", 2)] * 2
    assert noting.capture_passive(tier, content="nothing of the kind").structured["saved"] == 0
    refused("limit_exceeded", noting.capture_passive, tier, content="x" * (limits.PASSIVE + 1))
    refused("missing_argument", noting.capture_passive, tier, content=" ")


def test_a_title_is_cut_between_words_never_inside_a_character():
    item = "語" * 100
    assert passive.title(item) == "語" * 60 + "..."
    assert passive.title("word " * 30) == "word word word word word word word word word word word word..."


# -- the context


def test_an_empty_store_has_a_short_context_and_creates_nothing(tier):
    assert overview.context(tier).text.startswith("No memories yet.")
    assert not tier.database.exists()


@pytest.mark.parametrize("budget", [512, 700, 2000, 16_384, 65_536, 10**9])
def test_the_whole_context_fits_its_budget_in_whole_entries(tiers, clock, budget):
    for number in range(12):
        save(tiers(override=f"project-{number:02}"), content="語 " * 300)
    tier = tiers(override="project-00")
    for number in range(30):
        clock.now += 60
        save(tier, title=f"title {number} é", content="語 " * 300)
        noting.save_prompt(tier, content=f"prompt {number} " + "é" * 400)
    shown = overview.context(tier, max_bytes=budget)
    assert len(shown.text.encode()) <= max(512, min(budget, limits.CONTEXT_MOST_BYTES))
    assert "(+4)" in shown.text
    if budget <= 2000:
        assert shown.structured["omitted"] and "left out" in shown.text
    for line in shown.text.splitlines():
        assert not line.startswith("  > ") or line.endswith((answers_cut(), "語"))


def answers_cut():
    from engram.mem.answers import CUT

    return CUT


def test_a_compact_context_has_titles_without_texts(tier):
    save(tier, title="The title", content="the content")
    assert "the content" in overview.context(tier).text
    assert "the content" not in overview.context(tier, compact=True).text
    assert "The title" in overview.context(tier, compact=True).text


def test_an_agent_that_saves_nothing_for_long_is_reminded(tier, clock):
    save(tier)
    assert "warning" not in reading.search(tier, query="c").structured
    clock.now += 601
    assert "10 minutes" in reading.search(tier, query="c").structured["warning"]
    save(tier, title="t2")
    assert "warning" not in overview.context(tier).structured


def test_counts_are_of_all_projects(tiers):
    save(tiers(override="p1"))
    tier = tiers(override="p2")
    save(tier)
    noting.save_prompt(tier, content="x y")
    writing.delete(tier, id=2, expected_project="p2")
    made = overview.stats(tier)
    assert (made.structured["sessions"], made.structured["observations"], made.structured["prompts"], made.structured["projects"]) == (
        2,
        1,
        1,
        ["p1"],
    )
    assert made.text.startswith("Sessions: 2\nObservations: 1\nPrompts: 1\nProjects: 1 (p1)")
