"""Where a link is made: this machine and this user, as plans see them. Must not know the store, nor change anything."""
from __future__ import annotations

import os
import shutil
import sys

import engram
from engram.hosts import table
from engram.link import launcher

# Where npx and uvx put a program for one run: being on PATH there says nothing about the next run.
PASSING = tuple(part.replace("/", os.sep) for part in ("/_npx/", "/uv/archive-", "/uv/cache/", "/pipx/.cache/"))


class Site:
    """`user` is True for a user-level link, `refresh` for an upgrade, which touches only what is there already.

    `archive` is the single file that runs, or None. All paths are absolute.
    """

    __slots__ = ("archive", "env", "folders", "home", "platform", "python", "refresh", "user", "user_dir", "version", "workspace")

    def __init__(self, workspace, user_dir, env, *, user=False, refresh=False, platform=sys.platform, archive=None,
                 python=sys.executable):
        self.workspace = workspace
        self.user_dir = user_dir
        self.env = env
        self.user = user
        self.refresh = refresh
        self.platform = platform
        self.archive = archive
        self.python = python
        self.version = engram.__version__
        self.home = env.get("USERPROFILE" if platform == "win32" else "HOME") or os.path.expanduser("~")
        self.folders = table.folders(env, self.home, workspace)

    def path(self, template):
        """Return the path that a template of the host table stands for here."""
        return table.path(template, self.folders)

    def which(self, name):
        """Return the path of a program on PATH, or None; one that is there for this run alone doesn't count."""
        words = [word for word in (self.env.get("PATH") or "").split(os.pathsep)
                 if os.path.isabs(word) and not any(part in word + os.sep for part in PASSING)]
        return shutil.which(name, path=os.pathsep.join(words)) if words else None

    def keeps(self, words):
        """Return whether a hook that was found, started by `words`, may stay as it is: it still runs, and on an upgrade also
        is how it would be written now. Some hosts trust a hook by its exact text (link.md, Hooks)."""
        program = words[-1] if words else ""
        if program and os.path.basename(program) == program:
            return self.which(program) is not None
        return os.path.isfile(program) and (not self.refresh or list(words) == launcher.hook_words(self))

    def here(self, host):
        """Return whether a host is on this machine: its program on PATH, or its user folder."""
        return any(self.which(name) for name in host.programs) or bool(host.folder) and os.path.isdir(self.path(host.folder))

    @property
    def foreign_home(self):
        """Whether this is WSL and the home folder lies on the Windows side (case CR-10)."""
        words = self.home.split("/")
        return bool(self.env.get("WSL_DISTRO_NAME")) and words[:2] == ["", "mnt"] and len(words) > 2 and len(words[2]) == 1


def archive():
    """Return the path of the single file that runs now, or None (a checkout, an installed package)."""
    return getattr(engram.__loader__, "archive", None)
