"""The hosts: one row each, with where their files are. Must not know what is in those files, nor the disk.

Paths are templates: `{ws}` is the workspace, `{home}` the home folder, the others the host's own folders, which
`folders` finds the way the host does (hosts.md). Adding a host means adding a row.
"""
from __future__ import annotations

import os
from collections import namedtuple

from engram.editors import json

Host = namedtuple("Host", """name aliases title programs folder shape dialect workspace_mcp user_mcp
    workspace_text user_text workspace_skill user_skill workspace_command user_command no_workspace""")
# name, aliases: what a person types; title: what a person reads
# programs: found on PATH, or `folder` being there: the host is on this machine
# shape: how the entry is written (link/entries.py); dialect: what the host's JSON may hold
# *_mcp: the file for the registration; of several the one that is there; () where the host has none or we write none
# *_text: the file for the instructions, of several the first that is there; *_skill, *_command: whole files of ours
# no_workspace: why a workspace-level registration is skipped

HOSTS = (
    Host("claude", ("claude-code",), "Claude Code", ("claude",), "{claude}", "servers", json.STRICT,
         ("{ws}/.mcp.json",), (),
         ("{ws}/CLAUDE.md",), ("{claude}/CLAUDE.md",),
         ("{ws}/.claude/skills/engram/SKILL.md",), ("{claude}/skills/engram/SKILL.md",),
         ("{ws}/.claude/commands/engram.md",), ("{claude}/commands/engram.md",), None),
    Host("codex", ("codex-cli",), "Codex", ("codex",), "{codex}", "toml", None,
         (), ("{codex}/config.toml",),
         ("{ws}/AGENTS.md",), ("{codex}/AGENTS.md",),
         ("{ws}/.agents/skills/engram/SKILL.md",), ("{codex}/skills/engram/SKILL.md",),
         (), (), "Codex reads MCP servers only from the user's file: run `engram link codex --global`."),
    Host("gemini", ("gemini-cli",), "Gemini CLI", ("gemini",), "{gemini}", "servers", json.COMMENTS,
         ("{ws}/.gemini/settings.json",), ("{gemini}/settings.json",),
         ("{ws}/GEMINI.md",), ("{gemini}/GEMINI.md",),
         ("{ws}/.agents/skills/engram/SKILL.md",), ("{gemini}/skills/engram/SKILL.md",),
         ("{ws}/.gemini/commands/engram.toml",), ("{gemini}/commands/engram.toml",), None),
    Host("antigravity", ("antigravity-cli",), "Antigravity", ("antigravity", "agy"), "{home}/.antigravity", "servers", json.COMMENTS,
         (), ("{home}/.gemini/config/mcp_config.json",),
         (), ("{home}/.gemini/GEMINI.md",), (), (), (), (),
         "only a user-level file is documented for Antigravity: run `engram link antigravity --global`."),
    Host("cursor", ("cursor-agent",), "Cursor", ("cursor", "cursor-agent"), "{cursor}", "typed", json.JSONC,
         ("{ws}/.cursor/mcp.json",), ("{plugin}/mcp.json",),
         ("{ws}/.cursor/rules/engram.mdc",), ("{plugin}/rules/engram.mdc",),
         (), ("{plugin}/skills/engram/SKILL.md",),
         ("{ws}/.cursor/commands/engram.md",), ("{plugin}/commands/engram.md",), None),
    Host("opencode", ("open-code",), "OpenCode", ("opencode",), "{opencode}", "opencode", json.JSONC,
         ("{ws}/opencode.json", "{ws}/opencode.jsonc"), ("{opencode}/opencode.jsonc", "{opencode}/opencode.json"),
         ("{ws}/AGENTS.md", "{ws}/CLAUDE.md"), ("{opencode}/AGENTS.md", "{claude}/CLAUDE.md"),
         ("{ws}/.agents/skills/engram/SKILL.md",), ("{opencode}/skills/engram/SKILL.md",),
         ("{ws}/.opencode/commands/engram.md",), ("{opencode}/commands/engram.md",), None),
    Host("windsurf", ("cascade",), "Windsurf", ("windsurf",), "{windsurf}", "typed", json.STRICT,
         (), ("{windsurf}/mcp_config.json",),
         ("{ws}/.windsurf/rules/engram.md",), ("{windsurf}/memories/global_rules.md",),
         (), (), (), (), "only a user-level file is documented for Windsurf: run `engram link windsurf --global`."),
    Host("dsh", ("deepseek-harness",), "DeepSeek Harness", (), None, "bundle", None,
         (), (), (), (), (), (), (), (), None),
)


def find(name):
    """Return the row of a host by its name or an alias, or None."""
    for row in HOSTS:
        if name == row.name or name in row.aliases:
            return row
    return None


def folders(env, home, workspace):
    """Return {placeholder: folder} for the templates above, from the variables that the hosts honour.

    An empty variable counts as unset (case CP-02); a relative one is taken from the workspace.
    """
    def moved(name, usual):
        value = env.get(name)
        return os.path.normpath(os.path.join(workspace, value)) if value else usual

    config = env.get("XDG_CONFIG_HOME") or ""
    if not os.path.isabs(config):  # the XDG rules: a relative value is invalid and ignored
        config = os.path.join(home, ".config")
    return {
        "ws": workspace,
        "home": home,
        "claude": moved("CLAUDE_CONFIG_DIR", os.path.join(home, ".claude")),
        "codex": moved("CODEX_HOME", os.path.join(home, ".codex")),
        "gemini": os.path.join(moved("GEMINI_CLI_HOME", home), ".gemini"),
        "cursor": os.path.join(home, ".cursor"),
        "plugin": os.path.join(home, ".cursor", "plugins", "local", "engram"),
        "opencode": os.path.join(config, "opencode"),
        "windsurf": os.path.join(home, ".codeium", "windsurf"),
    }


def path(template, places):
    """Return the path that a template stands for; `places` is what `folders` returned."""
    return os.path.normpath(template.format_map(places))
