"""The MCP registration: which entry a host gets, and the edit that puts it there. Pure; must not know where files are.

An entry is ours by what it runs, never by a marker or a hash (link.md, "The entries").
"""
from __future__ import annotations

import re

from engram.editors import json, toml
from engram.editors.source import Foreign
from engram.link import launcher
from engram.link.edits import Edit, config

NAME = "engram"
REMARK = "Engram, written by `engram link codex`"
ALWAYS = "--always-load"
APPROVAL = ("tools", "engram_commit")
FIRST_WITH_ARGS = (1, 15)  # older versions of OpenCode reject their whole config for the key `args`


def entry(shape, words, *, args_key=True):
    """Return the entry that starts `words`, as a mapping in the shape of a host: servers, typed, opencode or toml."""
    if shape == "opencode":
        made = {"type": "local", "command": list(words), "args": [], "enabled": True}
        if not args_key:
            del made["args"]
        return made
    made = {"type": "stdio"} if shape == "typed" else {}
    made["command"] = words[0]
    if words[1:] or shape == "toml":
        made["args"] = list(words[1:])
    return made


def words_of(value):
    """Return the words that an entry runs; [] when it runs none (a remote server, or not an entry at all)."""
    if not isinstance(value, dict):
        return []
    command, args = value.get("command"), value.get("args")
    words = command if isinstance(command, list) else [command]
    words = words + (args if isinstance(args, list) else [])
    return words if words and all(isinstance(word, str) for word in words) else []


def is_ours(value):
    """Return whether an entry runs Engram."""
    return launcher.recognise(words_of(value)) is not None


def edit(host, path, words, *, force=False, flags=None, args_key=True, approval=None, tidy=False):
    """Make the edit of the registration of `host` in the file at `path`, to start the launcher's `words`.

    `flags` are for the end of the words of a new entry; those of an entry that is there stay as they are, but for
    `force`, which writes the whole entry anew, whoever's it is; with `tidy`, `--always-load` also follows `flags`.
    `approval` is Codex's mode for engram_commit; None keeps the one found.
    """
    if host.shape == "toml":
        return _toml_edit(path, words, force, approval)
    holder = ["mcp", NAME] if host.shape == "opencode" else ["mcpServers", NAME]
    wanted = entry(host.shape, [*words, *(flags or [])], args_key=args_key)

    def add(text, marks):
        doc = json.Document(text, host.dialect)
        value = doc.value(holder) if doc.root else None
        if value is None and (doc.root is None or doc.find(holder) is None):
            return json.put(text, holder, wanted, host.dialect, marks)
        if force:
            return text if value == wanted else json.replace(text, holder, wanted, host.dialect)
        known = launcher.recognise(words_of(value))
        if known is None:
            raise _foreign(value)
        if known.surface == "mem":
            return text
        kept = [*[flag for flag in known.flags if flag != ALWAYS], *(flags or [])] if tidy else known.flags
        return _repinned(text, host, holder, value, entry(host.shape, [*words, *kept], args_key=args_key))

    def drop(text, marks):
        doc = json.Document(text, host.dialect)
        if doc.root is None or doc.find(holder) is None:
            return text
        value = doc.value(holder)
        if not is_ours(value):
            raise _foreign(value, hint=None)
        return json.drop(text, holder, host.dialect, marks)

    return config(path, "mcp", host.dialect, add, drop, ignored=("$schema",))


def serves_session(host, text):
    """Return whether the entry that is there starts `engram mcp`, the server of the session surface: link leaves it."""
    known = launcher.recognise(words_of(found(host, text)))
    return known is not None and known.surface == "mem"


def found(host, text):
    """Return the entry named engram in the text of the host's file, or None. Raises Unreadable."""
    if host.shape == "toml":
        return toml.value(text, ("mcp_servers", NAME))
    return json.value(text, ["mcp" if host.shape == "opencode" else "mcpServers", NAME], host.dialect)


def takes_args_key(answer):
    """Return whether the OpenCode that answers so to `--version` reads the key `args`; no answer counts as new."""
    numbers = re.search(r"(\d+)\.(\d+)", answer or "")
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= FIRST_WITH_ARGS


def _repinned(text, host, holder, value, fresh):
    """Return `text` with the launcher words of `fresh` in the entry `value`; all else in it stays."""
    wanted = {key: fresh[key] for key in ("command", "args") if key in fresh}
    if host.shape == "opencode":  # which reads nothing but the command
        wanted = {"type": "local", "command": fresh["command"]}
        if "args" not in fresh:
            text = json.drop(text, [*holder, "args"], host.dialect, {})
    elif "args" in value:
        wanted.setdefault("args", [])
    for key, item in wanted.items():
        if key not in value:
            text = json.put(text, [*holder, key], item, host.dialect, {})
        elif value[key] != item:
            text = json.replace(text, [*holder, key], item, host.dialect)
    return text


def _toml_edit(path, words, force, approval):
    place = ("mcp_servers", NAME)
    mode = (*place, *APPROVAL, "approval_mode")
    wanted = entry("toml", words)
    whole = wanted | {APPROVAL[0]: {APPROVAL[1]: {"approval_mode": approval or "prompt"}}}

    def add(text, marks):
        text = text or ""
        value = toml.value(text, place)
        if value is None:
            return toml.add_table(text, place, whole, remark=REMARK)
        known = launcher.recognise(words_of(value))
        if known is None and not force:
            raise _foreign(value)
        if force:
            return text if value == whole else toml.add_table(toml.drop_table(text, place, remarks=(REMARK,)), place, whole, remark=REMARK)
        if known.surface == "mem":
            return text
        fresh = entry("toml", [*words, *known.flags])
        if words_of(value) != words_of(fresh):
            for key, item in fresh.items():
                if value.get(key) != item:
                    text = toml.set_value(text, (*place, key), item)
        now = toml.value(text, mode)
        if now is None and toml.value(text, mode[:-1]) is None:
            text = toml.add_subtable(text, mode[:-1], {"approval_mode": approval or "prompt"})
        elif now is None or approval and now != approval:
            text = toml.set_value(text, mode, approval or "prompt")
        return text

    def drop(text, marks):
        value = toml.value(text, place)
        if value is None:
            return text
        if not is_ours(value):
            raise _foreign(value, hint=None)
        return toml.drop_table(text, place, remarks=(REMARK,))

    return Edit(path, "mcp", add, drop, lambda text: not text.strip("\ufeff \t\r\n"))


def _foreign(value, *, hint="Rename it, or use --force to replace it."):
    words = words_of(value)
    what = "`" + " ".join(words) + "`" if words else "something else"
    return Foreign(f"the entry `{NAME}` there runs {what}, which is not Engram; it stays as it is.", hint=hint)
