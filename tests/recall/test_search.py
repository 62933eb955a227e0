"""Search, list and show: narrowing, marks, and cards."""
from __future__ import annotations

import pytest

from engram import recall
from engram.errors import NotFound
from engram.recall.searching import read_query


def found(shelf, query, **more):
    return [entry["id"] for entry in recall.search(shelf.place, query, **more).data["entries"]]


@pytest.fixture
def port(another):
    work, everywhere = another("work"), another("everywhere")
    work.env["ENGRAM_GLOBAL_DIR"] = everywhere.folder
    work.put("crane-rule", "Oil the harbour crane every spring.", type="rule", tags=["release", "Kran"])
    work.put("crane-fact", "The harbour has one crane.", tags=["harbour"])
    everywhere.put("crane-skill", "First stop the crane. Then oil it.", type="skill")
    return work


def test_filters_narrow_a_search(port):
    assert sorted(found(port, "crane")) == ["crane-fact", "crane-rule", "crane-skill"]
    assert found(port, "crane type:rule") == ["crane-rule"] and found(port, "type:SKILL crane") == ["crane-skill"]
    assert found(port, "crane scope:global") == ["crane-skill"] and found(port, "crane", scope="global") == ["crane-skill"]
    assert found(port, "crane tag:release") == ["crane-rule"] and found(port, "tag:kran") == ["crane-rule"]
    assert found(port, '"harbour crane"') == ["crane-rule"] and found(port, '"crane harbour"') == []
    assert found(port, "type:rule") == ["crane-rule"]
    assert found(port, "type:unknown-type") == []


def test_what_is_no_filter_is_words():
    asked = read_query('type:thing "a b" scope:x say "open')
    assert asked.types == [] and asked.scopes == [] and asked.phrases == ["a b"] and "open" in asked.words and "thing" in asked.words


def test_a_hit_names_the_sentence_that_matches(port):
    shown = recall.search(port.place, "oil type:skill").text
    assert "Then oil it." in shown and "crane-skill" in shown


def test_a_limit_is_kept(port):
    assert len(found(port, "crane", limit=2)) == 2


def test_archived_memories_come_when_asked_for(port):
    raw = b"<!-- Archived by Engram on 2026-11-30 -->\n<!-- Original: workspace:rules/x.md -->\n<!-- Reason: gone -->\n\n"
    port.write("archive/2026-11-30/knowledge/old-crane.md", raw + port.text("old-crane", "The old crane was scrapped."))
    assert "old-crane" not in found(port, "scrapped crane")
    shown = recall.search(port.place, "scrapped crane", archived=True)
    assert shown.data["entries"][0]["id"] == "old-crane" and "archived" in shown.text
    assert "old-crane" in recall.listing(port.place, archived=True).text


def test_list_shows_memories_and_notes(port):
    port.write("working/jot.md", port.text("jot", "Ask the warden.", tier="working", source="note", valid_until="2999-01-01"))
    port.write("working/old.md", port.text("old", "Past.", tier="working", source="note", valid_until="2020-01-01"))
    shown = recall.listing(port.place)
    assert [entry["id"] for entry in shown.data["entries"]] == ["crane-rule", "crane-fact", "crane-skill", "jot"]
    assert recall.listing(port.place, type="rule").data["total"] == 1
    assert len(recall.listing(port.place, limit=2).data["entries"]) == 2
    assert "Ask the warden" in recall.load(port.place, ids=["jot"]).text
    assert "jot" not in recall.load(port.place, "ask the warden").text
    with pytest.raises(NotFound):
        recall.load(port.place, ids=["old"])


def test_notes_of_an_objective_come_at_a_session_start(port):
    port.write("working/jot.md", port.text("jot", "Ask the warden.", tier="working", source="note", objective="Paint the Quay"))
    assert "jot" in recall.fresh(port.place, "", {}, start=True, objective="  paint the quay ").text
    assert "jot" not in recall.fresh(port.place, "", {}, start=True, objective="other").text
    assert "jot" not in recall.fresh(port.place, "", {}, start=True).text


def test_show_prints_the_whole_file(port):
    shown = recall.show(port.place, "crane-rule")
    assert "schema_version: 3" in shown.text and shown.data["file"] == "workspace:rules/crane-rule.md"
    port.write("rules/crane-rule.md", port.text("crane-rule", "Edited.", type="rule"))
    assert recall.show(port.place, "crane-rule").data["marks"] == ["edited"]
    with pytest.raises(NotFound):
        recall.show(port.place, "nothing")


def test_cards_of_ids_and_of_all(port):
    assert [row["id"] for row in recall.catalog(port.place)] == ["crane-rule", "crane-fact", "crane-skill"]
    rows = recall.cards(port.place, ["crane-skill", "nothing", "crane-fact"])
    assert [row["id"] for row in rows] == ["crane-skill", "crane-fact"]
    assert rows[1]["card"] == "- [crane-fact] (knowledge, workspace) The harbour has one crane."


def test_related_finds_what_a_new_text_is_about(port):
    found = recall.related(port.place, "Oil the crane of the harbour", scope="workspace")
    assert found[0][0].id == "crane-rule" and {memory.scope for memory, _ in found} == {"workspace"}
    assert recall.related(port.place, "Oil the crane", type="skill", limit=1)[0][0].id == "crane-skill"
