"""Write one setting into an `engram.config.json`, every other byte kept.

The counterpart of `store.settings`, which reads them; here, because the editor of JSON text is a room of its
own (`hosts`) that the store must not know. Must not know who asks.
"""
from __future__ import annotations

import os

from engram import files
from engram.editors import json as editor
from engram.editors.source import Unreadable
from engram.errors import ConfigError, Result, UsageError
from engram.store import settings


def put(place, key, value, *, user=False):
    """Set `key` to `value` (None takes it out: the next layer counts again) and return a Result.

    Goes into the user's file with `user` and for keys that only the user may set, else into the workspace
    store's (with `--global`: the user's). Raises UsageError, ConfigError, StorageError.
    """
    row = settings.BY_KEY[key]
    user = user or row.user_only or place.global_only
    if user:
        path = place.user_config
        if path is None:
            raise UsageError("no home folder can be told, so there is nowhere to keep your settings.", hint="Set ENGRAM_CONFIG_DIR.")
    else:
        store = place.store_of("workspace")
        path = store.path(settings.FILE)
    if value is not None:
        problem = settings.check(row, value)
        if problem:
            raise UsageError(f"`{key}` {problem}.")
    before = files.read_regular(path, limit=settings.LARGEST)
    settings.load(path)  # a file that can't be read is refused with its reason, untouched
    try:
        after = with_value((before or b"").decode("utf-8"), key, value).encode("utf-8")
    except Unreadable as error:
        raise ConfigError(str(error), file=path) from None
    if after != (before or b""):
        if user:
            files.ensure_dir(os.path.dirname(path), mode=0o700)
        files.replace(path, after, expected=before, mode=0o600 if user else None)
    place.forget_settings()
    now = settings.show(place.settings.get(key))
    layer = place.settings.sources[key]
    said = f"{key} is now {now}" + ("." if layer != "default" or value is None else " (the default).")
    return Result({"key": key, "value": place.settings.get(key), "source": layer, "file": path}, said, place.settings.diagnostics)


def with_value(text, key, value):
    """Return JSON or JSONC text with a dotted key set, or removed for a None; the rest of the bytes stay."""
    document = editor.Document(text, editor.JSONC)
    path = (key,) if document.find((key,)) else tuple(key.split("."))
    if value is None:
        return editor.drop(text, path, editor.JSONC, {})
    if document.find(path):
        return editor.replace(text, path, value, editor.JSONC)
    return editor.put(text, path, value, editor.JSONC, {})
