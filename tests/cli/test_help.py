"""Help, the guide for agents and completion: all of them made from the table, so they show what there is."""
from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from engram.cli import help as subject
from engram.cli import table


def test_bare_engram_and_help_show_every_command_in_its_group(run):
    bare, asked = run(), run("help")
    assert bare.stdout == asked.stdout
    positions = [bare.stdout.index(f"\n{title}\n") for _, title in table.GROUPS]
    assert positions == sorted(positions)
    assert all(f"  {row.name}" in bare.stdout for row in table.COMMANDS)


def test_help_of_a_command_is_what_its_option_help_shows(run):
    assert run("help", "verify").stdout.split() == run("verify", "--help").stdout.split()


def test_help_of_an_unknown_command_is_a_usage_error(run):
    done = run("help", "nonsense", code=2)
    assert "nonsense" in done.stderr and done.stdout == ""


def test_help_as_json_lists_names_groups_and_what_each_writes(run):
    rows = json.loads(run("help", "--json").stdout)["data"]["commands"]
    assert [row["name"] for row in rows] == [row.name for row in table.COMMANDS]
    assert all(row["writes"] and row["examples"] for row in rows)


def test_the_guide_for_agents_is_one_text_with_the_proposal_protocol(run):
    text = run("llm").stdout
    assert text.startswith("# Engram for agents") and "engram_commit" in text and "TYPE: rule | TEXT:" in text
    assert json.loads(run("llm", "--json").stdout)["data"]["guide"].strip() == text.strip()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_completion_script_knows_every_command_and_is_valid_where_the_shell_is_here(shell, run, tmp_path):
    script = run("completion", shell).stdout
    for row in table.COMMANDS:
        assert all(name in script for name in (row.name, *row.aliases))
    program = shutil.which(shell)
    if shell != "powershell" and program:
        path = tmp_path / "script"
        path.write_text(script)
        checked = subprocess.run([program, "-n", path], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr


def test_bash_completes_commands_and_their_options(run, tmp_path):
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash")
    (tmp_path / "script").write_text(run("completion", "bash").stdout)

    def complete(*words):
        line = f'source ./script; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _engram; echo "${{COMPREPLY[@]}}"'
        return subprocess.run([bash, "-c", line], capture_output=True, text=True, cwd=tmp_path).stdout.split()

    assert complete("engram", "veri") == ["verify"]
    assert complete("engram", "verify", "--js") == ["--json"]
    assert complete("engram", "nonsense", "--js") == []


def test_words_of_a_shell_are_quoted_for_it():
    rows = [("it's", "a user's thing", ["--json"])]
    assert "'it'\\''s:a user'\\''s thing'" in subject._zsh(rows)
    assert "'it''s'" in subject._powershell(rows)


def test_an_unknown_shell_is_an_error_that_lists_those_there_are(run):
    assert "powershell" in run("completion", "tcsh", code=2).stderr


def test_help_needs_no_store_and_writes_nothing(run, clean_environment, tmp_path):
    run("help")
    run("llm")
    assert os.listdir(clean_environment) == [] and not os.path.exists(tmp_path / ".agents")
