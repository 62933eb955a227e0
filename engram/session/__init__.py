"""The host side of session memory: one MCP server per agent session, whose tools that agent alone has.

For any Python harness (session.md). Must not know the store. Standard library and asyncio, no global state.

    async with SessionHost(config, on_register=…, on_unregister=…) as host:
        await host.start(agent_id, cwd)
        result = await host.call(agent_id, "mcp__engram__mem_save", {…})
        await host.stop(agent_id)
"""
from engram.session.child import ChildError, ToolFailed, ToolTimeout
from engram.session.config import SessionConfig
from engram.session.host import SessionHost

__all__ = ["ChildError", "SessionConfig", "SessionHost", "ToolFailed", "ToolTimeout"]
