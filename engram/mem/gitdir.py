"""What a Git folder says of itself, read from its files: no process is started.

Must not know projects. Linked worktrees share one common folder (case PJ-01), a submodule belongs to the
repository around it (case PJ-02), so that neither splits a project.
"""

from __future__ import annotations

import os
from collections import namedtuple

from engram import files
from engram.errors import StorageError

LARGEST = 1 << 20  # bytes of a config file that we read

# root: top folder of the working tree; common: the Git folder that all its worktrees share; name: of the
# repository by its folder; origin: the remote's url or "".
Repository = namedtuple("Repository", "root common name origin")


class Broken(Exception):
    """A `.git` that leads nowhere; the message says which file and where it points."""


def find(folder):
    """Return the Repository around `folder` (of submodules: the outermost), None without. Raises Broken."""
    root = top(folder)
    if root is None:
        return None
    git, common = _folders(root)
    while _is_submodule(git):
        outer = top(os.path.dirname(root))
        if outer is None:
            break
        root = outer
        git, common = _folders(root)
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    name = os.path.basename(main)
    return Repository(root, common, name[:-4] if name.endswith(".git") else name, _origin(os.path.join(common, "config")))


def top(folder):
    """Return the nearest folder from `folder` upwards that has a `.git`, or None."""
    folder = os.path.realpath(folder)
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def repository_name(url):
    """Return the name in a remote's url: what follows the last `/` or `:`, without `.git`."""
    name = url.strip().rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    return name[:-4] if name.endswith(".git") else name


def identity(common):
    """Return a text that tells this Git folder from another one made later at the same path."""
    for name in ("description", os.path.join("info", "exclude"), "hooks", "HEAD"):
        try:
            seen = os.stat(os.path.join(common, name))
        except OSError:
            continue
        return f"{name}:{seen.st_ino}:{seen.st_mtime_ns if name != 'HEAD' else 0}"
    return ""


def _folders(root):
    # the Git folder of a working tree, and the common folder behind it
    dot = os.path.join(root, ".git")
    if os.path.isdir(dot):
        git = os.path.realpath(dot)
    else:
        text = _text(dot)
        if not text.startswith("gitdir:"):
            raise Broken(f"{dot} is neither a folder nor a pointer to one.")
        git = os.path.realpath(os.path.join(root, text[7:].strip()))
        if not os.path.isdir(git):
            raise Broken(f"{dot} points to {git}, which does not exist.")
    shared = os.path.join(git, "commondir")
    common = os.path.realpath(os.path.join(git, _text(shared).strip())) if os.path.isfile(shared) else git
    return git, common


def _is_submodule(git):
    # <…>/.git/modules/<name>, also below a linked worktree's own folder
    parts = git.replace("\\", "/").split("/")
    return (
        "modules" in parts
        and ".git" in parts[: parts.index("modules")]
        or ("modules" in parts and any(os.path.isfile("/".join(parts[:n]) + "/HEAD") for n, part in enumerate(parts) if part == "modules"))
    )


def _origin(path):
    # Git's config grammar as far as one url needs it: sections, comments, quoted values, no includes
    inside, url = False, ""
    for line in _text(path, missing="").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line[1:].split("]", 1)[0].replace("\t", " ").strip()
            inside = section.lower().startswith("remote ") and section[7:].strip().strip('"') == "origin"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            key, value = line.split("=", 1)
            if key.strip().lower() == "url":
                url = value.strip().split(" #")[0].split(" ;")[0].strip().strip('"')
    return url


def _text(path, missing=None):
    try:
        data = files.read_regular(path, limit=LARGEST)  # never waits on a pipe that somebody put there
        if data is None:
            raise StorageError("there is no such file.")
        return data.decode("utf-8", "replace")
    except StorageError as error:
        if missing is not None:
            return missing
        raise Broken(f"{path} can't be read: {error.message}") from None
