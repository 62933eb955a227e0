"""How long `mem_save` and `mem_search` take over stdio with a database of 100,000 observations (quality.md, Speed).

    python tests/bench/session_memory.py dist/engram [ROWS]

Fills a database once (half a minute), then calls one server 201 times each and prints medians. Texts are made from a seed.
"""

from __future__ import annotations

import itertools
import os
import random
import statistics
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from engram.mem import observations, sessions  # noqa: E402 - after the path
from engram.mem.tier import Tier  # noqa: E402
from tests.server.process import Server, environment  # noqa: E402
from tests.server.stub import call  # noqa: E402

PARTS = (
    "billing checkout invoice refund tax payout fraud coupon subscription meter login session audit profile avatar push sms webhook".split()
)
ASPECTS = "retry timeout pagination envelope migration index partition cache pooling backpressure ordering rounding focus".split()
TOOLS = "postgres redis kafka nats sqlite envoy nginx helm terraform python rust go svelte react vue django flask celery".split()
VERBS = "validate record publish reject queue compress encrypt shard stream batch replay throttle mirror rotate sample".split()
TARGETS = {"mem_save": 5, "mem_search": 15}
CALLS = 201


def texts(dice):
    """Yield (title, content) without end."""
    for number in itertools.count():
        part, aspect, tool, verb = (dice.choice(words) for words in (PARTS, ASPECTS, TOOLS, VERBS))
        other, another = dice.choice(TOOLS), dice.choice(ASPECTS)
        content = (
            f"**What**: {part} uses {tool} to {verb} its {aspect}.\n**Why**: incident {dice.randrange(10**6)} of {dice.choice(PARTS)}.\n"
            f"**Where**: src/{part}/{aspect}_{number % 997}.py\n"
            f"**Learned**: {tool} and {other} disagree about {another} of {dice.choice(PARTS)}."
        )
        yield f"{verb.capitalize()} the {aspect} of {part} {number % 5000}", content


def fill(folder, rows):
    """Write the rows of an old database straight into a new one."""
    tier = Tier(folder=folder, env={"HOME": folder, "ENGRAM_DATA_DIR": os.path.join(folder, "data")}, override="bench")
    dice, now = random.Random(1), time.time()
    with tier.database.writing() as connection:
        sessions.register(connection, "old", "bench", folder, now)
        for title, content in itertools.islice(texts(dice), rows):
            observations.insert(
                connection,
                now - dice.randrange(10**7),
                session_id="old",
                type="manual",
                title=title,
                content=content,
                project="bench",
                scope="project",
            )
    tier.close()


def medians(built, folder):
    """Return {tool: milliseconds} of calls to one server."""
    dice = random.Random(2)
    made = texts(dice)
    command = [sys.executable, "-I", "-S", built, "mcp", "--project", "bench"]
    out = {}
    with Server(command, cwd=folder, env=environment(HOME=folder, ENGRAM_DATA_DIR=os.path.join(folder, "data"))) as server:
        server.start()
        queries = [
            lambda: {"query": f"{dice.choice(PARTS)} {dice.choice(ASPECTS)}"},
            lambda: {"query": f"incident {dice.randrange(10**6)}"},
            lambda: {
                "query": f"how does {dice.choice(PARTS)} handle {dice.choice(ASPECTS)} with {dice.choice(TOOLS)}",
                "match_mode": "any",
            },
        ]
        for tool, arguments in (
            ("mem_save", lambda number: dict(zip(("title", "content"), next(made)), type="decision")),
            ("mem_search", lambda number: queries[number % len(queries)]()),
        ):
            taken = []
            for number in range(CALLS):
                message = call(number, tool, **arguments(number))
                start = time.perf_counter()
                result = server.ask(message)["result"]
                taken.append((time.perf_counter() - start) * 1000)
                assert not result.get("isError"), result
            out[tool] = statistics.median(taken)
        server.end()
    return out


def main(built, rows=100_000):
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as folder:
        fill(folder, rows)
        found = medians(os.path.abspath(built), folder)
    for tool, milliseconds in found.items():
        print(f"{tool}, {rows:,} observations, over stdio: {milliseconds:.1f} ms (target {TARGETS[tool]} ms)")
    return int(any(found[tool] > TARGETS[tool] for tool in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *(int(word) for word in sys.argv[2:])))
