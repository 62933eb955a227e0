"""No prepared text makes Engram think for long: every reader of foreign text takes about linear time.

Each pathological text is fed at one length and at four times that; a reader whose time grows like the square
is found by the ratio, and one that hangs by the alarm. Processor time counts, and a small one is not judged.
"""

from __future__ import annotations

import signal
import time

import pytest

from engram import safety, text
from engram.editors import json as host_json
from engram.editors import toml as host_toml
from engram.errors import EngramError
from engram.mem import passive, privacy, topics
from engram.propose import candidates
from engram.store import hashes, ignore, journal, memory, settings
from tests.trials import count, dice

SIZE = 60_000
GIVEN_UP = 20  # seconds; the right answer takes a fraction of one
JUDGED = 1.0  # seconds; below it a ratio is noise

HEADER = "---\nid: x\ntype: rule\n---\n# x\n\n## Content\n\n{}\n"
KEYS = "---\nid: x\ntype: rule\n{}\n---\n# x\n\n## Content\n\nx\n"

# fmt: off
PIECES = [
    "a", " ", "\t", "\n", "# ", "#", "- ", "a: ", "a:", "\"", "'", "\\\"", "\\", "[", "{", "(", "](", "![", "<",
    "<a ", "<!--", "</", "`", "```\n", "~~~\n", "*", "**", "_", "__", "ab", "_-", "key=", "A", "A1", "=", "==",
    "a@", "a.", "@a.", "a@a.", "1", "1.", "10.", "4111 ", "1-", "-", "--", "---\n", "/", "//", "/*", "*/", "://",
    "a://a:", "eyJ", "eyJ.", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "<private>", "</private>", "password",
    "password ", "password=", "password: ", "ignore all ", "ignore previous ", "you are ", "TYPE: ", "TEXT: x | ",
    " | ", "|", "rule: ", "\u202e", "\u200b", "é", "e\u0301", "設", "\U000e0041", "🚀", "a, ", ",", ", ", "[a, ",
    "{a: ", "- - ", "? ", "& ", "> ", ">", "|\n", "a\n", " a\n", "a: b\n", "a: [\n", "a: \"\n", "<<<<<<< \n",
    ">>>>>>> \n", "\"a\": ", "\"a\": 1,", "\"a\": {", "[[a]]\n", "[a.", "a = [", "a = '''", "a = \"\"\"", "a.",
    "0_", "1e", "## Key Learnings:\n", "1. a b c d e f g h\n", "\r\n", "\r", "$", "${", "{{", "%", "\x00", "\x1b[",
    "0x", "AKIA", "gh" + "p_", "sk-", "Bearer ", "http://a/?", "a/", "../", "C:\\", "x" * 63 + ".", "no longer ",
    "instead of ", "must ", "never ", "not ",
]
# fmt: on
BEFORE = [
    "",
    "",
    "# ",
    "a ",
    "- ",
    "a: ",
    "a: [",
    'a: "',
    "{",
    '"',
    "`",
    "password=",
    "TYPE: rule | TEXT: ",
    "<private>",
    "## Key Learnings:\n1. ",
]
ENDS = ["", "!", "x", '"', "}", "\n"]


def reads(function):
    """Return the function, with its refusals counted as an answer."""

    def guarded(given):
        try:
            function(given)
        except (EngramError, ValueError, RecursionError):
            pass

    return guarded


READERS = {
    "memory body": lambda given: memory.parse(HEADER.format(given).encode("utf-8", "replace"), "rules/x.md").summary,
    "memory header": lambda given: memory.parse(KEYS.format(given).encode("utf-8", "replace"), "rules/x.md"),
    "memory value": lambda given: memory.parse(KEYS.format("tags: " + given).encode("utf-8", "replace"), "rules/x.md"),
    "memory file": lambda given: memory.parse(given.encode("utf-8", "replace"), "rules/x.md"),
    "first sentence": lambda given: memory.title_of(given),
    "secrets": lambda given: safety.redact(given),
    "instructions": lambda given: safety.instruction_lines(given),
    "visible": lambda given: safety.visible(given),
    "terms": lambda given: text.terms(given),
    "candidates": lambda given: candidates.parse(given),
    "candidate text": lambda given: candidates.parse("TYPE: rule | TEXT: " + given),
    "hashes": lambda given: hashes.parse(given.encode("utf-8", "replace")),
    "journal": lambda given: journal.parse(given.encode("utf-8", "replace")),
    "settings": lambda given: settings.parse(given.encode("utf-8", "replace"), "x"),
    "settings object": lambda given: settings.parse(("{" + given).encode("utf-8", "replace"), "x"),
    "ignore": lambda given: ignore.compile(given)("rules/" + "a" * 200 + ".md"),
    "private parts": lambda given: privacy.clean(given),
    "passive notes": lambda given: passive.items(given),
    "topic": lambda given: topics.suggest(title=given, content=given),
    "JSON config": lambda given: host_json.put(given, ["mcpServers", "engram"], {"command": "x"}, host_json.STRICT, {}),
    "JSONC config": lambda given: host_json.put("{" + given, ["mcp", "engram"], {"command": "x"}, host_json.JSONC, {}),
    "TOML config": lambda given: host_toml.add_table(given, ["mcp_servers", "engram"], {"command": "x"}),
}


def took(function, given):
    """Return the seconds of processor time that function(given) takes, at most GIVEN_UP."""

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVEN_UP)
    begin = time.process_time()
    try:
        function(given)
    except TimeoutError:
        return GIVEN_UP
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return time.process_time() - begin


@pytest.mark.parametrize("name", READERS)
def test_no_repeated_text_makes_a_reader_slow(name):
    function, slow, random = reads(READERS[name]), [], dice(name)
    for _ in range(count(60, 3000)):
        before, piece, end = random.choice(BEFORE), random.choice(PIECES), random.choice(ENDS)
        make = lambda size: before + piece * (size // len(piece)) + end  # noqa: B023
        long = took(function, make(SIZE))
        if long > JUDGED:
            short = took(function, make(SIZE // 4))
            if long >= GIVEN_UP or long > short * 8:
                slow.append(
                    f"{before!r} + {piece!r} × {SIZE // len(piece)} + {end!r}: {long:.1f} s, a quarter of it {short:.2f} s"
                )
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize(
    "name, given",
    [
        ("memory header", "a: [" + "\n" * SIZE),
        ("memory header", "a" + " " * SIZE + "x"),
        ("memory body", "# " + "#" * SIZE + "x"),
        ("memory body", "## a\n" * (SIZE // 5)),
        ("hashes", '\\"' * SIZE),
        ("settings object", "/*" * SIZE),
        ("settings object", '\\"' * SIZE),
    ],
)
def test_what_once_took_minutes_takes_moments(name, given):
    assert took(reads(READERS[name]), given) < GIVEN_UP / 4


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 20 + "b", "**/" * 30 + "b", "**/a/" * 20 + "b", "*" * 500 + "b", "[a-z]*" * 20 + "1", "?*" * 30 + "1"],
)
def test_no_ignore_pattern_makes_matching_slow(pattern):
    deep = "rules/" + "a/" * 400 + "a" * 200 + ".md"
    assert took(lambda given: ignore.compile(given)(deep), pattern) < GIVEN_UP / 4
