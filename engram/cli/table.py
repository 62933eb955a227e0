"""The commands: one row each. Must not import a command's module; `main` does that for the one that runs.

`module` is the module in `engram.cli` that defines `run_<name>(context, args)` and, where the command takes
arguments, `options_<name>(parser)` (dashes become underscores). `writes` says what the command writes,
in a sentence that its help shows. A `raw` command has `main(argv, context) -> exit code` instead and reads its
own words: the hook, which can't afford a parser, and commands with commands of their own. Groups and order are
those of cli.md.
"""
from __future__ import annotations

from collections import namedtuple

Command = namedtuple("Command", "name aliases group module summary writes examples raw", defaults=(False,))

GROUPS = (
    ("start", "Start"),
    ("read", "Read"),
    ("write", "Propose and approve"),
    ("care", "Care"),
    ("settings", "Settings"),
    ("serve", "Serve"),
    ("help", "Help"),
)

NOTHING = "Writes nothing."

COMMANDS = (
    # start
    Command("inject", ("init",), "start", "start", "make a store in this workspace",
            "Writes .agents/.engram/ with its .gitignore, and trusts this workspace.",
            ("engram inject", "engram inject --workspace ~/project")),
    Command("demo", (), "start", "demo", "watch the whole loop in a throw-away folder",
            "Writes a throw-away folder of its own, and removes it at the end unless --keep is given.",
            ("engram demo", "engram demo --keep")),
    Command("install", (), "start", "install", "put engram and engram-mcp into a folder on PATH",
            "Writes the single file, and engram-mcp beside it, into DIR (default: ~/.local/bin).",
            ("engram install", "engram install ~/bin")),
    Command("link", (), "start", "link", "make hosts know Engram: server, hooks, instructions, /engram",
            "Writes into the config files of the hosts named; copies of them and notes for unlink into ~/.engram.",
            ("engram link claude", "engram link --global all --plan")),
    Command("unlink", (), "start", "link", "take back what link wrote",
            "Takes Engram's entries out of the config files of the hosts named, and removes the files that link made.",
            ("engram unlink claude", "engram unlink --global all")),
    Command("trust", (), "start", "trust", "look at what a workspace tells agents, and let hooks load it",
            "Writes what you have seen into your own Engram folder, nothing into the workspace.",
            ("engram trust", "engram trust --show")),
    Command("upgrade", (), "start", "upgrade", "bring what link wrote up to date",
            "Writes entries, hooks and instructions of Engram that are there already, in the workspace and for the user.",
            ("engram upgrade --plan", "engram upgrade")),
    Command("doctor", (), "start", "doctor", "check Engram, its store and what hosts know of it", NOTHING,
            ("engram doctor", "engram doctor --strict --json")),
    # read
    # write
    # care
    Command("verify", (), "care", "care", "check every memory against its approved hash", NOTHING,
            ("engram verify", "engram verify --scope global --json")),
    Command("repair", (), "care", "care", "list unreadable files and rebuild what is derived",
            "Writes derived files only: the index and a merged hashes file; never a memory.",
            ("engram repair", "engram repair --json")),
    Command("rebuild-index", (), "care", "care", "build the search index anew", "Writes the derived index only.",
            ("engram rebuild-index", "engram rebuild-index --global")),
    Command("archive", (), "write", "care", "retire a memory into archive/",
            "Moves the memory's file to archive/ and its hash with it.",
            ('engram archive --reason "replaced by the new pipeline" old-deploy-steps', "engram archive banner-widgets")),
    # settings
    Command("config", (), "settings", "settings", "view or set a setting",
            "`set` writes engram.config.json of the store, or of the user with --user.",
            ("engram config view", "engram config set load.limit 12 --user")),
    Command("set-save-target", (), "settings", "settings", "where saves go: workspace, global or both",
            "Writes the setting `scope` into the store's engram.config.json.",
            ("engram set-save-target both", "engram set-save-target status")),
    Command("set-load-limit", (), "settings", "settings", "how many memories a load selects at most (1 to 32)",
            "Writes the setting `load.limit` into the store's engram.config.json.",
            ("engram set-load-limit 12", "engram set-load-limit reset")),
    Command("set-read", (), "settings", "settings", "when hooks load: startup, auto, always, manual, off",
            "Writes the setting `read` into the store's engram.config.json.",
            ("engram set-read startup", "engram set-read status")),
    Command("set-proof", (), "settings", "settings", "whether hooks say what they loaded: off, compact",
            "Writes the setting `proof` into the store's engram.config.json.",
            ("engram set-proof compact", "engram set-proof status")),
    # serve
    Command("mcp", (), "serve", "serve", "serve MCP on standard input and output, as harnesses start it",
            "What the tools write: session memory at once, memories only after a human's approval.",
            ("engram mcp", "engram mcp --surface engram --no-elicitation", "engram mcp --tools=all --project shop")),
    Command("mem", (), "serve", "mem", "session memory: search, save, context, timeline, stats, delete, doctor, projects, export, import",
            "`save`, `delete`, `import` and `projects --merge` write sessions.db in the user folder; `export` its file.",
            ('engram mem search "rate limiting"', "engram mem export notes.json")),
    Command("session", (), "serve", "session", "call a memory tool through a session host, or see what a host would register",
            "What the called tool writes.", ("engram session check", """engram session run mem_search '{"query": "rate limit"}'""")),
    # the alias stands in configs that the earlier implementation wrote; an unknown command would block their prompts
    Command("hook", ("agent-hook",), "serve", "hook", "answer a host's hook event on standard input",
            "Writes which memories a session got into your own Engram folder; no prompt text.",
            ("engram hook claude < event.json", "engram hook gemini < event.json"), True),
    # help
    Command("help", (), "help", "help", "show the commands, or one command's help", NOTHING, ("engram help", "engram help save")),
    Command("llm", (), "help", "help", "print the guide for agents", NOTHING, ("engram llm", "engram llm --json")),
    Command("completion", (), "help", "help", "print a completion script for bash, zsh, fish or powershell", NOTHING,
            ("engram completion bash > ~/.local/share/bash-completion/completions/engram", "engram completion fish | source")),
)


def find(name):
    """Return the row of a command or alias, or None."""
    for row in COMMANDS:
        if name == row.name or name in row.aliases:
            return row
    return None
