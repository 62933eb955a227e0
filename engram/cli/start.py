"""`engram inject`: make a store. Changes nothing but the store and the record that its owner was here."""
from __future__ import annotations

import os

from engram.errors import Result, UsageError
from engram.store import trust, writing


def run_inject(context, args):
    """Make the workspace's store, or the global one with `--global`; run again, it changes nothing."""
    place = context.place
    if place.global_only:
        store = place.global_
        if store is None:
            raise UsageError("no global store is set.", hint="Set ENGRAM_GLOBAL_DIR, or: engram config set global_path DIR --user.")
    else:
        store = place.workspace
        if place.user_dir and os.path.realpath(store.root) == os.path.realpath(place.user_dir):
            raise UsageError(f"{store.root} is your own Engram folder.", hint="Run this in a project.")
    fresh = writing.make(store)
    notes = place.all_diagnostics()
    if store.scope == "workspace":
        notes += trust.trust_workspace(place)
    data = {"store": store.root, "scope": store.scope, "created": fresh}
    if not fresh:
        return Result(data, f"{store.root} is there already; nothing changed.", notes)
    text = (f"Made {store.root}\n"
            "  .gitignore keeps derived and local files out of Git; commit the rest.\n\n"
            "Next:\n"
            '  engram save "Run the tests before a release."   propose a first memory\n'
            "  engram link list                                the hosts that Engram can be linked to\n"
            "  engram link all                                 link those found on this machine")
    return Result(data, text, notes)
