"""The hooks that Engram puts into hosts' configs: how each is written, found again and taken out; text to text.

Must not know files or how a launcher is chosen. Shapes, events and units: link.md, Hooks, and hosts.md. A host that
trusts a hook by its exact text and place (Codex) must find both as they were after linking again, so a hook
of ours that still runs is left alone, however it is written.
"""
from __future__ import annotations

import re
from collections import namedtuple

from engram.editors import json
from engram.link import opencode_plugin
from engram.link.edits import config, whole

SECONDS, MILLISECONDS = 1, 1000
TIMEOUT = 10  # seconds: a hook takes hundredths of one; past this something hangs, and the prompt must go on
PROGRAMS = ("engram", "engram-mcp")

# workspace, user: the file, as in `hosts/table.py`. grouped: handlers stand in groups, as
# `hooks.EVENT[] = {"hooks": [handler]}`; else `hooks.EVENT[] = handler`. timeout: the unit, None where the host has
# none. extra: what else a handler says. version: the root key the host wants beside `hooks`.
Shape = namedtuple("Shape", "workspace user dialect events grouped timeout extra version")
SHAPES = {
    "claude": Shape("{ws}/.claude/settings.json", "{claude}/settings.json", json.STRICT,
                    ("SessionStart", "UserPromptSubmit"), True, SECONDS, {"type": "command"}, None),
    "codex": Shape("{ws}/.codex/hooks.json", "{codex}/hooks.json", json.STRICT,
                   ("SessionStart", "UserPromptSubmit"), True, SECONDS, {"type": "command"}, None),
    "gemini": Shape("{ws}/.gemini/settings.json", "{gemini}/settings.json", json.COMMENTS,
                    ("SessionStart", "BeforeAgent"), True, MILLISECONDS, {"name": "engram", "type": "command"}, None),
    "cursor": Shape("{ws}/.cursor/hooks.json", "{plugin}/hooks/hooks.json", json.JSONC,
                    ("sessionStart",), False, SECONDS, {}, 1),
    "windsurf": Shape("{ws}/.windsurf/hooks.json", "{windsurf}/hooks.json", json.STRICT,
                      ("pre_user_prompt",), False, None, {"show_output": True}, None),
}
PLUGIN = "{ws}/.opencode/plugins/engram.js", "{opencode}/plugins/engram.js"
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")


def edits(host, site, words):
    """Return the edits that give a host Engram's hooks; none for a host without hooks.

    `host` is a row of `hosts/table.py`, `site` the Site; `words` start Engram, from `PATH` or by an absolute path.
    A hook of ours that is there stays as it is where `site.keeps` it.
    """
    if host.name == "opencode":
        content = opencode_plugin.source([*words, "hook", "opencode"], TIMEOUT)
        return [whole(site.path(PLUGIN[site.user]), "hooks", content, comment=("// ", ""))]
    shape = SHAPES.get(host.name)
    if shape is None:
        return []
    line = command(host.name, words, windows=site.platform == "win32")
    return [config(site.path(shape.user if site.user else shape.workspace), "hooks", shape.dialect,
                   lambda text, marks: link(text, host.name, line, shape.dialect, marks, keep=site.keeps),
                   lambda text, marks: unlink(text, host.name, shape.dialect, marks))]


def installed(host, text):
    """Tell whether `text`, the host's hook file, holds a hook of ours. Raises Unreadable."""
    return bool(text) and bool(commands(text, host, SHAPES[host].dialect))


def command(host, program, *, windows=False):
    """Return the command line of a hook: `program` is the words that start Engram, the host's shell splits them."""
    return " ".join(_quoted(word, windows) for word in [*program, "hook", host])


def handler(host, line):
    """Return the entry that runs the command line `line`."""
    shape = SHAPES[host]
    made = {**shape.extra, "command": line}
    if shape.timeout:
        made["timeout"] = TIMEOUT * shape.timeout
    if "show_output" in made:
        made["show_output"] = made.pop("show_output")  # after the command, as its guide writes it
    return made


def program_of(line):
    """Return the words that start Engram in a hook's command line, or None when it isn't one of ours.

    Ours runs `engram hook <host>` and nothing else, or `engram agent-hook --host <host>`, as the earlier
    implementation wrote it.
    """
    words = [_QUOTED.sub(r"\1\2", word) for word in _WORD.findall(line)] if isinstance(line, str) else []
    for at, word in enumerate(words[:4]):
        name = re.split(r"[\\/]", word)[-1].lower().removesuffix(".exe").removesuffix(".cmd")
        if name in PROGRAMS:
            rest = words[at + 1:]
            return words[:at + 1] if rest[:1] == ["hook"] and len(rest) == 2 or _is_old(rest) else None
        if at == 0 and not re.fullmatch(r"(python[\d.]*|pyw?|cmd)", name):
            return None
    return None


def is_old(line):
    """Tell whether a command line of ours is written as the earlier implementation did."""
    return "agent-hook" in line


def commands(text, host, dialect):
    """Return `[(event, command line)]` of our hooks in `text`, in the order in which they stand."""
    return [(event, line) for event, _, _, line in _found(json.Document(text, dialect), host)]


def link(text, host, line, dialect, marks, *, keep):
    """Return `text` with one hook of ours for each event of the host. Raises Unreadable.

    `keep(program)` tells whether a hook found there still runs, so that it stays as it is; another one is replaced
    where it stands, by `line`.
    """
    shape = SHAPES[host]
    for event in shape.events:
        found = [row for row in _found(json.Document(text, dialect), host) if row[0] == event]
        stays = next((row for row in found if not is_old(row[3]) and keep(program_of(row[3]))), None)
        first = stays or (found[0] if found else None)
        twins = {tuple(row[1] if row[2] == first[2] else row[2]) for row in found if row is not first}
        text = _without(text, twins, dialect, marks)
        if first is None:
            made = handler(host, line)
            if shape.version is not None and json.Document(text or "{}", dialect).find(("version",)) is None:
                text = json.put(text, ["version"], shape.version, dialect, marks)
                marks["version"] = _size(text, dialect)
            text = json.append(text, ["hooks", event], {"hooks": [made]} if shape.grouped else made, dialect, marks)
        elif stays is None:
            at = next(row[1] for row in _found(json.Document(text, dialect), host) if row[0] == event)
            text = json.replace(text, at, handler(host, line), dialect)
    return text


def unlink(text, host, dialect, marks):
    """Return `text` without our hooks, under whatever event they stand. Raises Unreadable."""
    text = _without(text, {tuple(row[2]) for row in _found(json.Document(text, dialect), host)}, dialect, marks)
    # with somebody's own hooks added since, the file needs the version that we put there
    if "version" in marks and marks.pop("version") == _size(text, dialect):
        text = json.drop(text, ["version"], dialect, marks)
    return text


def _found(doc, host):
    """Return rows (event, path of the handler, path of what goes with it, command line) of our hooks."""
    rows, grouped = [], SHAPES[host].grouped
    hooks = doc.find(("hooks",)) if doc.root is not None and doc.root.kind == "object" else None
    for member in hooks.rows if hooks is not None and hooks.kind == "object" else ():
        for index, item in enumerate(member.value.rows if member.value.kind == "array" else ()):
            path = ["hooks", member.key, index]
            if not grouped:
                rows += _ours(doc, item.value, member.key, path, path)
                continue
            inner = next((row.value for row in item.value.rows if row.key == "hooks"), None) if item.value.kind == "object" else None
            if inner is None or inner.kind != "array":
                continue
            ours = [_ours(doc, row.value, member.key, [*path, "hooks", at], None) for at, row in enumerate(inner.rows)]
            alone = all(ours)  # the whole group goes, or only our handler from among others
            rows += [(event, at, path if alone else at, line) for row in ours for event, at, _, line in row]
    return rows


def _ours(doc, node, event, path, whole):
    value = doc.plain(node) if node.kind == "object" else {}
    return [(event, path, whole, value["command"])] if program_of(value.get("command")) else []


def _without(text, paths, dialect, marks):
    for path in sorted(paths, reverse=True):  # the last first, or the indexes of the others move
        text = json.drop(text, list(path), dialect, marks)
    return text


def _size(text, dialect):
    hooks = json.Document(text or "{}", dialect).value(("hooks",))
    return sum(len(items) for items in hooks.values() if isinstance(items, list)) if isinstance(hooks, dict) else 0


def _is_old(words):
    return words[:1] == ["agent-hook"] and len(words) <= 3


def _quoted(word, windows):
    if re.fullmatch(r"[\w@%+=:,./\\-]+" if windows else r"[\w@%+=:,./-]+", word, re.ASCII):
        return word
    if windows:
        return '"' + word + '"'
    return "'" + word.replace("'", "'\"'\"'") + "'"

