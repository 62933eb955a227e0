"""The DeepSeek Harness bundle: a folder of plain files, written and taken back like any other link.

The files are package data beside this module, in `dsh/`. Must not know what is in them, but for the two JSON files,
which can't carry a stamp: they are ours when they name the bundle.
"""
from __future__ import annotations

import json
import os
import shlex

from engram import files
from engram.link import edits

NAME = "dsh-engram-session"
COMMENTS = {".js": ("// ", ""), ".md": ("<!-- ", " -->"), ".yml": ("# ", ""), ".json": None}
CONTENTS = ("package.json", "package-lock.json", "cordis.patch.yml", "index.js", "child.js", "protocol.js", "README.md", "AGENTS.md")


def bundle_edits(folder):
    """Return the edits that write the bundle into a folder."""
    return [edits.whole(os.path.join(folder, name), "bundle", files.package_data(f"link/dsh/{name}").decode("utf-8"),
                        comment=COMMENTS[os.path.splitext(name)[1]], ours=_names_the_bundle if name.endswith(".json") else None)
            for name in CONTENTS]


def next_steps(folder):
    """Return the lines that tell a person how the harness gets the bundle."""
    folder = shlex.quote(folder)
    return [f"cd {folder} && npm install", f"dsh plugin --profile web add {folder}"]


def _names_the_bundle(text):
    try:
        return json.loads(text).get("name") == NAME
    except (ValueError, AttributeError, RecursionError):
        return False
