"""How a host starts Engram: the words for each form of launcher, and whose an entry is, by its words.

Pure; must not know formats or files. The forms are those of link.md, "The launcher".
"""
from __future__ import annotations

import os
from collections import namedtuple

from engram.errors import UsageError

PACKAGE = "@the-long-ride/engram"
FORMS = ("auto", "path", "file", "npx")

# form: path, file or npx; words: command and arguments; notes: what the person should know
Launcher = namedtuple("Launcher", "form words notes")
# What an entry that is ours says: the surface it serves (None: it starts no server) and further flags
Known = namedtuple("Known", "surface flags")

_ENDINGS = (".exe", ".cmd", ".bat", ".ps1", ".pyz")


def choose(site, form, shared):
    """Return the Launcher for a file that is `shared` with a team or not. Raises UsageError for a form that can't be."""
    found = site.which("engram-mcp")
    notes = []
    if form == "auto":
        form = "path" if found else "file" if site.archive and not shared else "npx"
    elif form == "file" and shared:
        form = "npx"
        notes.append("a file that a team shares can't name a path of this machine: written as npx instead.")
    elif form == "file" and not site.archive:
        raise UsageError("Engram does not run as the single file here, so there is nothing to keep a copy of.",
                         hint="Use --launcher path or npx, or run dist/engram.")
    elif form == "path" and not found:
        notes.append("`engram-mcp` is not on PATH now; `engram install` puts it there.")
    if form == "npx":
        notes.append(f"npm must be able to reach {PACKAGE}@{site.version} where this is started.")
    if site.user and site.foreign_home:
        notes.append("this file belongs to Windows: the entry starts Engram inside WSL.")
    return Launcher(form, _words(site, form, found), tuple(notes))


def kept_copy(site, name="engram-mcp"):
    """Return the path of the copy of the single file that is kept for this version."""
    return os.path.join(site.user_dir, "bin", site.version, name)


def hook_words(site):
    """Return the words that start `engram` for a hook: from PATH or the kept copy, never npx; None with neither."""
    found = site.which("engram")
    if found:
        if site.platform == "win32" and not found.lower().endswith(".exe"):
            return ["cmd", "/c", "engram"]
        return ["engram"]
    if not site.archive:
        return None
    return ([site.python] if site.platform == "win32" else []) + [kept_copy(site, "engram")]


def recognise(words):
    """Return what is Known of an entry that runs `words`, or None when it runs something else.

    Ours are a program whose base name is engram or engram-mcp, and npx with our package (link.md, "The entries"),
    also behind `cmd /c`, `wsl.exe` and a Python.
    """
    words = _unwrapped([word for word in words if isinstance(word, str)])
    if not words:
        return None
    name, rest = _base(words[0]), words[1:]
    if name in ("npx", "bunx", "pnpx"):
        at = next((at for at, word in enumerate(rest) if (word.removeprefix("--package=") + "@").startswith(PACKAGE + "@")), None)
        if at is None:
            return None
        named = rest[at].startswith("--") or rest[max(at - 1, 0)] in ("--package", "-p")
        name, rest = (_base(rest[at + 1]), rest[at + 2:]) if named and rest[at + 1:] else ("engram", rest[at + 1:])
    elif name.startswith("python") or name in ("py", "pypy3"):
        while rest and rest[0].startswith("-") and rest[0] != "-m":
            rest = rest[1:]
        if rest[:2] == ["-m", "engram"]:
            name, rest = "engram", rest[2:]
        elif rest:
            name, rest = _base(rest[0]), rest[1:]
    if name not in ("engram", "engram-mcp"):
        return None
    surface = "engram" if name == "engram-mcp" else None
    if rest[:1] == ["mcp"]:
        surface, rest = surface or "mem", rest[1:]
    if "--surface" in rest[:-1]:
        at = rest.index("--surface")
        surface, rest = rest[at + 1], rest[:at] + rest[at + 2:]
    return Known(surface, rest)


def _words(site, form, found):
    if form == "npx":
        words = ["npx", "-y", "--package", f"{PACKAGE}@{site.version}", "engram-mcp"]
    else:
        words = ["engram-mcp"] if form == "path" else [kept_copy(site)]
    if site.user and site.foreign_home:
        return ["wsl.exe", "-d", site.env["WSL_DISTRO_NAME"], "--", *words]
    if site.platform != "win32":
        return words
    if form == "file":
        return [site.python, *words]
    if form == "path" and found and found.lower().endswith(".exe"):
        return ["engram-mcp.exe"]
    return ["cmd", "/c", *words]


def _unwrapped(words):
    while words:
        name = _base(words[0])
        if name == "cmd":
            at = next((at for at, word in enumerate(words) if word.lower() == "/c"), None)
            words = words[at + 1:] if at else []
        elif name == "wsl":
            words = words[1:]
            while words and words[0].startswith("-"):
                last = words[0] in ("--", "-e", "--exec")
                words = words[1 if last or words[0].startswith("--") and "=" in words[0] else 2:]
                if last:
                    break
        else:
            return words
    return words


def _base(word):
    name = word.replace("\\", "/").rsplit("/", 1)[-1].lower()
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name
