"""`engram demo`: the whole loop on real files in a throw-away folder, through Engram's own server and commands.

Everything is what a user would see: a real store, a real server process that speaks MCP, real Markdown. The user's
own stores and settings are not touched: the demo's processes get a user folder of their own. Must not know how any
of the steps work.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile

from engram.cli.own import own_command
from engram.errors import EngramError, Result

CANDIDATES = """\
TYPE: rule | TEXT: Use pnpm for every install; never commit a package-lock.json. | CONTEXT: Two lock files once broke a release.
TYPE: knowledge | TEXT: Invoices retry with exponential backoff, five tries, then go to the dead-letter queue. | TRIGGERS: billing, payment
TYPE: skill | TEXT: To release: run the tests, tag the commit, then push the tag; the pipeline deploys tags only."""
REPEAT = "TYPE: rule | TEXT: Use pnpm for every install; never commit a package-lock.json."
TASK = "a payment failed: how often is the invoice tried again?"
NEXT = """\
What to try next, in a project of yours:
  engram inject            make a store there
  engram link list         the agents that Engram can connect to; then `engram link claude`, for instance
  engram llm               the guide that an agent reads
  engram help              everything else"""


class DemoError(EngramError):
    """A step of the demo did not do what it should."""

    code = "ENG_DEMO"


def options_demo(parser):
    parser.add_argument("--keep", action="store_true", help="leave the folder in place and say where it is")


def run_demo(context, args):
    """Run the loop: make a store, propose, approve, commit, load, verify; return the steps. Raises DemoError."""
    folder = tempfile.mkdtemp(prefix="engram-demo-")
    demo = Demo(context, folder)
    try:
        demo.run()
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    last = f"The folder stays: {folder}" if args.keep else "The throw-away folder is gone again."
    return Result({"steps": demo.steps, "folder": folder if args.keep else None}, f"\nAll of it worked. {last}\n\n{NEXT}")


class Demo:
    """One run in `folder`: shows each step as it is done and keeps its outcome in `steps`."""

    def __init__(self, context, folder):
        self.context = context
        self.steps = []
        self.project = os.path.join(folder, "project")
        os.mkdir(self.project)
        kept = {name: value for name, value in context.env.items() if not name.startswith("ENGRAM_")}
        self.command, self.env = own_command(kept | {"ENGRAM_DATA_DIR": os.path.join(folder, "user")})

    def run(self):
        self.step("A project gets a store", "engram inject", self.cli("inject"))
        with Client(self.command + ["mcp", "--surface", "engram"], self.project, self.env) as client:
            name = client.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                                 "clientInfo": {"name": "engram-demo", "version": "1"}})["serverInfo"]["name"]
            client.notify("notifications/initialized")
            proposed = client.call("engram_save_session", {"text": CANDIDATES, "scope": "workspace"})
            self.step("An agent proposes three memories; nothing is written yet",
                      f"MCP server `{name}`: engram_save_session", proposed["text"], hide=proposed["approval_token"])
            expect(len(proposed["candidates"]) == 3 and not self.memories(), "a proposal wrote something, or lost a candidate")
            self.say("Here a person reads the preview and decides, in the host's dialog or at the terminal. The demo says yes.")
            saved = client.call("engram_commit", {"approval_token": proposed["approval_token"], "approve": "all"})
            self.step("Approved, so it is written", "engram_commit", saved["text"])
            expect(len(saved["saved"]) == 3, "not all three were written")
            again = client.call("engram_save", {"text": REPEAT, "scope": "workspace"})
            self.step("The same again is noticed", "engram_save", again["text"])
            expect(again["candidates"][0]["verdict"].startswith("NOOP"), "a duplicate was not noticed")
            loaded = client.call("engram_load", {"query": TASK})
            self.step("A later task gets what matters for it", f"engram_load: {TASK}", loaded["text"])
            expect("exponential backoff" in loaded["text"], "the memory for the task did not come back")
        self.step("Memories are files that you own, read and version", "ls .agents/.engram", "\n".join(self.memories()))
        self.step("Each has the hash that was approved", "engram verify", self.cli("verify"))
        path = os.path.join(self.project, ".agents", ".engram", *self.memories()[0].split("/"))
        with open(path, "a", encoding="utf-8") as file:
            file.write("\nAnd something that nobody approved.\n")
        self.step("An edit without approval is caught, and kept away from agents", "engram verify", self.cli("verify", code=1))

    def memories(self):
        """Return the memory files of the demo's store, as paths below it."""
        root = os.path.join(self.project, ".agents", ".engram")
        return sorted(f"{kind}/{name}" for kind in ("rules", "skills", "knowledge") if os.path.isdir(os.path.join(root, kind))
                      for name in os.listdir(os.path.join(root, kind)) if name.endswith(".md"))

    def cli(self, *words, code=0):
        """Run a command of ours in the project and return what it printed. Raises DemoError for another exit code."""
        done = subprocess.run([*self.command, *words], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              encoding="utf-8", errors="replace")
        expect(done.returncode == code, f"`engram {' '.join(words)}` exited {done.returncode}: {done.stderr.strip()}")
        return (done.stdout + done.stderr).strip()

    def step(self, title, what, text, *, hide=None):
        """Show one step and keep it; `hide` is a token that has no business in a scrollback."""
        if hide:
            text = text.replace(hide, hide[:6] + "…")
        self.steps.append({"title": title, "what": what, "text": text})
        self.say(f"\n{self.context.paint(f'{len(self.steps)}. {title}', 'bold')}  [{what}]\n")
        self.say("\n".join("   " + line for line in text.strip().split("\n")))

    def say(self, text):
        self.context.show(text)


class Client:
    """A small MCP client: a server process, one request at a time."""

    def __init__(self, command, cwd, env):
        self.process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, encoding="utf-8")
        self.number = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def request(self, method, params):
        """Send a request and return its result. Raises DemoError."""
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.number:
                expect("result" in answer, f"{method}: {answer.get('error')}")
                return answer["result"]
        raise DemoError(f"the server ended before it answered {method}.")

    def call(self, tool, arguments):
        """Call a tool and return its data. Raises DemoError."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        expect(not result.get("isError"), f"{tool}: {result['content'][0]['text']}")
        return result["structuredContent"]["data"]

    def notify(self, method):
        self.send({"jsonrpc": "2.0", "method": method})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


def expect(holds, message):
    if not holds:
        raise DemoError(f"{message}.")
