"""`engram session run|check`: one call through a session host, and what a host would register for a folder."""
from __future__ import annotations

import asyncio
import json

from engram.cli.own import own_command
from engram.errors import NotFound, Result, UsageError
from engram.session import ChildError, SessionConfig, SessionHost
from engram.session.names import public_name

AGENT = "terminal"


def options_session(parser):
    parser.add_argument("action", choices=("run", "check"), help="run: call one tool; check: print what a host would register")
    parser.add_argument("tool", nargs="?", help="the tool to call, by its own or its public name (for run)")
    parser.add_argument("arguments", nargs="?", default="{}", help="the tool's arguments as a JSON object (for run)")
    parser.add_argument("--cwd", metavar="DIR", help="the agent's working folder (default: this one)")
    parser.add_argument("--server-name", default="engram", help="the server's name in public tool names (default: engram)")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds that the call may take (default: 60)")


def run_session(context, args):
    """Start a host with one agent in the folder, do what was asked, stop it."""
    if args.action == "run" and not args.tool:
        raise UsageError("which tool should be called?", hint="engram session check lists them.")
    try:
        arguments = json.loads(args.arguments)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the arguments are not JSON: {error}.") from None
    if not isinstance(arguments, dict):
        raise UsageError("the arguments must be a JSON object.")
    words, env = own_command(dict(context.env))
    config = SessionConfig(server_name=args.server_name, command=words, timeout=args.timeout, stderr="log")
    return asyncio.run(_with_host(config, env, args.cwd or context.cwd, args, arguments))


async def _with_host(config, env, cwd, args, arguments):
    async with SessionHost(config, env=env) as host:
        if not await host.start(AGENT, cwd):
            raise ChildError("the memory server did not start.", hint="Run engram mem doctor to see why.")
        if args.action == "check":
            return _check(host)
        tools = {tool.name: tool for tool in host.tools(AGENT)}
        name = args.tool if args.tool in tools else public_name(config.server_name, args.tool)
        if name not in tools:
            raise NotFound(f"there is no tool `{args.tool}`.", hint="engram session check lists them.")
        answer = await host.call(AGENT, name, arguments)
        return Result({"tool": name, "content": answer.content, "structuredContent": answer.structured}, answer.text)


def _check(host):
    tools, section = host.tools(AGENT), host.protocol
    width = max(len(tool.name) for tool in tools)
    lines = [f"{tool.name:{width}}  {tool.description.splitlines()[0][:90] if tool.description else ''}" for tool in tools]
    fields = ("name", "raw", "description", "parameters")
    data = {"tools": [{field: getattr(tool, field) for field in fields} for tool in tools],
            "protocol": {"name": section.name, "order": section.order, "text": section.text}}
    return Result(data, "\n".join([f"{len(tools)} tools:", *lines, "", f"{section.name} (order {section.order}):", section.text]))
