"""Where a command works: the workspace, its store, the global store, the user's folder, the settings in force.

Finds and checks paths; creates nothing. Rules: store.md, "Where".
"""
from __future__ import annotations

import os

from engram.errors import Refused, UsageError, diagnostic
from engram.store import settings
from engram.store.vault import Store

STORE = os.path.join(".agents", ".engram")


class Place:
    """The surroundings of one call.

    `start` is the folder it was made from, `root` the workspace folder, `workspace` its Store (which may not
    exist yet), `global_` the global Store or None, `user_dir` and `config_dir` the user's folders (None when
    no home can be told), `env` the environment, `diagnostics` what was wrong on the way.
    """

    def __init__(self, start, env, global_only=False):
        self.start = os.path.abspath(start)
        self.env = env
        self.global_only = global_only
        self.diagnostics = []
        home = home_folder(env)
        self.user_dir = _folder(env.get("ENGRAM_DATA_DIR"), self.start) or (os.path.join(home, ".engram") if home else None)
        self.config_dir = _folder(env.get("ENGRAM_CONFIG_DIR"), self.start) or self.user_dir
        self.root = find_root(self.start, home)
        self.workspace = Store("workspace", os.path.join(self.root, STORE), boundary=self.root)
        self.workspace.user_dir = self.user_dir
        self._settings = None
        self._global = False

    @property
    def user_config(self):
        """The path of the user's settings file, or None."""
        return os.path.join(self.config_dir, settings.FILE) if self.config_dir else None

    @property
    def settings(self):
        """The Settings in force."""
        if self._settings is None:
            layers = [("user", self.user_config, True)] if self.user_config else []
            if not self.global_only:
                layers.insert(0, ("workspace", self._workspace_config(), False))
            self._settings = settings.Settings(layers)
        return self._settings

    def _workspace_config(self):
        try:
            return self.workspace.path(settings.FILE)
        except Refused as error:  # it says what it is of its store; it may not name a file elsewhere
            self.diagnostics.append(diagnostic("config.link", "warning", f"{error.message} The defaults are used.", file=error.file))
            return None

    def forget_settings(self):
        """Read the settings anew when they are next asked for."""
        self._settings, self._global = None, False

    @property
    def global_(self):
        """The global Store, or None when none is set; it may not exist yet."""
        if self._global is False:
            path = self.env.get("ENGRAM_GLOBAL_DIR") or self.settings.get("global_path")
            path = _folder(path, self.start)
            self._global = Store("global", path, boundary=path) if path else None
            if self._global is not None:
                self._global.user_dir = self.user_dir
        return self._global

    @property
    def stores(self):
        """The existing stores in reach, the workspace's first."""
        wanted = [self.global_] if self.global_only else [self.workspace, self.global_]
        return [store for store in wanted if store is not None and store.exists]

    @property
    def save_scope(self):
        """Where saves go: workspace, global or both (setting `scope`; by default both when a global store is set)."""
        if self.global_only:
            return "global"
        scope = self.settings.get("scope") or "both"
        return scope if self.global_ is not None or scope == "global" else "workspace"

    def store_of(self, scope):
        """Return the Store of a scope. Raises UsageError when it isn't there, saying what to run."""
        if scope == "workspace":
            if self.global_only:
                raise UsageError("the workspace store is out of reach with --global.")
            if not self.workspace.exists:
                raise UsageError(f"there is no store in {self.root}.", hint="Run engram inject to make one.")
            return self.workspace
        if self.global_ is None:
            raise UsageError("no global store is set.", hint="Set ENGRAM_GLOBAL_DIR, or: engram config set global_path DIR --user.")
        if not self.global_.exists:
            raise UsageError(f"the global store {self.global_.root} does not exist yet.", hint="Run engram inject --global to make it.")
        return self.global_

    def need_stores(self):
        """Return `stores`; raise UsageError with one line that says what to run when there is none."""
        found = self.stores
        if not found:
            self.store_of("global" if self.global_only else "workspace")
        return found

    def all_diagnostics(self):
        """What was found wrong with settings and paths so far."""
        return [*self.diagnostics, *self.settings.diagnostics]


def find(start=None, *, env=None, global_only=False):
    """Return the Place of a folder (default: the working directory)."""
    return Place(os.getcwd() if start is None else start, os.environ if env is None else env, global_only)


def find_root(start, home):
    """Return the workspace folder for a folder: see store.md, "Where".

    The nearest one upward that has a store, not above the Git top level or the home folder; else the Git top
    level; else the folder itself.
    """
    folder = start
    while True:
        if os.path.isdir(os.path.join(folder, STORE)) and (folder == start or _same_owner(folder, start)):
            return folder
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder or (home and folder == home):
            return start
        folder = parent


def _same_owner(folder, start):
    # in a folder that everybody may write, such as /tmp, a store above us may be another user's bait
    if not hasattr(os, "geteuid"):
        return True
    return os.stat(os.path.join(folder, STORE)).st_uid in (os.geteuid(), os.stat(start).st_uid)


def home_folder(env):
    """Return the user's home folder, or None when it can't be told or is none."""
    home = env.get("HOME") or env.get("USERPROFILE")
    if not home:
        home = os.path.expanduser("~")
    home = os.path.abspath(home) if os.path.isabs(home) else None
    return None if home in (None, "/", os.path.dirname(home)) else home


def no_global_note(place):
    """Return the diagnostic for a global store that is set and isn't there, or None."""
    if place.global_ is not None and not place.global_.exists:
        return diagnostic("store.global-missing", "warning", f"the global store {place.global_.root} does not exist.",
                          remediation="Run engram inject --global to make it.")
    return None


def _folder(path, start):
    if not path:
        return None
    path = os.path.expanduser(path)
    return os.path.abspath(path) if os.path.isabs(path) else os.path.abspath(os.path.join(start, path))
