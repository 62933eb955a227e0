"""Configs as people have them, made up at random: JSON, JSONC, TOML and Markdown texts in every style of writing.

Also what a judge needs who does not trust the editors: readers of their own and a test for "only inserted".
"""
from __future__ import annotations

import json
import re
import tomllib

WORDS = ("theme", "mcpServers", "mcp", "hooks", "model", "tools", "env", "naïve", "設定", "a b", 'q"uote', "back\\slash", "x" * 60, "")
TEXTS = ("dark", "", "// no comment", "/* nor this */", 'a "quoted" word', "C:\\Users\\demo", "[x,]", "{y,}", "tab\there",
         "emoji 🚀", "engram", "$HOME ${X:-y}")
REMARKS = ("plain", 'it\'s 19" wide', "{ [ , ] }", "don't", "* star", "http://x.example/y", "mcpServers", "")


class JsonMaker:
    """Writes a random object; `comments` and `trailing` as the dialect has them."""

    def __init__(self, dice, *, comments=False, trailing=False, servers=None):
        self.dice = dice
        self.comments = comments
        self.trailing = trailing
        self.newline = dice.choice(("\n", "\n", "\r\n"))
        self.unit = dice.choice(("", "  ", "  ", "    ", "\t", "   "))
        self.flat = dice.random() < 0.25
        self.colon = dice.choice((": ", ": ", ":", " : ", ":  "))
        self.lazy = dice.random() < 0.3  # style changes from line to line
        self.servers = servers

    def text(self):
        body = self.value(self.tree(0), 0)
        bom = "\ufeff" if self.dice.random() < 0.1 else ""
        return bom + self.trivia(0, head=True) + body + self.dice.choice((self.newline, self.newline, "", self.newline * 2, " "))

    def tree(self, depth):
        dice = self.dice
        pairs = [(dice.choice(WORDS[4:]), self.leaf(depth)) for _ in range(dice.randrange(5))]
        if depth == 0 and self.servers and dice.random() < 0.7:
            mine = [(f"server{n}", {"command": "x", "args": ["--a"]}) for n in range(dice.randrange(3))]
            pairs.insert(dice.randrange(len(pairs) + 1), (self.servers, Pairs((name, Pairs(one.items())) for name, one in mine)))
        return Pairs(pairs)

    def leaf(self, depth):
        dice = self.dice
        kind = dice.randrange(9 if depth < 5 else 6)
        if kind == 8:
            return [self.leaf(depth + 1) for _ in range(dice.randrange(4))]
        if kind >= 6:
            return self.tree(depth + 1)
        return (dice.choice(TEXTS), dice.choice(TEXTS), Raw(dice.choice(("0", "-0", "1.0", "1e3", "0.10", "1E+2", "12345678901234567890"))),
                True, None, dice.choice(TEXTS))[kind]

    def value(self, value, depth):
        if isinstance(value, Raw):
            return value.text
        if isinstance(value, Pairs):
            rows = [self.string(key) + self.colon + self.value(item, depth + 1) for key, item in value.rows]
            return self.block("{", "}", rows, depth)
        if isinstance(value, list):
            return self.block("[", "]", [self.value(item, depth + 1) for item in value], depth)
        return self.string(value) if isinstance(value, str) else json.dumps(value)

    def string(self, text):
        return json.dumps(text, ensure_ascii=self.dice.random() < 0.3)

    def block(self, opening, closing, rows, depth):
        if not rows:
            return opening + self.dice.choice(("", "", " ", self.newline, self.newline + self.unit * depth, self.trivia(depth))) + closing
        flat = self.flat or self.dice.random() < 0.2
        if self.lazy:
            lead = lambda: self.trivia(depth + 1)
        elif flat:
            lead = lambda: " " if self.unit else ""
        else:
            lead = lambda: self.newline + self.unit * (depth + 1)
        out = opening
        for number, row in enumerate(rows):
            out += lead() + row
            last = number == len(rows) - 1
            if not last or self.trailing and self.dice.random() < 0.5:
                out += ("" if not self.lazy else self.trivia(depth)) + ","
            if self.comments and self.dice.random() < 0.15:
                out += self.comment(flat)
        return out + (" " if flat and self.unit else "" if flat else self.newline + self.unit * depth) + closing

    def trivia(self, depth, head=False):
        out = self.dice.choice(("", " ", "  ", self.newline, self.newline + self.unit * depth))
        if self.comments and self.dice.random() < (0.1 if head else 0.2):
            out += self.comment(False) + self.dice.choice(("", " "))
        return out

    def comment(self, flat):
        text = self.dice.choice(REMARKS)
        if flat or self.dice.random() < 0.5:
            return f" /* {text} */"
        return f" // {text}{self.newline}{self.unit}"


class Pairs:
    def __init__(self, rows):
        self.rows = [(key, Pairs(value) if isinstance(value, type({}.items())) else value) for key, value in rows]


class Raw:
    def __init__(self, text):
        self.text = text


def read_jsonc(text):
    """Read JSONC with a reader of our own: objects as lists of pairs, so that repeated keys and order count."""
    out, at = [], 0
    text = text.removeprefix("\ufeff")
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*[\s\S]*?\*/', text):
        out.append(text[at:found.start()])
        out.append(found[0] if found[0][0] == '"' else " ")
        at = found.end()
    closed = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])')
    plain = closed.sub(lambda found: found[0] if found[0][0] == '"' else "", "".join(out) + text[at:])
    return json.loads(plain, object_pairs_hook=Frozen, parse_float=str, parse_int=str)


class Frozen(list):
    """An object, as the list of its pairs."""

    def without(self, *path):
        key, rest = path[0], path[1:]
        if not rest:
            return Frozen(pair for pair in self if pair[0] != key)
        return Frozen((name, value.without(*rest) if name == key else value) for name, value in self)


def only_inserted(before, after):
    """Tell whether `after` is `before` with one piece inserted, and at most one comma more (CASES.md, KEEP)."""
    if _one_piece(before, after):
        return True
    at = next((at for at, (one, other) in enumerate(zip(before, after)) if one != other), len(before))
    commas = [place for place in range(max(0, at - 2), at + 1) if after[place:place + 1] == ","]
    return any(_one_piece(before, after[:place] + after[place + 1:]) for place in commas)


def _one_piece(before, after):
    head = next((at for at, (one, other) in enumerate(zip(before, after)) if one != other), min(len(before), len(after)))
    tail = len(before) - head
    return after.endswith(before[head:]) if tail else True


def toml_text(dice):
    """Write a random TOML text, valid by construction and checked."""
    while True:
        newline = dice.choice(("\n", "\n", "\r\n"))
        lines = []
        for _ in range(dice.randrange(5)):
            lines.append(_pair(dice, f"key{len(lines)}"))
        used = set()
        if dice.random() < 0.2:
            lines.append(dice.choice(('mcp_servers = { mine = { command = "x" } } # one line', "mcp_servers = {}", "mcp_servers = { }",
                                      'mcp_servers.mine.command = "x"', '"mcp_servers".mine = { command = "x", args = ["a", "b"] }')))
            used.add("mcp_servers")
        for number in range(dice.randrange(5)):
            lines += dice.choice(([], [""], ["", "  # a remark above"], ["# [mcp_servers.engram]"]))
            name = dice.choice(("mcp_servers", "tui", "hooks", "profiles.x", 'projects."/a b"', "'odd'"))
            if name == "mcp_servers" and name in used:
                continue
            if name == "hooks":
                lines += ["[[hooks]]", _pair(dice, "event")]
            elif name == "mcp_servers":
                lines += [dice.choice((f"[mcp_servers.s{number}]", f"[ mcp_servers . s{number} ] # odd", f'["mcp_servers".\'s{number}\']')),
                          _pair(dice, "command"), *([f"[mcp_servers.s{number}.env]", _pair(dice, "A")] if dice.random() < 0.3 else [])]
            elif name not in used:
                used.add(name)
                lines += [f"[{name}]", *(_pair(dice, f"k{n}") for n in range(dice.randrange(3)))]
        text = newline.join(lines) + dice.choice((newline, newline, "", newline * 2, "  "))
        text = ("\ufeff" if dice.random() < 0.1 else "") + text
        try:
            tomllib.loads(text.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError:
            continue
        return text


def _pair(dice, key):
    value = dice.choice(("1", "0xFF", "1_000", "1.0", "nan", "true", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "'C:\\Users'",
                         '"a # b"', '"[x]"', '[1, 2]', '["a", # one\n  "b",\n]',
                         '"""\n[mcp_servers.engram]\n"quoted" \\"""\n"""', "'''\n# not a remark\n'''",
                         "{ a = 1, b = { c = [] } }", '""', "[]", "{}", "[{a = 1}, {b = '}'}]"))
    return f"{dice.choice(('', '', ' '))}{key} = {value}{dice.choice(('', '', '  # why', chr(9)))}"


def markdown_text(dice):
    """Write a random Markdown text."""
    newline = dice.choice(("\n", "\n", "\r\n"))
    lines = [dice.choice(("# Title", "", "", "text", "- item", "```", "```python", "~~~~", "<!-- other -->",
                          "    <!-- engram:start --> in a line", "\ttab",
                          "naïve 設定")) for _ in range(dice.randrange(12))]
    return newline.join(lines) + dice.choice((newline, "", newline * 3)) if lines else dice.choice(("", newline))
