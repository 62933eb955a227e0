"""Who signs a memory: the user's setting, else Git, else nobody (store.md, "A memory file").

Runs `git config`, the one program that reading a store ever starts, and only for a save.
"""
from __future__ import annotations

from engram.errors import diagnostic
from engram.store.settings import is_address

UNKNOWN = ("Unknown", "unknown@localhost")


def author(place):
    """Return ((name, email), diagnostics). Never fails for want of one."""
    chosen = place.settings.get("author")
    if chosen:
        return (_clean(chosen["name"]), chosen["email"]), []
    name = place.env.get("GIT_AUTHOR_NAME") or _git(place, "user.name")
    email = place.env.get("GIT_AUTHOR_EMAIL") or _git(place, "user.email")
    if name and email and is_address(email) and _clean(name):
        return (_clean(name), email), []
    note = diagnostic("author.unknown", "info", "nobody is set as the author, so `Unknown` is written.",
                      remediation='Run engram config set author "Name <address>" --user, or set user.name and user.email in Git.')
    return UNKNOWN, [note]


def _git(place, key):
    import subprocess  # 8 ms that only a save needs; the server has this module loaded before it answers

    try:
        done = subprocess.run(["git", "config", "--get", key], cwd=place.root, env=dict(place.env), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def _clean(name):
    return "".join(c for c in name if c.isprintable()).strip()[:200]
