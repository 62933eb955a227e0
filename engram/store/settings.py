"""Settings: a table of keys, and their values from workspace over user over defaults, key by key.

Reads the two `engram.config.json`; writing them is `propose.preferences`' job. A wrong value is one diagnostic
and the default. A repository's committed settings can't choose paths, name an author or loosen trust
(store.md, Settings): such keys there are ignored with a diagnostic.
"""
from __future__ import annotations

import json
import os
import re
from collections import namedtuple

from engram import files
from engram.errors import ConfigError, EngramError, UsageError, diagnostic

FILE = "engram.config.json"
LARGEST = 1024 * 1024
Setting = namedtuple("Setting", "key default kind choices user_only about")

# kind: word (one of choices), number (choices = lowest, highest), words, author, folder
SETTINGS = (
    Setting("scope", None, "word", ("workspace", "global", "both"), False, "where saves go"),
    Setting("roles", [], "words", None, False, "roles that filter memories; none shows all"),
    Setting("read", "auto", "word", ("startup", "auto", "always", "manual", "off"), False, "when hooks load"),
    Setting("proof", "off", "word", ("off", "compact"), False, "whether hooks say what they loaded"),
    Setting("load.limit", 8, "number", (1, 32), False, "how many memories a load selects at most"),
    Setting("load.max_tokens", 1600, "number", (200, 32000), False, "token budget of a load"),
    Setting("load.working_ttl_days", 14, "number", (1, 365), False, "how long a note lives"),
    Setting("mcp.resource_limit", 20, "number", (0, 200), False, "most used memories listed as resources"),
    Setting("rule_variants.active", "balanced", "word", ("light", "balanced", "strict", "off"), False, "which wording of a rule is shown"),
    Setting("recall.vectors", "on", "word", ("on", "off"), False, "find related words too"),
    Setting("author", None, "author", None, True, "who signs memories: name and email"),
    Setting("global_path", None, "folder", None, True, "folder of the global store"),
    Setting("trust", "on", "word", ("on", "off"), True, "whether a cloned store waits for engram trust"),
)
BY_KEY = {row.key: row for row in SETTINGS}


class Settings:
    """The values in force. `diagnostics` tells what was wrong in the files; `sources` maps a key to its layer."""

    __slots__ = ("diagnostics", "layers", "sources", "values")

    def __init__(self, layers):
        """`layers` is a list of (name, path, user's own?), the strongest first."""
        self.diagnostics = []
        self.values, self.sources = {}, {}
        self.layers = layers
        loaded = [(name, path, own, self._load(path)) for name, path, own in layers]
        for row in SETTINGS:
            self.values[row.key], self.sources[row.key] = row.default, "default"
            for name, path, own, content in loaded:
                value = lookup(content, row.key)
                if value is None or value == "":
                    continue
                if row.user_only and not own:
                    self._tell("config.not-here", path, f"`{row.key}` is not read from a store's settings.",
                               f"Set it for yourself: engram config set {row.key} … --user.")
                    continue
                problem = check(row, value)
                if problem:
                    self._tell("config.value", path, f"`{row.key}` {problem}; the default ({show(row.default)}) is used.",
                               f"Run engram config set {row.key} ….")
                    break
                self.values[row.key], self.sources[row.key] = value, name
                break

    def get(self, key):
        """Return the value in force for a key of the table."""
        return self.values[key]

    def _load(self, path):
        try:
            return load(path)
        except EngramError as error:
            self._tell("config.unreadable", path, f"{error.message} The defaults are used.", "Mend it or remove it.", line=error.line)
            return {}

    def _tell(self, id, path, message, remedy, line=None):
        self.diagnostics.append(diagnostic(id, "warning", message, file=path + (f", line {line}" if line else ""), remediation=remedy))


def load(path):
    """Return a settings file as a mapping; {} when there is none. Raises ConfigError, StorageError."""
    raw = files.read_regular(path, limit=LARGEST) if path else None
    if raw is None or not raw.strip():
        return {}
    return parse(raw, path)


def parse(raw, path):
    """Read JSON bytes; comments and trailing commas are allowed, as the earlier implementation allows them."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 (byte {error.start}).", file=path) from None
    try:
        try:
            value = json.loads(text)
        except ValueError:
            value = json.loads(strict(text))
    except RecursionError:
        raise ConfigError("nested too deeply.", file=path) from None
    except ValueError as error:
        raise ConfigError(f"not valid JSON: {getattr(error, 'msg', error)}.", file=path, line=getattr(error, "lineno", None)) from None
    if not isinstance(value, dict):
        raise ConfigError("the top level is not an object.", file=path)
    return value


def strict(text):
    """Return JSON with comments blanked out (line numbers stay) and trailing commas removed."""
    # what is never closed matches to its end, or a prepared file would make the search start again at each quote
    blank = lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0])
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)', blank, text)
    return re.sub(r'("(?:[^"\\\n]|\\.)*"?)|,(?=\s*[}\]])', lambda found: found[1] or " ", text)


def lookup(content, key):
    """Return the value at a dotted key in nested objects (a flat `"load.limit"` counts too), or None."""
    if key in content:
        return content[key]
    value = content
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def check(row, value):
    """Return what is wrong with a value for a setting, or None."""
    if row.kind == "word":
        return None if value in row.choices else f"must be one of {', '.join(row.choices)}, not {show(value)}"
    if row.kind == "number":
        low, high = row.choices
        right = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if right else f"must be a whole number from {low} to {high}, not {show(value)}"
    if row.kind == "words":
        right = isinstance(value, list) and all(isinstance(word, str) and word.strip() for word in value)
        return None if right else f"must be a list of words, not {show(value)}"
    if row.kind == "author":
        right = isinstance(value, dict) and isinstance(value.get("name"), str) and is_address(value.get("email"))
        return None if right else 'must be an object {"name": …, "email": …} with a name and an e-mail address'
    right = isinstance(value, str) and os.path.isabs(os.path.expanduser(value))
    return None if right else f"must be an absolute path, not {show(value)}"


def read_value(row, words):
    """Turn the words typed for a setting into its value. Raises UsageError that says what is right."""
    text = " ".join(words).strip()
    value = text
    if row.kind == "number" and re.fullmatch(r"-?\d{1,9}", text):
        value = int(text)
    elif row.kind == "words":
        value = [word for word in re.split(r"[,\s]+", text) if word]
    elif row.kind == "author":
        found = re.fullmatch(r"(.+?)\s*<([^<>]+)>", text)
        value = {"name": found[1], "email": found[2]} if found else text
    elif row.kind == "folder":
        value = os.path.abspath(os.path.expanduser(text)) if text else text
    problem = check(row, value)
    if problem:
        raise UsageError(f"`{row.key}` {problem}.")
    return value


def is_address(text):
    """Whether text has the form of an e-mail address (one `@`, no blanks or angle brackets, at most 320)."""
    return isinstance(text, str) and len(text) <= 320 and bool(re.fullmatch(r"[^\s<>@]+@[^\s<>@]+", text))


def show(value):
    """Return a value as a person would write it."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value[:60]
    return json.dumps(value, ensure_ascii=False)[:60]
