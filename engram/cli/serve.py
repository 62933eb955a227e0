"""`engram mcp` for those who ask what it is: `__main__` starts the server itself, and comes here for the help."""
from __future__ import annotations

from engram.errors import UsageError


def options_mcp(parser):
    parser.add_argument("--surface", choices=("mem", "engram", "all"), default="mem",
                        help="which tools: session memory (default), durable memory, both")
    parser.add_argument("--tools", metavar="LIST", help="mem_* tools by profile (agent, admin, all) and name, with commas")
    parser.add_argument("--project", metavar="NAME", help="the project of a session that doesn't name one")
    parser.add_argument("--always-load", action="store_true", help="mark engram_load to be loaded always (Claude Code)")
    parser.add_argument("--no-elicitation", action="store_true", help="approve in the chat, even where the host has dialogs")


def run_mcp(context, args):
    """Say how the server is started; it can't be with options before its name."""
    raise UsageError("write `mcp` first: engram mcp …")
