"""How to start this very Engram again: for commands that run another one of it."""
from __future__ import annotations

import os
import sys


def own_command(env):
    """Return (words, environment) that start this very Engram again: the single file, or the package."""
    archive = getattr(__loader__, "archive", None)
    if archive:
        return [sys.executable, "-I", "-S", archive], env
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [sys.executable, "-m", "engram"], env | {"PYTHONPATH": package}
