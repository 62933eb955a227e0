"""The cases A to D of the failure reports: each file of `data/cases`, linked and unlinked as a person would."""
from __future__ import annotations

import json
import os
import tomllib

import pytest

from engram.link import hooks
from tests.editors.configs import only_inserted, read_jsonc
from tests.link.machine import Machine, case

JSON_PLACES = (("claude", (), ".mcp.json"), ("cursor", (), ".cursor/mcp.json"), ("gemini", (), ".gemini/settings.json"),
               ("gemini", ("--global",), "~/.gemini/settings.json"), ("windsurf", ("--global",), "~/.codeium/windsurf/mcp_config.json"),
               ("antigravity", ("--global",), "~/.gemini/config/mcp_config.json"), ("opencode", (), "opencode.json"),
               ("opencode", ("--global",), "~/.config/opencode/opencode.json"))
CODEX = ("codex", ("--global",), "~/.codex/config.toml")


@pytest.fixture
def machine(tmp_path):
    return Machine(str(tmp_path))


def roundtrip(machine, host, level, target, data, *, parts=("--no-hooks", "--no-instructions")):
    """ROUNDTRIP of CASES.md; returns the text after link."""
    machine.write(target, data)
    machine.run("link", *level, host, *parts)
    after = machine.read(target)
    machine.run("link", *level, host, *parts)
    assert machine.read(target) == after
    machine.run("unlink", *level, host, *parts)
    assert machine.read(target) == data
    assert after != data
    return after.decode()


def refused(machine, host, level, target, data, *words, line=None):
    """REFUSE of CASES.md, for link and unlink."""
    machine.write(target, data, mode=0o640)
    before = machine.tree()
    for command in ("link", "unlink"):
        said = machine.run(command, *level, host, "--no-instructions", code=None)
        assert machine.code != 0 and machine.err == said and machine.path(target) in said
        assert line is None or f"line {line}" in said, said
        assert all(word in said for word in words), said
        assert machine.tree() == before
        assert not os.path.exists(os.path.join(machine.home, ".engram"))


@pytest.mark.parametrize("host, level, target", JSON_PLACES)
@pytest.mark.case("CJ-01", "CJ-04")
def test_a_config_that_can_t_be_read_is_refused_and_stays(host, level, target, machine):
    refused(machine, host, level, target, case("json/missing-comma.json"), line=4)
    refused(machine, host, level, target, case("json/root-array.json"), line=1)
    refused(machine, host, level, target, b'{"mcpServers": {\n', line=1)


@pytest.mark.parametrize("host, level, target", JSON_PLACES)
@pytest.mark.case("CJ-03")
def test_an_empty_file_is_no_error(host, level, target, machine):
    holder = "mcp" if host == "opencode" else "mcpServers"
    for name in ("json/empty.json", "json/whitespace-only.json"):
        after = json.loads(roundtrip(machine, host, level, target, case(name)))
        assert list(after) == [holder] and list(after[holder]) == ["engram"]


@pytest.mark.case("CJ-21")
def test_a_comment_without_an_end_is_refused_where_it_starts(machine):
    refused(machine, "opencode", (), "opencode.jsonc", case("jsonc/unterminated-comment.jsonc"), line=2)


@pytest.mark.parametrize("host, level, target", JSON_PLACES)
@pytest.mark.parametrize("name", ["with-bom", "crlf", "indent4-order", "non-ascii-and-escapes", "numbers", "duplicate-keys"])
@pytest.mark.case("CJ-06", "CJ-08", "CJ-10", "CJ-12", "CJ-13", "CJ-14")
def test_json_configs_come_back_to_the_byte(host, level, target, name, machine):
    data = case(f"json/{name}.json")
    after = roundtrip(machine, host, level, target, data)
    assert only_inserted(data.decode(), after)
    assert after.count("\ufeff") == data.decode().count("\ufeff")
    if b"\r\n" in data:
        assert after.count("\n") == after.count("\r\n")
    lines = after.splitlines()
    for line in data.decode().splitlines():
        assert line in lines or line + "," in lines or "mcpServers" in line or line.rstrip("}") in after


@pytest.mark.case("CJ-14")
def test_a_repeated_key_on_the_way_is_refused_by_name(machine):
    refused(machine, "claude", (), ".mcp.json", case("json/duplicate-mcpservers.json"), '"mcpServers"', line=3)


@pytest.mark.parametrize("level, target", [((), "opencode.jsonc"), (("--global",), "~/.config/opencode/opencode.jsonc")])
@pytest.mark.case("CJ-16", "CJ-17")
def test_jsonc_configs_come_back_to_the_byte(level, target, machine):
    after = roundtrip(machine, "opencode", level, target, case("jsonc/trailing-commas.jsonc"))
    assert "{," not in after and ",," not in after.replace(" ", "")
    found = dict(read_jsonc(after))
    assert [key for key, _ in found["mcp"]] == ["calendar", "engram"]
    assert dict(dict(found["mcp"])["calendar"])["command"] == ["cal-server", "--week"]
    found = dict(read_jsonc(roundtrip(machine, "opencode", level, target, case("jsonc/quote-in-comment.jsonc"))))
    assert (found["files"], found["columns"]) == ("*.{yml,yaml,}", "[id,]")


@pytest.mark.case("CJ-18")
def test_comments_stay_and_no_variable_is_looked_up(tmp_path):
    machine = Machine(str(tmp_path), DOCS_KEY="leak")
    data = case("jsonc/env-refs.jsonc")
    after = roundtrip(machine, "gemini", ("--global",), "~/.gemini/settings.json", data)
    assert "leak" not in after and "$DOCS_KEY" in after and "${OTHER:-none}" in after
    assert [line for line in after.splitlines() if "//" in line] == [line for line in data.decode().splitlines() if "//" in line]


@pytest.mark.case("CP-01")
def test_of_two_names_the_one_that_is_there_is_edited(machine):
    machine.write("~/.config/opencode/opencode.jsonc", "{ // mine\n}\n")
    machine.run("link", "--global", "opencode")
    assert machine.read("~/.config/opencode/opencode.json") is None
    assert b"engram" in machine.read("~/.config/opencode/opencode.jsonc")
    machine.write("opencode.jsonc", "{}")
    machine.run("link", "opencode")
    assert machine.read("opencode.json") is None


@pytest.mark.case("CP-02")
def test_moved_config_folders_are_followed_and_an_empty_variable_is_none(tmp_path):
    machine = Machine(str(tmp_path / "moved"), CODEX_HOME=str(tmp_path / "cx"), XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    machine.run("link", "--global", "codex", "opencode")
    assert (tmp_path / "cx" / "config.toml").exists() and (tmp_path / "xdg" / "opencode" / "opencode.jsonc").exists()
    assert sorted(os.listdir(machine.home)) == [".engram"]
    machine = Machine(str(tmp_path / "usual"), CODEX_HOME="", XDG_CONFIG_HOME="", CLAUDE_CONFIG_DIR="", GEMINI_CLI_HOME="")
    machine.run("link", "--global", "codex", "opencode", "claude", "gemini")
    assert set(os.listdir(machine.home)) == {".engram", ".codex", ".config", ".claude", ".gemini"}


@pytest.mark.parametrize("name", ["comments-and-unknown", "literal-types", "no-final-newline-aot", "inline-table"])
@pytest.mark.case("CT-01", "CT-03", "CT-05", "CT-07")
def test_toml_configs_come_back_to_the_byte(name, machine):
    data = case(f"toml/{name}.toml")
    after = roundtrip(machine, *CODEX, data)
    found = tomllib.loads(after)
    assert found["mcp_servers"].pop("engram")["command"] == "engram-mcp"
    assert found == {"mcp_servers": {}} | tomllib.loads(data.decode())
    if name != "inline-table":
        assert after.startswith(data.decode())


@pytest.mark.case("CT-02")
def test_an_entry_that_is_there_gets_no_second_header(machine):
    for data in (case("toml/existing-entry.toml"), b'[mcp_servers.engram]\ncommand = "engram-mcp"\n'):
        machine.write(CODEX[2], data)
        machine.run("link", "--global", "codex")
        after = machine.read(CODEX[2])
        assert after.count(b"mcp_servers.engram]") == 1 and tomllib.loads(after.decode())
        machine.run("link", "--global", "codex")
        assert machine.read(CODEX[2]) == after


@pytest.mark.case("CT-04")
def test_no_table_of_ours_is_left_behind(machine):
    machine.write(CODEX[2], case("toml/subtables.toml"))
    machine.run("unlink", "--global", "codex")
    assert tomllib.loads(machine.read(CODEX[2]).decode()) == {"mcp_servers": {"mine": {"command": "my-server", "env": {"A": "1"}}}}
    assert b"engram" not in machine.read(CODEX[2])
    machine.run("link", "--global", "codex")
    assert set(tomllib.loads(machine.read(CODEX[2]).decode())["mcp_servers"]) == {"mine", "engram"}


@pytest.mark.case("CT-06", "CT-13")
def test_toml_that_can_t_be_read_is_refused_and_stays(machine):
    refused(machine, *CODEX, case("toml/syntax-error.toml"), line=2)
    refused(machine, *CODEX, case("toml/all-nul.toml"), "only zero bytes")
    listed = machine.json("link", "list")["data"]["hosts"]
    codex = next(row for row in listed if row["host"] == "codex")["user"]
    assert codex["status"] == "unreadable" and codex["file"] == machine.path(CODEX[2]) and "zero bytes" in codex["reason"]


@pytest.mark.case("CF-01")
def test_a_linked_dotfile_stays_a_link(machine):
    target = machine.write("~/repo/s.json", "{}\n")
    os.makedirs(machine.path("~/.gemini"))
    os.symlink("../repo/s.json", machine.path("~/.gemini/settings.json"))
    machine.run("link", "--global", "gemini")
    assert os.readlink(machine.path("~/.gemini/settings.json")) == "../repo/s.json"
    assert b"engram" in machine.read("~/repo/s.json") and os.path.isfile(target)
    machine.run("unlink", "--global", "gemini")
    assert machine.read("~/repo/s.json") == b"{}\n" and os.readlink(machine.path("~/.gemini/settings.json")) == "../repo/s.json"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
@pytest.mark.case("CF-03")
def test_a_config_keeps_its_mode(mode, machine):
    for host, level, target in (*JSON_PLACES, CODEX):
        path = machine.write(target, "" if host == "codex" else "{}", mode=mode)
        for command in ("link", "unlink"):
            machine.run(command, *level, host)
            assert os.stat(path).st_mode & 0o777 == mode


@pytest.mark.case("CF-03")
def test_a_new_config_is_its_owner_s_alone_at_home_and_as_the_umask_says_in_a_project(machine):
    before = os.umask(0o022)
    try:
        machine.run("link", "--global", "claude", "codex", "gemini", "opencode", "cursor", "windsurf", "antigravity")
        assert {state[1] & 0o777 for path, state in machine.tree().items() if isinstance(state[0], bytes)} == {0o600}
        machine.run("link", "claude", "gemini", "opencode", "cursor")
        modes = {state[1] & 0o777 for path, state in machine.tree().items() if path.startswith(machine.ws) and isinstance(state[0], bytes)}
        assert modes == {0o644}
    finally:
        os.umask(before)
    assert os.stat(machine.path("~/.engram/links.json")).st_mode & 0o777 == 0o600


@pytest.mark.case("CR-01")
def test_unlinking_where_nothing_was_linked_makes_no_file(machine):
    for name in (".codex", ".gemini"):
        os.mkdir(os.path.join(machine.home, name))
    for level in ((), ("--global",)):
        said = machine.run("unlink", *level, "all")
        assert "not linked" in said
        said = machine.run("unlink", *level, "codex")
        assert "not linked" in said
    assert not [names for _, _, names in os.walk(machine.home) if names] and sorted(os.listdir(machine.home)) == [".codex", ".gemini"]


@pytest.mark.parametrize("host, level, target", JSON_PLACES)
@pytest.mark.case("CR-02")
def test_somebody_else_s_server_of_our_name_stays(host, level, target, machine):
    data = case("json/foreign-engram.json")
    if host == "opencode":
        data = b'{"mcp": {"engram": {"type": "local", "command": ["/opt/other-product/engram-server", "serve"]}}}\n'
    machine.write(target, data)
    before = machine.tree()
    said = machine.run("link", *level, host, code=4)
    assert "/opt/other-product/engram-server serve" in said and machine.path(target) in said
    said = machine.run("unlink", *level, host)
    assert "/opt/other-product/engram-server serve" in said and "not Engram" in said
    assert machine.tree() == before
    machine.run("link", *level, host, "--force")
    assert b"other-product" not in machine.read(target)


@pytest.mark.case("CR-04")
def test_linking_all_twice_changes_nothing_the_second_time(machine):
    for name in ("claude", "codex", "gemini", "opencode", "cursor", "windsurf"):
        machine.program(name)
    for level in ((), ("--global",)):
        machine.run("link", *level, "all")
        before = machine.tree()
        said = machine.run("link", *level, "all")
        assert machine.tree() == before
        assert said.count(": unchanged") == 6 and "antigravity: skipped" in said


@pytest.mark.case("CR-05")
def test_each_host_gets_the_keys_that_it_knows(machine):
    hosts = ("claude", "codex", "gemini", "opencode", "cursor", "windsurf", "antigravity")
    machine.run("link", "--global", *hosts)
    machine.run("link", *hosts)
    entry = lambda name: json.loads(machine.read(name))["mcpServers"]["engram"]
    for name in ("~/.gemini/settings.json", ".gemini/settings.json", "~/.gemini/config/mcp_config.json", ".mcp.json"):
        assert entry(name) == {"command": "engram-mcp"}
    for name in (".cursor/mcp.json", "~/.cursor/plugins/local/engram/mcp.json", "~/.codeium/windsurf/mcp_config.json"):
        assert entry(name) == {"type": "stdio", "command": "engram-mcp"}
    for name in ("opencode.json", "~/.config/opencode/opencode.jsonc"):
        assert json.loads(machine.read(name))["mcp"]["engram"] == {"type": "local", "command": ["engram-mcp"], "args": [], "enabled": True}
    assert tomllib.loads(machine.read("~/.codex/config.toml").decode())["mcp_servers"]["engram"] == {
        "command": "engram-mcp", "args": [], "tools": {"engram_commit": {"approval_mode": "prompt"}}}


@pytest.mark.parametrize("host, level, target", [place for place in (*JSON_PLACES, CODEX) if place[0] != "antigravity"])
def test_hooks_instructions_and_registration_all_come_out_again(host, level, target, machine):
    for data in (b"", b"{}") if host != "codex" else (b"", b'model = "x"'):
        for name in (target, "AGENTS.md", "CLAUDE.md", "~/.claude/CLAUDE.md"):
            machine.write(name, data if name == target else b"# Mine\r\n")
        if host in hooks.SHAPES:
            shape = hooks.SHAPES[host]
            name = (shape.user if level else shape.workspace).replace("{ws}/", "").replace("{plugin}", "~/.cursor/plugins/local/engram")
            name = name.format(**{key: f"~/.{key}" for key in ("claude", "codex", "gemini")}, windsurf="~/.codeium/windsurf")
            if name != target:
                machine.write(name, b'{\n    "x": [1, 2]\n}')
        before = machine.contents()
        machine.run("link", *level, host)
        assert machine.contents() != before
        machine.run("unlink", *level, host)
        assert machine.contents() == before
