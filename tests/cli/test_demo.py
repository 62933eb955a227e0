"""The demo runs the whole loop on real files, touches nothing of the user's, and cleans up."""
from __future__ import annotations

import json
import os

import pytest


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def test_the_demo_shows_each_step_and_what_to_try_next(run, scratch):
    done = run("demo", env={"TMPDIR": str(scratch)})
    titles = ["A project gets a store", "nothing is written yet", "Approved", "noticed", "what matters", "files that you own",
              "hash that was approved", "is caught"]
    positions = [done.stdout.index(title) for title in titles]
    assert positions == sorted(positions)
    assert "engram inject" in done.stdout.split("What to try next")[1]


def test_the_demo_leaves_nothing_behind_and_does_not_touch_the_users_own_store(run, scratch, clean_environment, tmp_path):
    store = tmp_path / "global"
    store.mkdir()
    run("demo", env={"TMPDIR": str(scratch), "ENGRAM_GLOBAL_DIR": str(store)})
    assert os.listdir(scratch) == [] and os.listdir(clean_environment) == [] and os.listdir(store) == []


def test_the_demo_can_keep_its_folder(run, scratch):
    done = run("demo", "--keep", "--json", env={"TMPDIR": str(scratch)})
    folder = json.loads(done.stdout)["data"]["folder"]
    rules = os.path.join(folder, "project", ".agents", ".engram", "rules")
    assert len(os.listdir(rules)) == 1


def test_the_demo_as_json_is_one_envelope_and_shows_no_token(run, scratch):
    done = run("demo", "--json", env={"TMPDIR": str(scratch)})
    envelope = json.loads(done.stdout)
    assert envelope["ok"] and len(envelope["data"]["steps"]) == 8
    proposed = envelope["data"]["steps"][1]["text"]
    assert "Verdict: ADD" in proposed
