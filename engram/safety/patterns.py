"""Regular expressions that cost nothing until they are used. Must not know what they look for."""
from __future__ import annotations

import re

METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "split")


class Pattern:
    """A regular expression that is compiled when it is first used, and as quick as a compiled one after that.

    Compiling all of the tables takes 30 ms, which a server would pay before it answers its first request.
    """

    def __init__(self, source, flags=0):
        self._source, self._flags = source, flags

    def __getattr__(self, name):  # asked only for what is not there yet
        if name not in METHODS:
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        for method in METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
