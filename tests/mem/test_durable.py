"""The bridge between the two tiers: approved memories shown first, an observation proposed for approval."""

from __future__ import annotations

import pytest

from engram import propose
from engram.mem import echo, overview, promoting, reading, writing
from engram.mem.refusals import Refusal
from engram.store import places


@pytest.fixture
def workspace(tiers, repository, run):
    """Return a tier in a repository that has a store with one approved memory."""
    folder = repository("shop")
    env = {"ENGRAM_DATA_DIR": str(folder.parent / "data")}
    run("inject", cwd=folder, env=env)
    run("save", "--force", "Invoices retry with exponential backoff.", cwd=folder, env=env)
    return tiers(folder)


@pytest.mark.built
def test_approved_memories_come_first_and_labelled(workspace):
    writing.save(workspace, title="Invoices", content="Invoices retry three times, I think.")
    shown = reading.search(workspace, query="invoices retry")
    assert shown.text.startswith("Approved memories of this project:\n- [")
    assert shown.text.index("exponential") < shown.text.index("three times")
    (row,) = shown.structured["durable"]
    assert "exponential backoff" in row["summary"]
    assert "durable" not in reading.search(workspace, query="elephants").structured
    assert len(overview.context(workspace, max_bytes=512).text.encode()) <= 512
    start = overview.context(workspace)
    assert start.structured["durable"] and start.text.index("exponential") < start.text.index("three times")


@pytest.mark.built
def test_another_projects_approved_memories_are_not_shown(workspace, tiers):
    other = tiers(override="other")
    writing.save(other, title="Invoices", content="Invoices of another project.")
    assert "durable" not in reading.search(workspace, query="invoices retry", project="other").structured
    assert "durable" not in reading.search(other, query="invoices retry").structured


@pytest.mark.built
def test_memories_that_a_repository_came_with_are_not_called_approved(workspace, tiers, tmp_path):
    other = tiers(workspace.folder, data="of-somebody-else")
    shown = reading.search(other, query="invoices retry")
    assert shown.structured["durable"]
    assert "not yet trusted" in shown.text
    assert "Approved" not in shown.text


@pytest.mark.built
def test_an_unreadable_store_is_said_and_fails_no_search(workspace, monkeypatch):
    from engram.errors import StorageError
    from engram.mem import durable

    def broken(*words, **more):
        raise StorageError("the disk is gone")

    writing.save(workspace, title="Invoices", content="text")
    monkeypatch.setattr(durable.recall, "load", broken)
    shown = reading.search(workspace, query="text")
    assert shown.structured["count"] == 1
    assert "the disk is gone" in shown.structured["warning"]


@pytest.mark.built
def test_what_is_shown_and_saved_again_makes_no_new_row(workspace):
    writing.save(workspace, title="Invoices", content="Invoices retry three times.")
    shown = reading.search(workspace, query="invoices retry")
    assert shown.structured["durable"]
    with workspace.database.reading() as connection:
        content, row = echo.unwrap(connection, shown.text)
    assert row is not None, content


@pytest.mark.built
def test_an_observation_is_proposed_by_the_one_path_and_changes_nothing_by_itself(workspace):
    writing.save(workspace, title="Chose token bucket", content="Token bucket per API key, because bursts must pass.", type="decision")
    place = places.find(workspace.folder, env=workspace.env)
    made = promoting.proposal(workspace, 1, place=place)
    assert made.asks
    assert "Token bucket per API key" in made.text
    assert "mem:1" in made.text
    assert "durable" not in reading.search(workspace, query="token bucket").structured
    propose.commit(place, made.token, by="terminal")
    assert "token bucket" in reading.search(workspace, query="token bucket").structured["durable"][0]["summary"]
    with pytest.raises(Refusal):
        promoting.proposal(workspace, 99, place=place)


@pytest.mark.parametrize(("word", "id"), [("mem:12", 12), ("mem:", None), ("12", None), ("mem:x", None), ("note", None), ("mem:-1", None)])
def test_only_mem_and_a_number_name_an_observation(word, id):
    assert promoting.observation_id(word) == id


@pytest.mark.built
def test_promote_at_the_terminal_needs_a_person_or_force(workspace, run):
    writing.save(workspace, title="Deploys", content="Deploys go through the release train on Tuesdays.", type="convention")
    workspace.close()
    env = {"ENGRAM_DATA_DIR": workspace.env["ENGRAM_DATA_DIR"]}
    assert "release train" in run("promote", "mem:1", cwd=workspace.folder, env=env, code=3).stdout
    run("promote", "--force", "mem:1", cwd=workspace.folder, env=env)
    assert "release train" in run("load", "release train deploys", cwd=workspace.folder, env=env).stdout
