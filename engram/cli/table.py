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
    Command("load", (), "read", "read", "the memories for a task, within a token budget",
            "Use counts and the derived index only.",
            ("engram load fix the flaky checkout test", "engram load --id use-pnpm")),
    Command("route", (), "read", "read", "what kind of task it is, and which memories it routes to", "The derived index only.",
            ("engram route rename the billing module", "engram route deploy to staging --explain")),
    Command("search", (), "read", "read", "search memories by words", "The derived index only.",
            ("engram search retry policy", 'engram search "exit code" type:rule')),
    Command("show", (), "read", "read", "one memory's whole file", "The derived index only.",
            ("engram show use-pnpm", "engram show use-pnpm --json")),
    Command("list", ("ls",), "read", "read", "a line for every memory and note", "The derived index only.",
            ("engram list", "engram list --type rule --limit 20")),
    Command("status", (), "read", "state", "counts, index, what waits for approval, roles", NOTHING,
            ("engram status", "engram status --json")),
    # write
    Command("save", (), "write", "write", "propose one memory",
            "Writes the memory after a person's yes at the terminal, or with --force; else nothing (exit 3).",
            ('engram save "TYPE: rule | TEXT: Run the tests before a release."',
             'engram save knowledge "Invoices retry five times." --scope workspace')),
    Command("save-session", ("ss",), "write", "write", "propose several memories, one a line",
            "Writes the memories after a person's yes at the terminal, or with --force; else nothing (exit 3).",
            ("engram save-session --file candidates.txt", "engram ss -f last 50 sessions")),
    Command("commit", (), "write", "write", "answer the proposal of an approval token",
            "Writes what is accepted at the terminal, and ends the token.",
            ("engram commit TOKEN", "engram commit TOKEN --scope workspace")),
    Command("note", (), "write", "write", "keep a note for the task under way",
            "Writes a file into the git-ignored working/ folder after a person's yes, or with --force.",
            ('engram note "the staging proxy is down" --objective "fix the deploy"', "engram note --file findings.txt")),
    Command("promote", (), "write", "promote", "propose a note as a durable memory",
            "Writes the memory after a person's yes at the terminal, or with --force; the note stays until it expires.",
            ("engram promote the-staging-proxy-is-down", "engram promote mem:42")),
    Command("observe", (), "write", "write", "keep a source as evidence",
            "Writes one trace into traces/ and a file to review into inbox/, secrets redacted.",
            ("engram observe --file standup.txt", 'engram observe "The queue backs up at noon." --private')),
    Command("edit", (), "write", "edits", "edit a memory in your editor and approve it",
            "Writes the memory and its hash after a person's yes at the terminal.",
            ("engram edit use-pnpm", "engram edit use-pnpm --scope global")),
    Command("pending", (), "write", "write", "list, show and answer proposals that wait for a human",
            "Writes what is accepted at the terminal; a rejected proposal's token ends.",
            ("engram pending", "engram pending 3f9c")),
    # care
    Command("rehash", (), "care", "edits", "accept edits made by hand",
            "Writes the hashes of what was shown after a person's yes at the terminal, or with --force.",
            ("engram rehash", "engram rehash use-pnpm")),
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
    Command("set-role", (), "settings", "state", "set the roles that filter memories",
            "Writes the setting `roles` into the store's engram.config.json.",
            ("engram set-role backend sre", "engram set-role status")),
    Command("set-rule-variant", (), "settings", "state", "set which wording of a rule is shown: light, balanced, strict, off",
            "Writes the setting `rule_variants.active` into the store's engram.config.json.",
            ("engram set-rule-variant strict", "engram set-rule-variant status")),
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
