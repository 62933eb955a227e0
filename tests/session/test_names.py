"""Public names, definitions, rendering, configuration: the pure parts of the session host."""

import json
import os

import pytest

from engram.errors import UsageError
from engram.session import config, guide, names

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/session/names.json"), encoding="utf-8") as table:
    TABLE = json.load(table)


@pytest.mark.parametrize(("server", "raw", "public"), TABLE)
def test_a_public_name_is_the_one_that_every_host_makes(server, raw, public):
    assert names.public_name(server, raw) == public


def test_two_raw_names_with_one_public_name_both_get_a_suffix():
    made, skipped = names.definitions(
        "engram", [{"name": "mem.save"}, {"name": "mem_save"}, {"name": "mem/save"}, {"name": "mem_save"}, {"name": ""}, 7]
    )
    assert len({row.name for row in made}) == 3
    assert [row.raw for row in made] == ["mem.save", "mem_save", "mem/save"]
    assert skipped == [("mem_save", "the server lists this name twice"), ("", "it has no name"), (None, "it has no name")]
    clash, _ = names.definitions("engram", [{"name": "x" * 60}, {"name": "y"}])
    assert all(len(row.name) <= 64 for row in clash)


def test_a_definition_has_defaults_and_a_closed_output():
    made, _ = names.definitions("engram", [{"name": "a", "description": None}])
    assert (made[0].description, made[0].parameters, made[0].output["additionalProperties"]) == ("", {}, False)


def test_the_scope_text_of_older_servers_names_global_and_nothing_else_changes():
    for raw, (old, new) in names.SCOPE_TEXTS.items():
        schema = {"type": "object", "properties": {"scope": {"type": "string", "description": old}, "x": {"description": old}}}
        assert names.definitions("e", [{"name": raw, "inputSchema": schema}])[0][0].parameters == {
            "type": "object",
            "properties": {"scope": {"type": "string", "description": new}, "x": {"description": old}},
        }
        today = {"type": "object", "properties": {"scope": {"description": new}}}
        assert names.definitions("e", [{"name": raw, "inputSchema": today}])[0][0].parameters == today
        assert names.definitions("e", [{"name": "mem_stats", "inputSchema": schema}])[0][0].parameters == schema


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, None, 3, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": [{"type": "resource", "resource": {"uri": "u", "text": "inside"}}]}, "u: u\ninside"),
        ({"content": [{"type": "resource_link", "uri": "u", "name": "n"}]}, "n: u"),
        ({"content": [{"type": "image", "data": "x"}, {"type": "audio"}]}, "[image block omitted]\n[audio block omitted]"),
        ({"content": [{"type": "other", "x": "é"}]}, '{"type": "other", "x": "é"}'),
        ({"content": [], "structuredContent": {"a": 1}}, '{"a": 1}'),
        ({"content": []}, "(no output from mem_save)"),
        ({}, "(no output from mem_save)"),
    ],
)
def test_a_result_is_rendered_for_a_model(result, text):
    assert names.render("mem_save", result) == text


@pytest.mark.parametrize(
    "name",
    [
        "API_TOKEN",
        "my_key",
        "Secret",
        "DB_PASSWORD",
        "AWS_CREDENTIALS",
        "DSH_HOME",
        "dsh_x",
        "PGPASSWD",
        "NPM_AUTH",
        "DB_PASS",
        "SSH_PRIVATE",
        "SESSION_COOKIE",
        "ENGRAM_HTTP_TOKEN",
        "GITHUB_PAT",
    ],
)
def test_what_looks_like_a_credential_never_reaches_a_child(name):
    made = config.child_environment(config.SessionConfig(env={name: "x", "ENGRAM_PROJECT": "p"}), {name: "y", "PATH": "/bin"})
    assert made == {"PATH": "/bin", "ENGRAM_PROJECT": "p"}


def test_urls_with_a_password_never_reach_a_child_and_ordinary_variables_do():
    kept = {
        "HOME": "/h",
        "ENGRAM_DATA_DIR": "/d",
        "ENGRAM_GLOBAL_DIR": "/g",
        "GIT_AUTHOR_NAME": "Sam Field",
        "LANG": "C",
        "PROXY": "http://proxy:80",
    }
    made = config.child_environment(config.SessionConfig(), {**kept, "DATABASE_URL": "postgres://u:pw@h/db"})
    assert made == kept


def test_the_program_is_the_configured_one_else_the_first_on_path(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a/engram").mkdir()  # a folder of that name is no program
    program = tmp_path / "b/engram"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}/a{os.pathsep}{os.path.relpath(tmp_path)}/b"}
    resolve = lambda **settings: config.resolve(config.SessionConfig(**settings), env)
    assert resolve() == ([str(program), "mcp"], None)
    assert resolve(binary="engram")[0] == [str(program), "mcp"]
    words, warning = resolve(binary=str(tmp_path / "none"))
    assert words == [str(program), "mcp"]
    assert "none is not a program" in warning
    assert resolve(command=["x", "y"], args=["mcp", "--tools=all"]) == (["x", "y", "mcp", "--tools=all"], None)


def test_without_a_program_there_is_a_warning_and_no_words(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "FALLBACK_FOLDERS", ())
    words, warning = config.resolve(config.SessionConfig(), {"PATH": str(tmp_path)})
    assert words is None
    assert "no memory tools" in warning


@pytest.mark.parametrize("name", ["", "my engram", "a" * 33, "a.b", "é"])
def test_a_server_name_that_makes_no_clean_tool_names_is_refused(name):
    with pytest.raises(UsageError):
        config.SessionConfig(server_name=name)


def test_the_protocol_names_only_tools_that_are_there_and_by_their_public_names():
    assert guide.section({}) is None
    whole = guide.section({raw: f"mcp__x__{raw}" for needed, _ in guide.LINES for raw in needed})
    assert (whole.name, whole.order) == ("engram:memory-protocol", 10)
    assert all(f"`mcp__x__{raw}`" in whole.text for needed, _ in guide.LINES for raw in needed)
    assert "{{" not in whole.text
    assert len(whole.text) < 3000
    assert "mem_search" not in guide.section({"mem_save": "mcp__x__mem_save"}).text
