"""The command line's door: what goes wrong ends in one line and its exit code."""
import json
import os
import subprocess

import pytest


@pytest.mark.parametrize(("words", "said"), [
    (["verfy"], "Did you mean `verify`?"), (["--jso", "verify"], "Did you mean `--json`?"), (["config", "--usr"], "Did you mean `--user`?"),
    (["config", "set"], "which setting?"), (["config", "set", "load.limit", "99"], "from 1 to 32"), (["archive"], "required: id"),
    (["--workspace", "nowhere", "verify"], "no such folder"), (["verify"], "Run engram inject")])
def test_wrong_usage_is_one_line_that_says_what_is_right(run, words, said):
    done = run(*words, code=2)
    assert said in done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_an_error_in_json_is_the_envelope_and_nothing_else(run):
    done = run("verify", "--json", code=2)
    answer = json.loads(done.stdout)
    assert (answer["contract_version"], answer["ok"], answer["error"]["code"], done.stderr) == ("1", False, "ENG_USAGE", "")


def test_options_may_stand_before_the_command_and_between_words(run, tmp_path):
    run("inject")
    assert json.loads(run("--json", "load", "deploy", "--limit", "3", "the", "api").stdout)["ok"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", [["help"], ["help", "--json"], ["help", "nothing-like-it"]])
def test_a_full_disk_behind_the_output_is_one_line(built, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([built, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (2, 5)
    assert done.stderr.count("\n") == 1
