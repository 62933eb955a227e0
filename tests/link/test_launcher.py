"""The words that start Engram, on each system and by each form; and whose an entry is, by its words."""
from __future__ import annotations

import json
import os
import tomllib

import pytest

from engram.editors import json as json_editor
from engram.editors import toml
from engram.errors import UsageError
from engram.hosts import table
from engram.link import launcher, registration
from engram.link.site import Site

VERSION = Site("/w", "/u", {"HOME": "/h"}).version
NPX = ["npx", "-y", "--package", f"@the-long-ride/engram@{VERSION}", "engram-mcp"]


def a_site(tmp_path, *programs, **more):
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), **more.pop("env", {})}
    (tmp_path / "bin").mkdir(exist_ok=True)
    for name in programs:
        (tmp_path / "bin" / name).write_text("")
        (tmp_path / "bin" / name).chmod(0o755)
    return Site(str(tmp_path / "ws"), str(tmp_path / ".engram"), env, **{"platform": "linux", **more})


def test_auto_takes_the_path_then_the_file_then_npx(tmp_path):
    site = a_site(tmp_path, user=True, archive="/x/engram")
    assert launcher.choose(site, "auto", shared=False)[:2] == ("file", [str(tmp_path / ".engram" / "bin" / VERSION / "engram-mcp")])
    assert launcher.choose(site, "auto", shared=True)[:2] == ("npx", NPX)
    assert launcher.choose(a_site(tmp_path, user=True), "auto", shared=False)[:2] == ("npx", NPX)
    site = a_site(tmp_path, "engram-mcp", user=True, archive="/x/engram")
    assert launcher.choose(site, "auto", shared=True)[:2] == launcher.choose(site, "auto", shared=False)[:2] == ("path", ["engram-mcp"])


def test_a_shared_file_never_names_a_path_of_this_machine(tmp_path):
    chosen = launcher.choose(a_site(tmp_path, archive="/x/engram"), "file", shared=True)
    assert chosen.words == NPX and any("npx" in note for note in chosen.notes)


def test_npx_says_that_npm_must_reach_the_package(tmp_path):
    assert any("npm" in note for note in launcher.choose(a_site(tmp_path), "npx", shared=True).notes)


def test_a_file_can_t_be_kept_where_there_is_none(tmp_path):
    with pytest.raises(UsageError, match="single file"):
        launcher.choose(a_site(tmp_path), "file", shared=False)


def test_a_program_that_npx_put_on_path_for_one_run_does_not_count(tmp_path):
    folder = tmp_path / ".npm" / "_npx" / "1a" / "node_modules" / ".bin"
    folder.mkdir(parents=True)
    (folder / "engram-mcp").write_text("")
    (folder / "engram-mcp").chmod(0o755)
    site = Site("/w", "/u", {"HOME": "/h", "PATH": f"{folder}:relative:."}, platform="linux")
    assert site.which("engram-mcp") is None


@pytest.mark.case("CR-07")
def test_windows_gets_a_program_that_starts_without_a_shell(tmp_path):
    site = a_site(tmp_path, user=True, platform="win32", archive="C:\\x\\engram.pyz",
                  python="C:\\Py\\python.exe", env={"USERPROFILE": str(tmp_path)})
    for form in ("path", "file", "npx"):
        words = launcher.choose(site, form, shared=False).words
        assert words[0].endswith(".exe") or words[:2] == ["cmd", "/c"]
        assert not words[0].endswith((".pyz", ".cmd", ".ps1"))
        assert launcher.recognise(words) == ("engram", [])
    assert launcher.choose(site, "npx", shared=True).words == ["cmd", "/c", *NPX]
    assert launcher.choose(site, "file", shared=False).words[0] == "C:\\Py\\python.exe"
    assert launcher.choose(site, "path", shared=True).words == ["cmd", "/c", "engram-mcp"]
    assert launcher._words(site, "path", "C:\\x\\engram-mcp.EXE") == ["engram-mcp.exe"]


@pytest.mark.case("CR-10")
def test_a_windows_home_seen_from_wsl_gets_wsl_words_and_a_warning(tmp_path):
    env = {"HOME": "/mnt/c/Users/demo", "WSL_DISTRO_NAME": "Debian", "PATH": ""}
    site = Site("/mnt/c/work", "/mnt/c/Users/demo/.engram", env, user=True, platform="linux", archive="/x/engram")
    chosen = launcher.choose(site, "auto", shared=False)
    assert chosen.words[:4] == ["wsl.exe", "-d", "Debian", "--"] and any("belongs to Windows" in note for note in chosen.notes)
    assert launcher.recognise(chosen.words) == ("engram", [])
    for other in ({"HOME": "/home/demo", "WSL_DISTRO_NAME": "Debian"}, {"HOME": "/mnt/c/Users/demo"},
                  {"HOME": "/mnt/data/demo", "WSL_DISTRO_NAME": "D"}):
        site = Site("/w", "/u", other, user=True, platform="linux", archive="/x/engram")
        chosen = launcher.choose(site, "auto", shared=False)
        assert chosen.words[0] != "wsl.exe" and not any("Windows" in note for note in chosen.notes)


@pytest.mark.case("CT-14")
@pytest.mark.parametrize("program", ["C:\\Users\\demo\\bin\\engram.pyz", 'C:\\a "b"\\engram.exe',
                                     "/home/é/engram-mcp", "/tmp/\x7f\t/engram"])
def test_any_path_reads_back_as_it_was(program):
    words = ["C:\\Py\\python.exe", program]
    for host in table.HOSTS:
        if host.shape == "bundle":
            continue
        text = registration.edit(host, "/x", words).add(None, {})
        found = tomllib.loads(text)["mcp_servers"]["engram"] if host.shape == "toml" else registration.found(host, text)
        assert registration.words_of(found) == words
    assert json.loads(json_editor.put("", ["a"], program, json_editor.STRICT, {})) == {"a": program}
    assert tomllib.loads(toml.add_table("", ("a",), {"b": program})) == {"a": {"b": program}}


@pytest.mark.parametrize("words, surface, flags", [
    (["engram-mcp"], "engram", []),
    (["engram-mcp", "--always-load"], "engram", ["--always-load"]),
    (["/opt/x y/engram-mcp", "mcp", "--surface", "engram", "--no-elicitation"], "engram", ["--no-elicitation"]),
    (["engram", "mcp", "--surface", "engram"], "engram", []),
    (["engram", "mcp"], "mem", []),
    (["engram", "mcp", "--tools=agent"], "mem", ["--tools=agent"]),
    (["engram"], None, []),
    (["C:\\x\\engram.exe", "mcp"], "mem", []),
    (["cmd", "/c", "engram-mcp.cmd"], "engram", []),
    (["cmd.exe", "/d", "/s", "/c", "npx", "-y", "--package", "@the-long-ride/engram@0.0.1", "engram-mcp", "-x"], "engram", ["-x"]),
    (["npx", "-y", "--package", "@the-long-ride/engram", "engram-mcp"], "engram", []),
    (["/usr/bin/npx", "-y", "@the-long-ride/engram@1.2.3", "mcp"], "mem", []),
    (["npx", "--package=@the-long-ride/engram@2", "engram-mcp", "--x"], "engram", ["--x"]),
    (["npx", "@the-long-ride/engram"], None, []),
    (["python3", "-I", "-S", "/x/engram.pyz", "mcp", "--surface", "engram"], "engram", []),
    (["/usr/bin/python3.12", "-m", "engram", "mcp"], "mem", []),
    (["wsl.exe", "-d", "Debian", "-e", "/home/x/engram-mcp"], "engram", []),
    (["wsl", "--", "engram-mcp"], "engram", []),
])
def test_ours_is_known_by_what_runs(words, surface, flags):
    assert launcher.recognise(words) == (surface, flags)


@pytest.mark.parametrize("words", [
    [], ["/opt/other-product/engram-server", "serve"], ["my-engram"], ["engram2"], ["npx", "-y", "engram"],
    ["npx", "-y", "@other/engram", "engram-mcp"], ["npx", "--package", "@the-long-ride/engrams", "x"], ["node", "engram-mcp.js"],
    ["sh", "-c", "engram-mcp"], ["python3", "server.py", "engram"],
    ["cmd", "/c"], ["cmd"], ["wsl"], ["python3"], ["docker", "run", "engram"], ["uvx", "engram-mcp"], [""],
])
def test_anything_else_is_not_ours(words):
    assert launcher.recognise(words) is None


@pytest.mark.parametrize("value", [None, 3, [], {}, {"url": "http://x.example"},
                                   {"command": 3}, {"command": ["engram-mcp", 3]}, {"command": None}])
def test_an_entry_that_runs_nothing_is_not_ours(value):
    assert not registration.is_ours(value)


def test_hooks_run_engram_from_path_or_the_kept_copy_and_never_npx(tmp_path):
    assert launcher.hook_words(a_site(tmp_path)) is None
    kept = os.path.join(str(tmp_path), ".engram", "bin", VERSION, "engram")
    assert launcher.hook_words(a_site(tmp_path, archive="/x/engram")) == [kept]
    assert launcher.hook_words(a_site(tmp_path, "engram", archive="/x/engram")) == ["engram"]
