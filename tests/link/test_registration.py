"""What link does with an entry that is there, and with none; the launcher's words alone are its own to change."""
from __future__ import annotations

import json
import os
import tomllib

import pytest

from engram.editors.source import Foreign
from engram.hosts import table
from engram.link import registration

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "hosts")
OLD = ["npx", "-y", "--package", "@the-long-ride/engram@0.0.1", "engram-mcp"]


def data_cases():
    for host in sorted(os.listdir(DATA)):
        for name in sorted(os.listdir(os.path.join(DATA, host))):
            yield pytest.param(table.find(host), os.path.join(DATA, host, name), id=f"{host}/{name}")


@pytest.mark.parametrize("host, folder", list(data_cases()))
def test_each_example_is_edited_as_written_down_and_comes_back(host, folder):
    """`edit.json` has the arguments of `registration.edit`, and `undo` where the undoing gives something else than before."""
    def read(kind):
        for name in os.listdir(folder):
            if name.startswith(kind + "."):
                with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
                    return file.read()
        return None

    how = json.loads(read("edit"))
    undo = how.pop("undo", None)
    words = how.pop("words", ["engram-mcp"])
    edit = registration.edit(host, "x", words, **how)
    before, marks = read("before"), {}
    after = edit.add(before, marks)
    assert after == read("after")
    assert edit.add(after, marks) == after
    left = edit.drop(after, marks)
    assert left == (undo if undo is not None else before or "") and (before is not None or edit.blank(left))


def entry_text(host, value):
    if host.shape == "toml":
        return "[mcp_servers.engram]\n" + "".join(f"{key} = {json.dumps(item)}\n" for key, item in value.items())
    return json.dumps({"mcp" if host.shape == "opencode" else "mcpServers": {"engram": value}}, indent=2)


def entry_of(host, words):
    return {"type": "local", "command": words, "enabled": False} if host.shape == "opencode" else {"command": words[0], "args": words[1:]}


HOSTS = [row for row in table.HOSTS if row.shape != "bundle"]
by_name = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)


@by_name
def test_an_old_pin_is_renewed_and_all_else_in_the_entry_stays(host):
    value = entry_of(host, [*OLD, "--no-elicitation"]) | {"cwd": "/x"}
    after = registration.edit(host, "x", ["engram-mcp"]).add(entry_text(host, value), {})
    found = registration.found(host, after)
    assert registration.words_of(found) == ["engram-mcp", "--no-elicitation"] and found["cwd"] == "/x"
    assert host.shape != "opencode" or found["enabled"] is False
    again = registration.edit(host, "x", OLD).add(after, {})
    assert registration.words_of(registration.found(host, again)) == [*OLD, "--no-elicitation"]


@by_name
def test_an_entry_that_is_right_is_left_alone_however_it_is_written(host):
    value = entry_of(host, ["engram-mcp"])
    if host.shape == "toml":
        value["tools"] = {}
        text = '[mcp_servers]\nengram = { command = \'engram-mcp\', tools.engram_commit.approval_mode = "writes" } # mine\n'
    else:
        text = entry_text(host, value).replace('"engram-mcp"', '"engram\\u002dmcp"')
    assert registration.edit(host, "x", ["engram-mcp"], flags=["--always-load"]).add(text, {}) == text


@by_name
def test_an_entry_that_runs_something_else_stays_without_force(host):
    text = entry_text(host, entry_of(host, ["/opt/other/server", "serve"]))
    edit = registration.edit(host, "x", ["engram-mcp"])
    for way in (edit.add, edit.drop):
        with pytest.raises(Foreign, match="/opt/other/server serve"):
            way(text, {})
    after = registration.edit(host, "x", ["engram-mcp"], force=True).add(text, {})
    assert registration.words_of(registration.found(host, after)) == ["engram-mcp"]


@by_name
def test_the_server_of_the_session_surface_stays_without_force(host):
    text = entry_text(host, entry_of(host, ["engram", "mcp", "--tools=agent"]))
    assert registration.edit(host, "x", ["engram-mcp"]).add(text, {}) == text
    assert registration.serves_session(host, text)
    forced = registration.edit(host, "x", ["engram-mcp"], force=True).add(text, {})
    assert registration.words_of(registration.found(host, forced)) == ["engram-mcp"]


@by_name
def test_nothing_that_engram_writes_approves_a_tool(host):
    text = registration.edit(host, "x", ["engram-mcp"]).add(None, {})
    assert "trust" not in text and "allow" not in text and '"approve"' not in text


def test_flags_follow_the_hooks_only_on_an_upgrade():
    host = table.find("claude")
    text = entry_text(host, {"command": "engram-mcp", "args": ["--no-elicitation", "--always-load"]})
    assert registration.edit(host, "x", ["engram-mcp"]).add(text, {}) == text
    tidy = registration.edit(host, "x", ["engram-mcp"], tidy=True).add(text, {})
    assert registration.words_of(registration.found(host, tidy)) == ["engram-mcp", "--no-elicitation"]


def codex(text, **how):
    after = registration.edit(table.find("codex"), "x", ["engram-mcp"], **how).add(text, {})
    return tomllib.loads(after)["mcp_servers"]["engram"]["tools"]["engram_commit"]["approval_mode"]


def test_codex_asks_at_each_commit_unless_its_user_says_otherwise():
    assert codex("") == "prompt"
    assert codex("", approval="approve") == "approve"
    approving = registration.edit(table.find("codex"), "x", ["engram-mcp"], approval="approve").add("", {})
    assert codex(approving) == "approve"
    assert codex(approving, approval="prompt") == "prompt"
    assert codex('[mcp_servers.engram]\ncommand = "engram-mcp"\n\n[mcp_servers.mine]\ncommand = "x"\n') == "prompt"
    assert codex('[mcp_servers.engram]\ncommand = "engram-mcp"\n[mcp_servers.engram.tools.engram_commit]\n') == "prompt"
    assert codex('mcp_servers = { engram = { command = "engram-mcp" } }\n') == "prompt"
    assert codex('mcp_servers.engram.command = "engram-mcp"\n') == "prompt"


def test_codex_after_its_own_rewrite_is_still_linked_and_comes_out_clean():
    # what `codex mcp add other` leaves of our block (hosts.md, 1.3): no comments, sorted, another layout
    text = ('[mcp_servers.engram]\nargs = []\ncommand = "engram-mcp"\n\n'
            '[mcp_servers.engram.tools.engram_commit]\napproval_mode = "prompt"\n\n'
            '[mcp_servers.other]\ncommand = "x"\n')
    edit = registration.edit(table.find("codex"), "x", ["engram-mcp"])
    assert edit.add(text, {}) == text
    assert edit.drop(text, {}) == '[mcp_servers.other]\ncommand = "x"\n'


@pytest.mark.parametrize("answer, takes", [("1.18.33", True), ("1.15.0", True), ("1.14.9", False), ("1.0.185\n", False),
                                           ("opencode 1.2.27", False),
                                           ("2.0.0", True), ("", True), (None, True), ("dev", True)])
def test_an_old_opencode_gets_no_args_key(answer, takes):
    assert registration.takes_args_key(answer) is takes
    host = table.find("opencode")
    text = registration.edit(host, "x", ["engram-mcp"], args_key=takes).add(None, {})
    assert ("args" in json.loads(text)["mcp"]["engram"]) is takes
    full = registration.edit(host, "x", ["engram-mcp"]).add(None, {})
    assert ("args" in json.loads(registration.edit(host, "x", ["engram-mcp"], args_key=takes).add(full, {}))["mcp"]["engram"]) is takes
