"""One process's view of the session tier: its database, where it was started, what was said to it so far.

Holds state and nothing else; what is done with it is in the other modules. Must not know MCP or terminals.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress

from engram.errors import EngramError
from engram.mem import names, sessions
from engram.mem.database import Database
from engram.store import places


class Tier:
    """`folder` is where the process works, `override` the project of --project or ENGRAM_PROJECT ("" without).

    `manual` says that a person saves by hand, whose saves share one session per project. `roots` are the client's root
    folders, `session_id` a session that an agent registered in this process, `made` the sessions we made ourselves by
    project, `choices` what was picked among several projects, `tokens` the open questions for that, `prompts` the last
    prompt per session, `activity` what the reminder to save needs.
    """

    def __init__(
        self, *, folder=None, env=None, override="", user_dir=None, clock=time.time, patience=None, ignore_override=False, manual=False
    ):
        self.env = os.environ if env is None else env
        self.folder = os.path.abspath(folder) if folder else _here()
        self.clock = clock
        self.started = clock()
        self.override = (
            "" if ignore_override else (_override(override, "--project") or _override(self.env.get("ENGRAM_PROJECT", ""), "ENGRAM_PROJECT"))
        )
        home = places.home_folder(self.env)
        self.user_dir = user_dir or places.find(self.folder, env=self.env).user_dir
        self.common_folders = {
            os.path.realpath(folder): what
            for folder, what in (
                ("/tmp", "the folder for temporary files"),
                (self.env.get("TMPDIR"), "the folder for temporary files"),
                (home, "the home folder"),
            )
            if folder
        }
        self._database = None
        self._patience = patience
        self._roots = []
        self._call = threading.local()
        self.session_id = ""
        self.manual = manual
        self.made = {}
        self.choices = {}
        self.tokens = {}
        self.prompts = {}
        self.activity = Activity(self.started)

    @property
    def roots(self):
        """The client's root folders: those that came with this thread's call, else those of the process."""
        given = getattr(self._call, "roots", None)
        return self._roots if given is None else given

    @roots.setter
    def roots(self, paths):
        self._roots = paths

    @contextmanager
    def with_roots(self, paths):
        """Use other roots in this thread while in the block; None changes nothing."""
        self._call.roots = paths
        try:
            yield
        finally:
            self._call.roots = None

    @property
    def database(self):
        """The Database; made when first asked for."""
        if self._database is None:
            self._database = Database(self.user_dir, **({} if self._patience is None else {"patience": self._patience}))
        return self._database

    def place(self, folder=None):
        """Return the Place of a folder (default: where the process works), for the durable memories there."""
        return places.find(folder or self.folder, env=self.env)

    def make_token(self):
        """Return a fresh token for an open question; forgets those that are too old."""
        now = self.clock()
        self.tokens = {key: row for key, row in self.tokens.items() if row[0] >= now}
        return os.urandom(16).hex()

    def close(self):
        """End the sessions that this process made for itself, if the database is free, and close it."""
        if self._database is not None:
            if self.made:
                with suppress(EngramError), self._database.writing(given_up=lambda: True) as connection:
                    for id in list(self.made.values()):
                        sessions.end(self, connection, id, None)
            self._database.close()


class Activity:
    """Counts calls and saves of this process, for the reminder of mem-tools.md 2.11 and the activity line of summaries."""

    __slots__ = ("calls", "last_save", "saves", "started")

    def __init__(self, started):
        self.started = started
        self.calls = 0
        self.saves = 0
        self.last_save = None


def _here():
    try:
        return os.getcwd()
    except OSError:  # the folder was removed under us: the root has no project, so a save asks for one
        return os.sep


def _override(name, argument):
    return names.spoken(name, argument=argument) if name.strip() else ""
