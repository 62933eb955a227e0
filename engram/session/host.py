"""A host for harnesses: each agent gets a memory server in its own folder, and nobody else's tools.

Composes agents, children and the harness's callbacks. Rules P4 to P16 of mem-tools.md and its weak points.
"""
from __future__ import annotations

import asyncio
import inspect
import logging
import os

from engram.errors import NotFound
from engram.session import guide
from engram.session.agent import Agent
from engram.session.child import ChildError, ToolFailed, open_child
from engram.session.config import SessionConfig, child_environment, is_credential, resolve
from engram.session.names import render
from engram.session.pool import Pool


class CallResult:
    """What a tool answered: `content` (blocks), `structured` (or None), `text` (for a model)."""

    __slots__ = ("content", "structured", "text")

    def __init__(self, raw, result):
        self.content = result.get("content") if isinstance(result.get("content"), list) else []
        self.structured = result.get("structuredContent")
        self.text = render(raw, {"content": self.content, "structuredContent": self.structured})


class SessionHost:
    """Serves agents until it is closed.

    `on_register(agent_id, definition)` and `on_unregister(agent_id, definition)` are called for each tool, one after
    the other, and may be coroutines; a failure half-way through a registration withdraws what was registered.
    `env` is the environment that children are made from (default: the process's own).
    """

    def __init__(self, config=None, *, on_register=None, on_unregister=None, env=None, log=None):
        self.config = config or SessionConfig()
        self.on_register = on_register
        self.on_unregister = on_unregister
        self.log = log or logging.getLogger("engram.session")
        self._env = os.environ if env is None else env
        self._agents = {}
        self._leaving = {}
        self.pool = None
        self._words = None
        self._open = False

    async def __aenter__(self):
        self._words, warning = resolve(self.config, self._env)
        if warning:
            self.log.warning("engram session: %s", warning)
        dropped = sorted(name for name, value in self.config.env.items() if is_credential(name, value))
        if dropped:
            self.log.warning("engram session: not given to children, since they look like credentials: %s", ", ".join(dropped))
        self.pool = Pool(self.config, self._words, self._open_child)
        self._open = True
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        """Stop every agent and every child; when this returns no process of ours is left."""
        self._open = False
        await asyncio.gather(*(self.stop(agent_id) for agent_id in list(self._agents)))
        await asyncio.gather(*(agent.stop() for agent in list(self._leaving.values())))
        await self.pool.close()

    @property
    def protocol(self):
        """The Memory Protocol as a prompt section (name, order, text); None while no agent has the tools."""
        for agent in self._agents.values():
            if agent.definitions:
                return self.protocol_for(agent.id)
        return None

    def protocol_for(self, agent_id):
        """The section for one agent, which names its tools; None when it has none."""
        return guide.section({tool.raw: tool.name for tool in self.tools(agent_id)})

    async def start(self, agent_id, cwd):
        """Give an agent its memory tools. Returns whether it has them; the reason is logged as one warning.

        Not retried (P15). A second start of an agent that is there changes nothing and waits for the first.
        """
        if not self._open:
            raise ChildError("the session host is not open.")
        agent = self._agents.get(agent_id)
        if agent is None:
            if not isinstance(cwd, (str, os.PathLike)) or not os.fspath(cwd).strip():
                self.log.debug("engram session: agent %s has no working folder, so no memory tools", agent_id)
                return False
            if self._words is None:
                self.log.debug("engram session: agent %s gets no memory tools: no program", agent_id)
                return False
            agent = self._agents[agent_id] = Agent(self, agent_id, os.path.abspath(os.fspath(cwd)), self._leaving.get(agent_id))
        return await asyncio.shield(agent.ready)

    async def stop(self, agent_id):
        """Withdraw an agent's tools and end its child; an unknown agent is fine."""
        agent = self._agents.pop(agent_id, None)
        if agent is not None:
            self._leaving[agent_id] = agent
            await agent.stop()

    def tools(self, agent_id):
        """Return the Definitions that are registered for an agent."""
        agent = self._agents.get(agent_id)
        return list(agent.definitions) if agent else []

    async def call(self, agent_id, name, arguments=None, *, timeout=None):
        """Call a tool by its public name and return a CallResult.

        While the agent's server is started again, the call waits for it, within `timeout` seconds (default: the
        config's). Raises NotFound, ToolFailed, ToolTimeout, ChildError.
        """
        agent = self._agents.get(agent_id)
        if agent is None:
            raise NotFound(f"agent {agent_id} has no memory server.")
        raw = agent.raw_name(name)
        timeout = self.config.timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        child = await agent.running(timeout)
        result = await child.call(raw, arguments, timeout=max(0.001, deadline - loop.time()))
        made = CallResult(raw, result)
        if result.get("isError"):
            raise ToolFailed(made.text, made)
        return made

    def forget(self, agent):
        """Drop an agent that gave up or has left."""
        for rows in (self._agents, self._leaving):
            if rows.get(agent.id) is agent:
                del rows[agent.id]

    async def callback(self, callback, agent_id, definition):
        """Call one of the harness's functions and wait for it if it is a coroutine."""
        if callback is not None:
            answer = callback(agent_id, definition)
            if inspect.isawaitable(answer):
                await answer

    async def _open_child(self, cwd):
        return await open_child(self._words, cwd, child_environment(self.config, self._env), log=self.log, stderr=self.config.stderr,
                                grace=self.config.grace)
