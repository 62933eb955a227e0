"""Two surfaces served as one (`engram mcp --surface all`). Must not know what either of them does."""
from __future__ import annotations

from engram.server.tool import Surface


class Joined(Surface):
    """The tools of two surfaces under the name of the first; its resources and prompts, both sides' hooks."""

    def __init__(self, first, second, instructions):
        self._sides = (first, second)
        self._owner = {tool.name: side for side in self._sides for tool in side.tools}
        self.name, self.version, self.title = first.name, first.version, first.title
        self.instructions = instructions
        self.tools = (*first.tools, *second.tools)
        self.resources, self.prompts = first.resources, first.prompts
        self.wants_roots = first.wants_roots or second.wants_roots

    def initialised(self, client):
        for side in self._sides:
            side.initialised(client)

    def asking_roots(self):
        for side in self._sides:
            side.asking_roots()

    def rooted(self, roots):
        for side in self._sides:
            side.rooted(roots)

    def lane(self, name):
        return self._owner[name].lane(name) if name in self._owner else None

    def needs_roots(self, tool, arguments):
        return self._owner[tool.name].needs_roots(tool, arguments)

    def refused(self, tool, arguments, problem):
        return self._owner[tool.name].refused(tool, arguments, problem)

    def failed(self, tool, arguments, error):
        return self._owner[tool.name].failed(tool, arguments, error)

    def called(self):
        for side in self._sides:
            side.called()

    def ending(self):
        for side in self._sides:
            side.ending()

    def close(self):
        for side in self._sides:
            side.close()
