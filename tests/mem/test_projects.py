"""Which project a call is about: the folder's rules, the precedence, the choice among several (cases PJ)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from engram.mem import care, noting, overview, reading, writing
from engram.mem.refusals import Refusal
from tests.mem.conftest import rows

CHOSEN = "user_selected_after_ambiguous_project"


def current(tier):
    return overview.current_project(tier).structured


def save(tier, **more):
    return writing.save(tier, **{"title": "Use pnpm", "content": "All packages are installed with pnpm.", **more})


def refused(code, call, *arguments, **more):
    with pytest.raises(Refusal) as caught:
        call(*arguments, **more)
    assert caught.value.code == code, caught.value
    return caught.value


# -- the folder


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("git@example.com:team/Orchard-API.git", "orchard-api"),
        ("https://example.com/team/orchard.git/", "orchard"),
        ("file:///srv/git/orchard", "orchard"),
        ("host:orchard.git", "orchard"),
        (None, "r"),
    ],
)
def test_a_repository_is_named_by_its_remote_else_by_its_folder(tiers, repository, origin, name):
    found = current(tiers(repository("r", origin=origin)))
    assert (found["project"], found["project_source"]) == (name, "git_remote" if origin else "git_root")


@pytest.mark.case("PJ-01")
def test_linked_worktrees_are_one_project(tiers, tmp_path):
    git = shutil.which("git")
    if not git:
        pytest.skip("git is not installed")
    env = {
        **os.environ,
        "GIT_AUTHOR_NAME": "Sam Field",
        "GIT_AUTHOR_EMAIL": "sam.field@example.com",
        "GIT_COMMITTER_NAME": "Sam Field",
        "GIT_COMMITTER_EMAIL": "sam.field@example.com",
    }
    run = lambda *words: subprocess.run([git, "-C", str(tmp_path), *words], check=True, capture_output=True, env=env)
    run("init", "-q", "r")
    run("-C", "r", "commit", "-q", "--allow-empty", "-m", "Begin")
    run("-C", "r", "worktree", "add", "-q", "../feature-x")
    assert current(tiers(tmp_path / "r"))["project"] == "r"
    assert current(tiers(tmp_path / "feature-x"))["project"] == "r"


@pytest.mark.case("PJ-02")
def test_a_submodule_belongs_to_the_repository_around_it(tiers, repository):
    outer = repository("super")
    inner = outer / "sub"
    module = outer / ".git" / "modules" / "sub"
    os.makedirs(inner)
    os.makedirs(module)
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / ".git").write_text("gitdir: ../.git/modules/sub\n")
    found = current(tiers(inner))
    assert found["project"] == "super"
    assert found["project_path"] == str(outer)


def test_a_git_file_that_leads_nowhere_is_an_error_and_no_guess(tiers, tmp_path):
    os.makedirs(tmp_path / "moved")
    (tmp_path / "moved" / ".git").write_text("gitdir: /nowhere/at/all\n")
    tier = tiers(tmp_path / "moved")
    error = refused("repository_binding_unavailable", save, tier)
    assert "/nowhere/at/all" in str(error)
    assert current(tier)["error_code"] == "repository_binding_unavailable"


def test_a_renamed_remote_keeps_the_project_and_a_new_repository_at_its_place_does_not(tiers, repository, clock):
    folder = repository("r", origin="git@example.com:team/first.git")
    tier = tiers(folder)
    save(tier)
    config = folder / ".git" / "config"
    config.write_text(config.read_text().replace("first", "second"))
    assert current(tier)["project"] == "first"
    shutil.rmtree(folder)
    repository("r", origin="git@example.com:team/second.git")
    os.utime(folder / ".git" / "description", ns=(1, 1))
    assert current(tier)["project"] == "second"


@pytest.mark.case("PJ-04")
def test_home_and_temporary_folders_are_no_projects(tiers, clean_environment):
    tier = tiers(clean_environment)
    found = current(tier)
    assert found["project_source"] == "dir_basename"
    assert "home folder" in found["warning"]
    assert "home folder" in save(tier).structured["warning"]
    for folder in ("/", "/tmp"):
        found = current(tiers(folder))
        assert found["project_source"] in ("dir_basename", "ambiguous")
        assert found.get("warning") or found.get("error_hint")
    refused("project_required", save, tiers("/"))


def test_one_repository_below_is_taken_and_said(tiers, repository, tmp_path):
    repository("w/only")
    found = current(tiers(tmp_path / "w"))
    assert (found["project"], found["project_source"]) == ("only", "git_child")
    assert "only" in found["warning"]


def test_a_config_file_names_the_project_and_a_bad_one_is_an_error(tiers, repository):
    folder = repository("r", origin="git@example.com:team/remote.git")
    os.makedirs(folder / ".engram")
    os.makedirs(folder / "deep" / "er")
    path = folder / ".engram" / "config.json"
    path.write_text('\ufeff{"project_name": "Cfg"}', encoding="utf-8")
    found = current(tiers(folder / "deep" / "er"))
    assert (found["project"], found["project_source"]) == ("cfg", "config")
    for bad in (
        '{"project_name": ""}',
        '{"project_name": "a/b"}',
        '{"project_name": 7}',
        "{}",
        "[]",
        "{",
        "\0",
        '{"project_name": "a\\u0007"}',
    ):
        path.write_text(bad)
        error = refused("invalid_project_config", save, tiers(folder))
        assert str(path) in str(error)
    path.unlink()
    os.mkfifo(path)
    refused("invalid_project_config", save, tiers(folder))


# -- the precedence


@pytest.mark.case("PJ-08")
def test_call_before_session_before_process_before_roots_before_folder(tiers, repository, tmp_path):
    folder = repository("r")
    save(tiers(repository("other")))
    tier = tiers(folder, env={"ENGRAM_PROJECT": "Env"})
    os.makedirs(folder / ".engram")
    (folder / ".engram" / "config.json").write_text('{"project_name": "cfg"}')

    def saved(tier, **more):
        made = save(tier, title=f"title {len(rows(tier))}", **more).structured
        assert rows(tier)[-1]["project"] == made["project"]
        assert f"Project: {made['project']} ({made['project_source']})" in made["result"]
        return made["project"], made["project_source"]

    assert saved(tier, project="other") == ("other", "explicit_override")
    assert saved(tier) == ("env", "process_override")
    assert saved(tiers(folder, override="flag", env={"ENGRAM_PROJECT": "env"})) == ("flag", "process_override")
    noting.session_start(tier, id="s-1", directory=str(repository("third")))
    assert saved(tier) == ("third", "session")
    assert saved(tier, session_id="s-1") == ("third", "session")
    assert saved(tier, project="other") == ("other", "explicit_override")
    plain = tiers(folder)
    assert saved(plain) == ("cfg", "config")
    plain.roots = [str(repository("rooted"))]
    assert saved(plain) == ("rooted", "client_roots")
    refused("unknown_project", save, tier, project="never-heard-of")


def test_the_folder_of_the_host_counts_less_than_the_roots_of_the_client(tiers, repository, tmp_path):
    tier = tiers(tmp_path / "host")
    tier.roots = [str(repository("work"))]
    assert current(tier)["project"] == "work"
    assert reading.search(tier, query="x").structured["project_source"] == "client_roots"


def test_of_several_roots_the_one_around_the_folder_is_taken_else_the_user_chooses(tiers, repository):
    one, other = repository("one"), repository("other")
    inside = tiers(one / "src")
    inside.roots = [str(other), str(one)]
    assert current(inside)["project"] == "one"
    outside = tiers()
    outside.roots = [str(other), str(one)]
    assert refused("ambiguous_project", save, outside).data["available_projects"] == ["one", "other"]


def test_a_directory_that_an_agent_names_is_absolute_and_there_and_its_folders_are_not_listed(tiers, repository, tmp_path, monkeypatch):
    repository("w/a")
    tier = tiers()
    listed = []
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path))
    for bad in ("../..", "x", "/no/such/folder", "/" + "x" * 5000, "a\0b"):
        refused("invalid_argument", noting.session_start, tier, id="s", directory=bad)
    noting.session_start(tier, id="s", directory=str(tmp_path / "w"))
    assert rows(tier, "SELECT project FROM sessions") == [{"project": "w"}]
    assert not listed


# -- several repositories


@pytest.mark.case("PJ-05")
def test_a_parent_of_repositories_lists_them_all_and_takes_a_choice_that_sticks(tiers, repository, tmp_path):
    for name in ("a", "b", "c", "d", "e"):
        repository(f"w/{name}")
    tier = tiers(tmp_path / "w")
    error = refused("ambiguous_project", save, tier)
    assert error.data["available_projects"] == ["a", "b", "c", "d", "e"]
    assert all(f"- {name} (" in str(error) for name in "abcde")
    assert rows(tier) == []
    token = error.data["recovery_token"]
    choice = {"project": "b", "project_choice_reason": CHOSEN}
    refused("missing_recovery_token", save, tier, **choice)
    refused("invalid_recovery_token", save, tier, **choice, recovery_token="made-up")
    refused("invalid_project_choice", save, tier, **{**choice, "project": "zzz"}, recovery_token=token)
    made = save(tier, **choice, recovery_token=token).structured
    assert (made["project"], made["project_source"]) == ("b", CHOSEN)
    refused("invalid_recovery_token", save, tier, **choice, recovery_token=token)
    again = save(tier, title="second").structured
    assert (again["project"], again["project_source"]) == ("b", CHOSEN)
    assert reading.search(tier).structured["project"] == "b"
    assert [row["project"] for row in rows(tier)] == ["b", "b"]


def test_a_token_is_good_for_five_minutes(tiers, repository, tmp_path, clock):
    repository("w/a")
    repository("w/b")
    tier = tiers(tmp_path / "w")
    token = refused("ambiguous_project", save, tier).data["recovery_token"]
    clock.now += 301
    refused("invalid_recovery_token", save, tier, project="a", project_choice_reason=CHOSEN, recovery_token=token)


def test_an_ambiguous_folder_is_reported_by_current_project_and_takes_a_name(tiers, repository, tmp_path):
    repository("w/a")
    repository("w/b")
    tier = tiers(tmp_path / "w")
    found = current(tier)
    assert (found["project"], found["project_source"], found["available_projects"]) == ("", "ambiguous", ["a", "b"])
    assert save(tier, project="a").structured["project"] == "a"


# -- names


@pytest.mark.case("PJ-06")
def test_case_does_not_split_a_project_and_a_misspelt_one_names_its_neighbour(tiers):
    tier = tiers(override="Alpha")
    save(tier)
    other = tiers(override="beta")
    assert reading.search(other, query="pnpm", project="alpha").structured["results"]
    assert reading.search(other, query="pnpm", project="ALPHA").structured["results"]
    error = refused("unknown_project", reading.search, other, query="pnpm", project="alfa")
    assert error.data["similar_projects"] == ["alpha"]
    assert "alpha" in str(error)
    assert "alpha" in reading.search(tiers(override="alfa"), query="pnpm").text


def test_a_name_that_collapses_into_a_known_one_is_a_collision(tiers):
    tier = tiers(override="foo-bar")
    save(tier)
    refused("project_name_collision", save, tier, project="foo--bar")


def test_a_new_project_near_to_an_old_one_is_warned_about_once(tiers):
    save(tiers(override="orchard-api"))
    tier = tiers(override="orchard-apy")
    assert "orchard-api" in save(tier).structured["warning"]
    assert "warning" not in save(tier, title="second").structured


def test_merging_takes_spelling_variants_only_and_the_old_name_means_the_new_one(tiers):
    save(tiers(override="foo_bar"))
    tier = tiers(override="foo-bar")
    save(tier)
    refused("project_transition_conflict", care.merge_projects, tier, sources="orchard", to="foo-bar")
    refused("invalid_argument", care.merge_projects, tier, sources="inbox", to="inbox")
    made = care.merge_projects(tier, sources="foo_bar", to="foo-bar").structured
    assert made["merged"] == [{"from": "foo_bar", "observations": 1, "sessions": 1, "prompts": 0}]
    assert {row["project"] for row in rows(tier)} == {"foo-bar"}
    assert len(reading.search(tier, query="pnpm").structured["results"]) == 2
    assert save(tiers(override="foo_bar"), title="third").structured["project"] == "foo-bar"


def test_a_source_that_is_not_there_is_refused(tiers):
    tier = tiers(override="foo-bar")
    save(tier)
    refused("unknown_project", care.merge_projects, tier, sources="foo_bar", to="foo-bar")


def test_what_is_listed_says_how_much_each_project_holds(tiers):
    save(tiers(override="one"))
    save(tiers(override="two"))
    listed = overview.list_projects(tiers(override="one")).structured
    assert [(row["name"], row["observations"], row["sessions"]) for row in listed["projects"]] == [("one", 1, 1), ("two", 1, 1)]
    assert json.loads(json.dumps(listed)) == listed
