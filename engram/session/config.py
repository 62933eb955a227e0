"""What a session host needs to be told, and what a child may see of the host's surroundings.

No ambient variable is needed: settings come through the config. Rules P2, P3 and P7 and the weak points 11, 12
and 17 of mem-tools.md, 6.
"""
from __future__ import annotations

import os
import re
import sys

from engram.errors import UsageError

SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}\Z")
CREDENTIAL_NAME = re.compile("^DSH_|TOKEN|KEY|SECRET|PASSW|PASSPHRASE|PASS$|CREDENTIAL|PRIVATE|AUTH(?!OR)|COOKIE|(^|_)PAT$")
CREDENTIAL_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s@]*:[^/\s@]+@")
FALLBACK_FOLDERS = ("~/.local/bin", "/usr/local/bin", "/opt/homebrew/bin")


class SessionConfig:
    """Settings of a SessionHost.

    server_name   in the public names of tools (`mcp__<server_name>__…`)
    binary        path or name of the server's program; '' looks for `engram` on PATH and in the usual folders
    command       words that start the server instead of `binary` (a list; `args` follow)
    args          arguments of the server
    timeout       seconds that a call may take
    connect_timeout  seconds until the handshake and the tool list must be there
    env           variables to set for children, over the host's own; None takes the host's alone
    stderr        "inherit", or "log" to read it and log it at debug level
    pool          share children by (folder, settings), at most this many; 0 gives each agent its own
    idle          seconds after which a pooled child without agents is closed
    backoff, backoff_most, tries, fresh_after   how a child that died is started again: pause in seconds, doubling up
                  to the most; so many tries; the count begins anew after so many seconds of uptime
    grace         seconds that a child has to end after its input closed, and again after SIGTERM
    """

    def __init__(self, *, server_name="engram", binary="", command=None, args=("mcp",), timeout=60.0, connect_timeout=30.0, env=None,
                 stderr="inherit", pool=0, idle=600.0, backoff=0.5, backoff_most=30.0, tries=10, fresh_after=30.0, grace=2.0):
        if not SERVER_NAME.match(server_name):
            raise UsageError(f"server_name {server_name!r} must be 1 to 32 letters, digits, `_` or `-`.")
        if stderr not in ("inherit", "log"):
            raise UsageError(f"stderr must be inherit or log, not {stderr!r}.")
        self.server_name = server_name
        self.binary = binary
        self.command = list(command) if command else None
        self.args = list(args)
        self.timeout = timeout
        self.connect_timeout = connect_timeout
        self.env = dict(env) if env is not None else {}
        self.stderr = stderr
        self.pool = pool
        self.idle = idle
        self.backoff = backoff
        self.backoff_most = backoff_most
        self.tries = tries
        self.fresh_after = fresh_after
        self.grace = grace


def resolve(config, env, *, platform=sys.platform):
    """Return (words that start the server or None, warning or None); looked up once, when the host opens."""
    if config.command:
        return [*config.command, *config.args], None
    names = ("engram.exe", "engram.cmd") if platform == "win32" else ("engram",)
    folders = [os.path.abspath(folder) for folder in env.get("PATH", "").split(os.pathsep) if folder]
    warning = None
    if config.binary:
        found = _program(config.binary, folders)
        if found:
            return [found, *config.args], None
        warning = f"{config.binary} is not a program; looking for engram instead"
    if platform != "win32":
        folders += [os.path.expanduser(folder) for folder in FALLBACK_FOLDERS]
    for folder in folders:
        for name in names:
            found = _program(os.path.join(folder, name), [])
            if found:
                return [found, *config.args], warning
    return None, (warning + "; " if warning else "") + "no engram program was found, so agents get no memory tools"


def child_environment(config, env):
    """Return the environment of a child: the host's and the config's, without what looks like a credential.

    Dropped: names that start with `DSH_`, names with a credential word anywhere in them, and values that are
    URLs with a password.
    """
    return {name: value for name, value in {**env, **config.env}.items() if not is_credential(name, value)}


def is_credential(name, value):
    """Whether a variable must not reach a child (rule P7, and its gaps in weak point 11)."""
    return bool(CREDENTIAL_NAME.search(name.upper()) or CREDENTIAL_URL.search(value))


def _program(path, folders):
    """Return the absolute path of a program, or None; a bare name is looked for in `folders` (weak point 12)."""
    if os.sep not in path and not os.path.isabs(path):
        for folder in folders:
            found = _program(os.path.join(folder, path), [])
            if found:
                return found
        return None
    path = os.path.abspath(os.path.expanduser(path))
    return path if os.path.isfile(path) and os.access(path, os.X_OK) else None
