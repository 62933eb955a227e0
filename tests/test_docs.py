"""The documents cannot drift: what there is stands in them, and what stands in them is there and runs."""
from __future__ import annotations

import os
import re
import subprocess
import sys

import build
from engram.cli import help as help_command
from engram.cli import table
from engram.propose import candidates, guide

README = build.read(os.path.join(build.ROOT, "README.md")).decode()
CODE = set(re.findall(r"`([^`\n]+)`", README))
SETTINGS = {"scope", "roles", "read", "proof", "load.limit", "load.max_tokens", "load.working_ttl_days", "mcp.resource_limit",
            "rule_variants.active", "recall.vectors", "author", "global_path", "trust"}
HIDDEN = {"agent-hook"}  # an alias that only old configs call


def words_of(code):
    return {words[1] for words in (line.split() for line in code) if len(words) > 1 and words[0] == "engram"}


def test_every_command_is_in_the_readme():
    names = {name for row in table.COMMANDS for name in (row.name, *row.aliases)} - HIDDEN
    assert names <= CODE, names - CODE


def test_every_command_that_the_documents_name_exists():
    named = words_of(CODE) | set(re.findall(r"engram ([a-z][a-z-]+)(?= |`|$)", guide.GUIDE.replace("Engram", ""), re.M))
    prose = {"mcp", "for", "keeps"}
    assert {name for name in named - prose if not name.startswith(("-", "<"))} <= {
        name for row in table.COMMANDS for name in (row.name, *row.aliases)} | {"mcp"}


def test_every_command_has_help_that_says_what_it_writes_and_shows_examples(run):
    for row in table.COMMANDS:
        text = run("help", row.name).stdout
        assert row.name == "mcp" or run(row.name, "--help").stdout.startswith("usage: engram"), row.name
        assert row.writes.split(".")[0][:40] in " ".join(text.split()), row.name
        assert "examples" in text and row.examples and all(example.startswith("engram ") for example in row.examples), row.name


def test_every_group_of_commands_is_one_that_help_shows():
    shown = help_command.run_help(None).text
    for row in table.COMMANDS:
        assert re.search(rf"^  {re.escape(row.name)}\b.* {re.escape(row.summary)}$", shown, re.M), row.name


def test_every_tool_is_in_the_readme_and_in_the_guide_or_its_own_help():
    from engram.server import engram_tools
    names = {tool.name for tool in engram_tools.TOOLS}
    assert len(names) == 11 and names <= CODE


def test_every_setting_is_in_the_readme():
    from engram.store import settings
    assert set(settings.BY_KEY) == SETTINGS <= CODE


def test_the_guide_names_every_field_of_a_candidate():
    main = {"TYPE", "TEXT", "CONTEXT", "TRIGGERS", "DEPENDS_ON", "LEVEL", "UPDATE", "SUPERSEDES", "NOT_DUPLICATE", "ROLE",
            "CONFIDENCE", "LIGHT", "BALANCED", "STRICT"}
    assert main <= set(candidates.FIELDS)
    assert not [field for field in main if field not in guide.PROTOCOL]
    assert guide.PROTOCOL.split("\n", 2)[2] in guide.GUIDE


def test_the_readme_opens_with_two_commands_and_they_are_those_of_the_build():
    opening = re.findall(r"^    (python3 build\.py .*?) +#", README, re.M)[:2]
    assert opening == ["python3 build.py demo", "python3 build.py test"]
    assert all(line.split()[2] in build.COMMANDS for line in re.findall(r"python3 build\.py \w+", README))


def test_the_readmes_first_command_runs_the_whole_loop(clean_environment):
    done = subprocess.run([sys.executable, build.__file__, "demo"], capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("1. ", "nothing is written yet", "NOOP", "exponential backoff", "engram verify", "All of it worked"):
        assert step in done.stdout
    assert os.listdir(clean_environment) == []


def test_the_readmes_install_commands_run(run, built, tmp_path, clean_environment):
    target = tmp_path / "bin"
    run("install", str(target))
    assert (target / "engram-mcp").exists()
    project = tmp_path / "project"
    project.mkdir()
    run("inject", cwd=project, file=target / "engram")
    assert (project / ".agents" / ".engram" / ".gitignore").exists()
    run("link", "claude", cwd=project, file=target / "engram", env={"PATH": f"{target}:/usr/bin:/bin"})
    assert (project / ".mcp.json").exists()
    run("link", "list", cwd=project, file=target / "engram")
