"""Project names: their canonical form, what a caller may say, and which names look alike.

Pure; must not know folders or the database. Canonical is lower case, trimmed, with runs of `-` or of `_`
made one; `-` and `_` stay different (mem-tools.md 2.1).
"""

from __future__ import annotations

import re
import unicodedata

from engram.mem import limits
from engram.mem.refusals import Refusal


def canonical(name):
    """Return the canonical form of a project name."""
    return re.sub("(-|_)\\1+", r"\1", unicodedata.normalize("NFC", name).strip().lower())


def spoken(name, *, argument="project"):
    """Return the canonical form of a name that a caller gave. Raises Refusal (invalid_project; case SE-05)."""
    made = canonical(name)
    problem = None
    if not made:
        problem = "is empty"
    elif len(name) > limits.NAME:
        problem = f"has {len(name):,} characters, the limit is {limits.NAME}"
    elif "/" in made or "\\" in made:
        problem = "has a path separator; a project is a name, not a folder"
    elif made.strip(".") == "" or not made.isprintable():
        problem = "is not a name"
    if problem:
        raise Refusal("invalid_project", f"`{argument}` {problem}.", hint="mem_list_projects lists the names in use.")
    return made


def from_folder(name):
    """Return a project name for the name of a folder or repository, "" when nothing of it can be one."""
    made = canonical("".join("-" if char in "/\\" or not char.isprintable() else char for char in name))
    return made[: limits.NAME] if made.strip(".-_ ") else ""


def same_but_for_separators(one, other):
    """Tell whether two names differ only in case, blanks around, or `-` against `_` at the same places."""
    return canonical(one).replace("_", "-") == canonical(other).replace("_", "-")


def similar(name, known):
    """Return the known names that look like `name`: at most 3 edits away, one inside the other, or near spelling."""
    found = []
    for other in known:
        if other == name:
            continue
        inside = len(name) > 2 and len(other) > 2 and (name in other or other in name)
        if inside or same_but_for_separators(name, other) or _edits(name, other, min(3, max(len(name), len(other)) // 2)):
            found.append(other)
    return found


def _edits(one, other, most):
    # whether the edit distance is at most `most`: the rows of the usual table, left early
    if abs(len(one) - len(other)) > most or most < 1:
        return False
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        above, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
        if min(row) > most:
            return False
    return row[-1] <= most
