"""Start a server: its options, its surface, everything imported that a call may need. Knows nothing of messages.

An option that is not known never stops the server: hosts keep command lines for years (mcp.md, Starting it).
"""
from __future__ import annotations

import os

from engram.server import ready, stdio
from engram.store import word_table

LOADED = ready  # before the first answer
SURFACES = ("engram", "mem", "all")
FLAGS = ("--always-load", "--no-elicitation")
VALUES = ("--surface", "--tools", "--project")


class Options:
    """What the command line asks for: `always_load`, `no_elicitation`, `surface`, `tools`, `project`; `unknown` words."""

    __slots__ = ("always_load", "no_elicitation", "project", "surface", "tools", "unknown")

    def __init__(self, argv, surface):
        self.always_load = self.no_elicitation = False
        self.surface, self.tools, self.project = surface, None, None
        self.unknown = []
        left = list(argv)
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            if word in FLAGS:
                setattr(self, _attribute(word), True)
            elif name in VALUES and (equals or left):
                setattr(self, _attribute(name), value if equals else left.pop(0))
            else:
                self.unknown.append(word)
        if self.surface not in SURFACES:
            self.unknown.append(f"--surface={self.surface}")
            self.surface = surface


def run(argv, surface):
    """Serve with the options of `argv`, `surface` being the default one; return the exit code."""
    options = Options(argv, surface)
    if options.unknown:
        stdio.note(f"engram: ignored, not known here: {' '.join(options.unknown)}")
    word_table.opened()  # opens the word table: its descriptor stays good when the file is replaced
    return stdio.serve(_surface(options), workspace=_here(), elicit=not options.no_elicitation)


def _surface(options):
    # Imported by surface: the session tier's database is nothing that `engram-mcp` should wait for.
    if options.surface == "engram":
        from engram.server.engram_tools import EngramSurface

        return EngramSurface(always_load=options.always_load, follow=True)
    from engram.server.mem_tools import BOTH, MemSurface

    mem = MemSurface(tools=options.tools, project=options.project, note=stdio.note)
    if options.surface == "mem":
        return mem
    from engram.server.engram_tools import EngramSurface
    from engram.server.joined import Joined

    return Joined(EngramSurface(always_load=options.always_load, follow=True), mem, BOTH)


def _here():
    try:
        return os.path.realpath(os.getcwd())
    except OSError:  # the folder was removed under us
        return ""


def _attribute(option):
    return option[2:].replace("-", "_")
