"""The rooms and what may import what (architecture.md), and what a fresh process loads at its start."""
from __future__ import annotations

import ast
import json
import os
import subprocess
import sys

import pytest

import build

ROOT = build.ROOT
BASE = {"errors"}
LOW = {"errors", "files", "text", "safety", "editors"}
MIDDLE = LOW | {"protocol", "store", "hosts"}
# room -> the other rooms that it may import
ROOMS = {
    "errors": set(),
    "files": BASE,
    "text": BASE,
    "safety": BASE,
    "editors": BASE,
    "protocol": BASE | {"safety", "text"},
    "store": LOW,
    "hosts": BASE | {"text", "safety", "editors"},
    "recall": LOW | {"store"},
    "propose": LOW | {"store", "recall"},
    "link": LOW | {"hosts"},
    "session": LOW | {"protocol"},
    "mem": LOW | {"store", "recall", "propose"},
    "server": LOW | {"protocol", "store", "recall", "propose", "mem"},
    "cli": MIDDLE | {"recall", "propose", "link", "session", "mem"},
    "__main__": {"server", "cli"},
    "__init__": set(),
}
HEAVY = {"typing", "dataclasses", "inspect", "asyncio", "subprocess", "logging", "pathlib", "tempfile", "shutil", "importlib.metadata",
         "importlib.resources", "tomllib", "http", "urllib.request", "socket", "ssl", "unittest", "multiprocessing", "email", "zipfile"}


def modules():
    for name, data in build.sources():
        if name.endswith(".py"):
            yield name, data


def room_of(name):
    return name.split("/")[1].removesuffix(".py")


def imports(data):
    """Yield (line, dotted name) of every import in a module, at whatever depth."""
    for node in ast.walk(ast.parse(data)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: imports are absolute here"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def test_every_room_is_in_the_table():
    assert {room_of(name) for name, _ in modules()} <= set(ROOMS)


def test_imports_only_go_down():
    wrong = []
    for name, data in modules():
        room = room_of(name)
        for line, target in imports(data):
            words = target.split(".")
            if words[0] == "engram" and len(words) > 1 and words[1] not in ROOMS[room] | {room, "__version__"}:
                wrong.append(f"{name}:{line}: {room} must not import {words[1]}")
    assert not wrong, "\n".join(wrong)


def test_the_program_needs_the_standard_library_alone():
    foreign = {f"{name}:{line}: {target}" for name, data in modules() for line, target in imports(data)
               if target.split(".")[0] not in sys.stdlib_module_names | {"engram", "__future__", "_sha2", "_sha256"}}
    assert not foreign


def test_only_the_two_doors_catch_everything():
    doors = {"engram/cli/main.py", "engram/server/loop.py", "engram/cli/hook.py",  # a hook fails open (link.md, Hooks)
             "engram/session/agent.py"}  # calls the harness's own functions, which may raise anything
    broad = []
    for name, data in modules():
        for node in ast.walk(ast.parse(data)):
            if isinstance(node, ast.ExceptHandler) and name not in doors:
                kind = getattr(node.type, "id", None)
                reraises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
                if (node.type is None or kind in ("Exception", "BaseException")) and not reraises:
                    broad.append(f"{name}:{node.lineno}")
    assert not broad, "a broad except: " + ", ".join(broad)


def test_every_module_says_what_it_is():
    silent = [name for name, data in modules() if data.strip() and not ast.get_docstring(ast.parse(data))]
    assert not silent


def test_files_stay_readable_in_one_sitting():
    long = {name: data.count(b"\n") for name, data in modules() if data.count(b"\n") > 480}
    assert not long, "split these: " + str(long)


def test_no_name_of_the_kinds_that_say_nothing():
    words = ("manager", "service", "utils", "helpers")
    vague = [name for name, _ in modules() if any(word in name.lower() for word in words)]
    for name, data in modules():
        vague += [f"{name}: {node.name}" for node in ast.walk(ast.parse(data))
                  if isinstance(node, ast.ClassDef) and node.name.lower().endswith(words)]
    assert not vague


def loaded_after(words, tmp_path, text="", name="engram"):
    """Return the modules that a fresh process has loaded when `engram WORDS` is done."""
    code = ("import json, sys\n"
            f"sys.path.insert(0, {ROOT!r})\n"
            f"sys.argv = [{name!r}, *{list(words)!r}]\n"
            "from engram.__main__ import main\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            "sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], input=text, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    return set(json.loads(done.stderr.rsplit("\n", 1)[1]))


def test_the_version_is_answered_before_any_import(tmp_path):
    loaded = loaded_after(["--version"], tmp_path)
    assert {name for name in loaded if name.startswith("engram")} == {"engram", "engram.__main__"}
    assert "re" not in loaded - {"re"} and not loaded & HEAVY


PROMPT = json.dumps({"session_id": "s", "cwd": ".", "hook_event_name": "UserPromptSubmit", "prompt": "how do we deploy"})


@pytest.mark.parametrize("words, text", [(["load", "how do we deploy"], ""), (["search", "deploy"], ""), (["hook", "claude"], PROMPT),
                                         (["mcp", "--surface", "engram"], "")], ids=["load", "search", "hook", "server"])
def test_the_start_path_loads_nothing_heavy(words, text, tmp_path):
    loaded = loaded_after(words, tmp_path, text)
    assert not {name for name in loaded if name in HEAVY}


def test_the_hook_needs_no_argument_parser(tmp_path):
    assert "argparse" not in loaded_after(["hook", "claude"], tmp_path, PROMPT)


def test_the_server_loads_neither_the_session_host_nor_the_linker(tmp_path):
    for surface in ("engram", "mem"):
        loaded = loaded_after(["mcp", "--surface", surface], tmp_path)
        assert not [name for name in loaded if name.startswith(("engram.session", "engram.link", "engram.hosts", "engram.cli"))]


def test_everything_compiles_without_a_warning_on_each_python(pythons):
    code = "import sys, warnings; warnings.simplefilter('error')\nfor name in sys.argv[1:]: compile(open(name, 'rb').read(), name, 'exec')"
    names = [os.path.join(ROOT, name) for name, _ in modules()]
    for python in pythons.values():
        done = subprocess.run([python, "-I", "-S", "-c", code, *names], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
