"""`engram mem …` at a terminal, by the built file."""

from __future__ import annotations

import json
import os

import pytest

import build

pytestmark = pytest.mark.built
SAMPLE = os.path.join(build.ROOT, "tests", "data", "mem", "sample-export.json")


def data(done):
    made = json.loads(done.stdout)
    assert set(made) >= {"contract_version", "ok", "data", "diagnostics"}
    return made["data"]


@pytest.fixture
def mem(run, tmp_path):
    """Return a function that runs `engram mem …` in a folder called shop, with a data folder of its own."""
    os.makedirs(tmp_path / "shop")

    def start(*words, **more):
        return run("mem", *words, cwd=tmp_path / "shop", env={"ENGRAM_DATA_DIR": str(tmp_path / "data")}, **more)

    return start


def test_the_verbs_do_what_the_tools_do(mem):
    assert "0 memories" in mem("search", "queue").stdout
    made = data(mem("save", "Queue worker", "It runs on blue-3.", "--type", "discovery", "--topic", "infra/worker", "--json"))
    assert (made["id"], made["project"]) == (1, "shop")
    mem("save", "From standard input", text="Some text about the queue.\n")
    assert data(mem("search", "queue", "--json"))["count"] == 2
    assert data(mem("search", "blue-3", "nonsense", "--match", "any", "--json"))["count"] == 1
    assert "# Memory of shop" in mem("context").stdout
    assert "It runs on blue-3." in mem("show", "#1").stdout
    assert data(mem("timeline", "mem:1", "--json"))["results"][0]["focus"] is True
    assert "Observations: 2" in mem("stats").stdout
    assert "shop: 2 observations" in mem("projects").stdout
    assert data(mem("doctor", "--json"))["status"] == "ok"
    mem("delete", "1")
    mem("delete", "1", "--hard")
    assert data(mem("stats", "--json"))["observations"] == 1


def test_a_person_names_a_new_project_and_merges_spellings(mem):
    assert data(mem("save", "t", "c", "--project", "New_Shop", "--json"))["project"] == "new_shop"
    assert data(mem("search", "c", "--project", "new_shop", "--json"))["count"] == 1
    mem("save", "t", "c", "--project", "new-shop")
    assert "1 observation moved" in mem("projects", "--merge", "new_shop", "new-shop").stdout
    done = mem("search", "c", "--project", "nowhere", code=1)
    assert "there is no project nowhere" in done.stderr
    assert json.loads(mem("search", "c", "--project", "nowhere", "--json", code=1).stdout)["error"]["code"] == "unknown_project"


def test_a_parent_of_repositories_takes_a_name_on_the_command_line(mem, tmp_path):
    for name in ("a", "b"):
        os.makedirs(tmp_path / "shop" / name / ".git")
    done = mem("save", "t", "c", code=1)
    assert "- a (" in done.stderr and "--project" in done.stderr and "token" not in done.stderr
    assert data(mem("save", "t", "c", "--project", "a", "--json"))["project"] == "a"


def test_export_and_import_read_relative_names_and_say_what_they_did(mem, tmp_path):
    done = mem("import", SAMPLE)
    assert "11 observations" in done.stdout
    assert "already there" in mem("import", SAMPLE).stdout
    assert data(mem("export", "out.json", "--json"))["observations"] == 11
    assert os.path.exists(tmp_path / "shop" / "out.json")
    mem("export", "out.json")
    (tmp_path / "shop" / "mine.txt").write_text("mine")
    assert "--force" in mem("export", "mine.txt", code=2).stderr
    assert "11 already there" in mem("import", "out.json").stdout
    (tmp_path / "shop" / "bad.json").write_text("{]")
    assert "bad.json, line 1" in mem("import", "bad.json", code=1).stderr
    mem("import", "none.json", code=2)


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("show",), ("show", "x"), ("search", "--limit", "many"), ("save", "t", "c", "--what")]
)
def test_a_wrong_call_is_said_and_does_nothing(mem, tmp_path, words):
    done = mem(*words, code=2)
    assert done.stderr.startswith("engram: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_help_is_about_the_verb_that_is_named(mem):
    assert "--match" in mem("search", "--help").stdout
    assert "--match" not in mem("--help").stdout


def test_a_blank_text_is_refused(mem):
    assert "blank" in mem("save", "t", text="  \n", code=2).stderr
    assert "blank" in mem("save", " ", "c", code=2).stderr


def test_control_characters_of_a_memory_never_reach_the_terminal(mem):
    mem("save", "t\x1b[31m", "c\x07 \x1b]0;x")
    for words in (("search", "c"), ("show", "1"), ("context",), ("timeline", "1")):
        done = mem(*words)
        assert "\x1b" not in done.stdout and "\x07" not in done.stdout
