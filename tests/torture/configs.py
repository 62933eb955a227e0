"""link then unlink, for every host, on the configs of the case collection and on generated ones: the bytes come back."""

from __future__ import annotations

import json
import os

from tests.torture.place import Place

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(os.path.dirname(HERE), "data", "cases")
# kind of config, its path, words of link, whether it lies in the home folder
JOBS = (
    ("json", ".mcp.json", ["claude"], False),
    ("json", ".cursor/mcp.json", ["cursor"], False),
    ("json", ".gemini/settings.json", ["gemini"], False),
    ("json", ".gemini/settings.json", ["--global", "gemini"], True),
    ("json", ".gemini/config/mcp_config.json", ["--global", "antigravity"], True),
    ("json", ".codeium/windsurf/mcp_config.json", ["--global", "windsurf"], True),
    ("jsonc", "opencode.jsonc", ["opencode"], False),
    ("jsonc", ".config/opencode/opencode.jsonc", ["--global", "opencode"], True),
    ("toml", ".codex/config.toml", ["--global", "codex"], True),
)
OURS = ("subtables.toml", "existing-entry.toml")  # hold an entry of ours before: unlink takes it


def run(trial):
    lost, tried, edited, refused = [], 0, 0, 0
    for kind, target, words, user in JOBS:
        folder = os.path.join(CASES, kind)
        configs = []
        for name in sorted(os.listdir(folder)):
            if name not in OURS:
                with open(os.path.join(folder, name), "rb") as file:
                    configs.append((name, file.read()))
        configs = configs if trial.long else trial.dice.sample(configs, (len(configs) + 1) // 2)
        make = {"json": json_text, "jsonc": jsonc_text, "toml": toml_text}[kind]
        configs += [(f"generated {number}", make(trial.dice)) for number in range(trial.size(2, 60))]
        for name, before in configs:
            changed, said_no, problems = roundtrip(trial, before, target, words, user)
            tried, edited, refused = tried + 1, edited + changed, refused + said_no
            lost += [f"{kind}/{name} as {target}: {problem}" for problem in problems]
    return f"{tried} configs, {edited} edited, {refused} refused", lost


def roundtrip(trial, before, target, words, user):
    """Link and unlink one config; return (changed, refused, problems)."""
    problems = []
    with Place(trial.built, inject=False) as place:
        path = os.path.join(place.home if user else place.workspace, *target.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(before)
        listing = files(place)
        one = place.run("link", *words, code=None)
        between = read(path)
        again = place.run("link", *words, code=None)
        if read(path) != between:
            problems.append("a second link changed it again")
        two = place.run("unlink", *words, code=None)
        after = read(path)
        for done in (one, again, two):
            if "Traceback" in done.stderr or "internal error" in done.stderr or done.returncode == 70:
                problems.append(done.stderr[-300:])
        empty = before.strip() == b"" and (after is None or after.strip() in (b"", b"{}"))
        if after != before and not empty:
            problems.append("the bytes did not come back")
        if one.returncode and between != before:
            problems.append("refused and changed")
        left = files(place) - listing
        if left and not one.returncode:
            problems.append(f"unlink left {sorted(left)[:3]}")
    return between != before, one.returncode != 0, problems


def files(place):
    """Return the files of workspace and home, without Engram's own user folder (kept copies stay there)."""
    found = set()
    for top in (place.workspace, place.home):
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name != ".engram"]
            found |= {os.path.relpath(os.path.join(folder, name), place.root) for name in names}
    return found


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


KEYS = ["mcpServers", "mcp", "theme", "x-y", "a b", "é", "hooks", "security", "provider", "$schema", "permissions"]


def value(dice, depth=0):
    kind = dice.random()
    if depth < 3 and kind < 0.3:
        return {
            dice.choice(KEYS[2:]) + str(dice.randrange(9)): value(dice, depth + 1) for _ in range(dice.randrange(4))
        }
    if depth < 3 and kind < 0.45:
        return [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return dice.choice(
        [
            "text",
            "",
            'a"b\\c',
            "{,}",
            "// no comment",
            "/* nor this */",
            "日本",
            0,
            -1.50,
            1e3,
            True,
            False,
            None,
            "tab\there",
        ]
    )


def document(dice):
    made = {dice.choice(KEYS[2:]): value(dice) for _ in range(dice.randrange(5))}
    if dice.random() < 0.6:
        name = dice.choice(["mcpServers", "mcp"])
        made[name] = {f"server{number}": {"command": "x", "args": ["a"]} for number in range(dice.randrange(3))}
    items = list(made.items())
    dice.shuffle(items)
    return dict(items)


def json_text(dice):
    """Return a random JSON config in some style of writing."""
    made = document(dice)
    style = dice.randrange(5)
    text = (
        json.dumps(made, ensure_ascii=dice.random() < 0.5, indent=(None, 2, 4, "\t", 1)[style])
        if style
        else json.dumps(made, separators=(",", ":"))
    )
    return finish(dice, text)


def jsonc_text(dice):
    """Return a random config with comments and trailing commas in odd places."""
    lines = json.dumps(document(dice), indent=dice.choice((2, 4)), ensure_ascii=False).split("\n")
    out = []
    for number, line in enumerate(lines):
        if dice.random() < 0.2 and number:
            out.append(dice.choice(['  // a 5" remark', "  /* block, with { and , */", "  // }", ""]))
        if (
            number + 1 < len(lines)
            and lines[number + 1].strip()[:1] in ("}", "]")
            and line.strip() not in ("{", "[")
            and dice.random() < 0.4
            and not line.rstrip().endswith(("{", "[", ","))
        ):
            line += ","
        out.append(line + (dice.choice([" // it's", " /* x */"]) if dice.random() < 0.15 else ""))
    return finish(dice, "\n".join(out))


def finish(dice, text):
    text += dice.choice(["\n", "", "\n\n", " \n"])
    if dice.random() < 0.25:
        text = text.replace("\n", "\r\n")
    data = text.encode("utf-8", "surrogatepass")
    return b"\xef\xbb\xbf" + data if dice.random() < 0.15 else data


TOML = [
    'model = "o4"',
    "approval = 'never'",
    "[history]",
    'persistence = "save-all" # kept',
    '[mcp_servers.mine]\ncommand = "my-server"',
    "[[hooks]]\nevent = 'x'",
    'text = """\n[mcp_servers.fake]\n"""',
    "when = 1979-05-27T07:32:00Z",
    "big = 0xDEAD_BEEF",
    "[a.b.'c d']\nx = 1",
    '[profiles.work]\nmodel = "x"',
    "# a remark",
]


def toml_text(dice):
    """Return a random TOML config; pairs before tables, names made unique by position."""
    pairs = [row for row in dice.sample(TOML, dice.randrange(1, 8)) if not row.startswith("[")]
    tables = [row for row in dice.sample(TOML, dice.randrange(1, 6)) if row.startswith("[")]
    dice.shuffle(tables)
    gap = dice.choice(["\n", "\n\n"])
    text = gap.join(pairs + tables) + dice.choice(["\n", "", "\n\n"])
    return (text.replace("\n", "\r\n") if dice.random() < 0.2 else text).encode()
