"""Which project a folder belongs to, from the folder alone (the table of mem-tools.md 2.1).

Reads `.engram/config.json`, Git's files and one level of folder names; must not know the database, callers or
sessions. What a caller said, and what was bound before, is `projects`.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple

from engram import files
from engram.errors import StorageError
from engram.mem import gitdir, names
from engram.mem.refusals import Refusal

CONFIG = os.path.join(".engram", "config.json")
LARGEST_CONFIG = 65_536
MOST_CHILDREN = 2_000  # folders of one parent that are looked into
SKIPPED = frozenset(("node_modules", "vendor", "venv", "__pycache__", "target", "dist", "build"))

# project: canonical name, "" when there is none; source: of mem-tools.md 1.2; path: the folder that gave it;
# git_dir: the common Git folder or None; candidates: {name: folder} of an ambiguous parent.
Found = namedtuple("Found", "project source path warning git_dir candidates", defaults=(None, None, None))


def detect(folder, *, common=(), children=True):
    """Return the Found of a folder. Raises Refusal (invalid_project_config, repository_binding_unavailable).

    `common` maps real paths of folders that hold a person's or everybody's things to what they are: their names say
    nothing about the work (case PJ-04). `children=False` leaves out the look into subfolders: for a folder that an agent
    named (case SE-05).
    """
    folder = os.path.realpath(folder)
    try:
        repository = gitdir.find(folder)
    except gitdir.Broken as error:
        configured = _configured(folder, gitdir.top(folder))
        if configured:
            return configured
        raise Refusal("repository_binding_unavailable", str(error), hint="Repair the repository, or pass `project`.") from None
    configured = _configured(folder, repository and repository.root)
    if configured:
        return configured
    if repository:
        name = names.from_folder(gitdir.repository_name(repository.origin)) if repository.origin else ""
        if name:
            return Found(name, "git_remote", repository.root, git_dir=repository.common)
        name = names.from_folder(repository.name)
        if name:
            what = dict(common).get(repository.root)
            warning = f"{repository.root}, {what}, is a repository; its name is only a fallback." if what else None
            return Found(name, "git_root", repository.root, warning, repository.common)
    place = "the root of the file system" if os.path.dirname(folder) == folder else dict(common).get(folder)
    below = _children(folder) if children else {}
    if len(below) > 1:
        return Found("", "ambiguous", folder, candidates=below)
    if below and not place:
        ((name, path),) = below.items()
        return Found(
            name,
            "git_child",
            path,
            f"{folder} is no repository itself; the only one in it, {os.path.basename(path)}, was taken.",
            git_dir(path),
        )
    name = names.from_folder(os.path.basename(folder))
    if place:
        warning = (
            f"{folder} is {place}, not a project; its name is only a fallback. Start in a project folder, pass `project`, "
            "or set --project or ENGRAM_PROJECT."
        )
    elif not name:
        warning = f"{folder} has no name that a project could have. Pass `project`, or set --project or ENGRAM_PROJECT."
    else:
        warning = None
    return Found(name, "dir_basename", folder, warning)


def among_roots(roots, folder, *, common=()):
    """Return the Found for a client's roots (paths): the one that holds `folder`, else the only one, else all as candidates."""
    folder = os.path.realpath(folder)
    real = [os.path.realpath(root) for root in roots]
    holding = [root for root in real if folder == root or folder.startswith(root.rstrip(os.sep) + os.sep)]
    chosen = [max(holding, key=len)] if holding else list(dict.fromkeys(real))
    found = [detect(root, common=common) for root in chosen]
    if len({row.project for row in found}) == 1 and len(found[0].candidates or {}) == 0:
        return found[0]
    candidates = {}
    for row in found:
        candidates.update(row.candidates or {row.project: row.path})
    return Found("", "ambiguous", folder, candidates=dict(sorted(candidates.items())))


def _configured(folder, root):
    # the nearest config from the folder up to the root of the working tree; outside Git only the folder's own
    while True:
        path = os.path.join(folder, CONFIG)
        if os.path.lexists(path):
            return Found(_project_name(path), "config", folder)
        if root is None or folder == root or os.path.dirname(folder) == folder:
            return None
        folder = os.path.dirname(folder)


def _project_name(path):
    try:
        value = json.loads((files.read_regular(path, limit=LARGEST_CONFIG) or b"").decode("utf-8-sig"))
        name = value["project_name"]
        if not isinstance(name, str):
            raise ValueError("`project_name` is not a text")
        return names.spoken(name, argument="project_name")
    except KeyError:
        problem = "it has no `project_name`"
    except (TypeError, RecursionError):
        problem = "it is not a JSON object"
    except Refusal as error:
        problem = error.message.rstrip(".")
    except (ValueError, StorageError) as error:
        problem = str(error).rstrip(".")
    raise Refusal("invalid_project_config", f"{path}: {problem}.", hint='It should be {"project_name": "my-project"}.', config_path=path)


def _children(folder):
    # {project: path} of the repositories one level below, sorted by name
    found = {}
    try:
        with os.scandir(folder) as rows:
            for number, row in enumerate(rows):
                if number >= MOST_CHILDREN:
                    break
                if row.name.startswith(".") or row.name in SKIPPED or not os.path.lexists(os.path.join(row.path, ".git")):
                    continue
                name = _child_project(row.path)
                if name:
                    found.setdefault(name, row.path)
    except OSError:
        return {}
    return dict(sorted(found.items()))


def _child_project(path):
    try:
        return detect(path, children=False).project
    except Refusal:
        return names.from_folder(os.path.basename(path))


def git_dir(path):
    """Return the common Git folder of a path, or None."""
    try:
        repository = gitdir.find(path)
    except gitdir.Broken:
        return None
    return repository and repository.common
