"""Terminals and pipes of all kinds: whatever the locale, the same exit codes and no encoding error."""

from __future__ import annotations

import os
import subprocess

import pytest

from engram.cli import table

BARE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
CODE_PAGE = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}


def start(place, *words, env):
    """Run without -I, so that the encoding variables count."""
    done = subprocess.run(
        [place.python, "-S", place.built, *words],
        capture_output=True,
        cwd=place.workspace,
        env=place.env | env,
        timeout=120,
    )
    assert (
        b"UnicodeEncodeError" not in done.stderr
        and b"internal error" not in done.stderr
        and b"Traceback" not in done.stderr
    )
    return done


@pytest.mark.case("EN-06")
@pytest.mark.parametrize("env", [BARE, CODE_PAGE, {"PYTHONIOENCODING": "ascii:strict"}], ids=["C", "cp1252", "strict"])
def test_help_and_reads_work_in_a_terminal_that_can_say_little(place, env):
    place.save("The ✓ 設定 service restarts at midnight.")
    for words in (
        (),
        ("--help",),
        ("help",),
        ("llm",),
        ("search", "service"),
        ("load", "service restarts"),
        ("list",),
        ("status",),
        ("doctor",),
        ("verify",),
    ):
        plain = place.run(*words, code=None)
        poor = start(place, *words, env=env)
        assert poor.returncode == plain.returncode, words
        poor.stdout.decode(env["PYTHONIOENCODING"].partition(":")[0])
    assert b"midnight" in start(place, "search", "service", env=env).stdout


@pytest.mark.case("EN-06")
def test_every_help_topic_prints_in_the_C_locale(place):
    for row in table.COMMANDS:
        if row.name != "mcp":
            assert start(place, row.name, "--help", env=BARE).returncode == 0, row.name
            assert start(place, "help", row.name, env=BARE).stdout.isascii()


@pytest.mark.case("EN-06")
def test_json_is_ascii_in_every_locale_and_says_the_same(place):
    place.save("The ✓ 設定 service restarts at midnight.")
    answers = {
        start(place, "search", "service", "--json", env=env).stdout for env in (BARE, CODE_PAGE, {"LANG": "C.UTF-8"})
    }
    assert len(answers) == 1 and answers.pop().isascii()


def test_a_closed_output_ends_a_command_quietly(place):
    place.save("The lighthouse lamp is serviced in May.")
    for words in (("help",), ("list",), ("search", "lamp"), ("llm",), ("load", "lamp")):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [*place.command, *words],
            stdout=write,
            stderr=subprocess.PIPE,
            cwd=place.workspace,
            env=place.env,
            timeout=60,
        )
        os.close(write)
        assert done.stderr == b"", (words, done.stderr)


def test_a_command_works_without_any_of_the_three_descriptors(place):
    for close in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        line = f'exec "$@" {close}'
        done = subprocess.run(
            ["/bin/sh", "-c", line, "sh", *place.command, "list"],
            cwd=place.workspace,
            env=place.env,
            timeout=60,
            capture_output=True,
        )
        assert done.returncode in (0, 1), (close, done.returncode, done.stderr)
        assert b"Traceback" not in done.stderr + done.stdout
