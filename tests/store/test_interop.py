"""A store that the earlier implementation made: read as it is, and left as it is but for what was asked."""
import hashlib
import json
import os
import shutil

import pytest


@pytest.fixture
def workspace(shared, tmp_path):
    """A workspace with the sample store, as a clone would have it."""
    folder = tmp_path / "ws"
    shutil.copytree(os.path.join(shared, "interop", "store"), folder / ".agents/.engram", copy_function=shutil.copyfile)
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o755)
    return folder


def digests(folder):
    found = {}
    for path, _, names in os.walk(folder / ".agents/.engram"):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), folder / ".agents/.engram")] = hashlib.sha256(file.read()).hexdigest()
    return found


def expected(shared, name):
    with open(os.path.join(shared, "interop", "store-expected", name), encoding="utf-8") as file:
        return json.load(file)


def answer(run, workspace, *words, code=0):
    return json.loads(run(*words, "--json", cwd=workspace, code=code).stdout)["data"]


def test_its_memories_are_listed_with_ids_and_types_and_verify_agrees(run, shared, workspace):
    verified = answer(run, workspace, "verify")
    assert (verified["checked"], verified["ok"]) == (len(expected(shared, "verify.json")["data"]["results"]), True)
    rows = answer(run, workspace, "list")["entries"]
    types = [row["type"] for row in rows]
    assert {kind: types.count(kind) for kind in set(types)} == expected(shared, "stats.json")["data"]["by_type"]
    assert len({row["id"] for row in rows}) == 14
    assert answer(run, workspace, "repair")["faults"] == []


@pytest.mark.parametrize("query", ["seat-reservations-expire", "handle-prices-in-cents", "publish-the-mobile-app-release",
                                   "rotate-the-proxy-certificates", "typeahead-prefix-suggestions"])
def test_the_memories_that_it_loads_for_a_task_come_first(run, shared, workspace, query):
    theirs = expected(shared, f"load-dry-run-{query}.json")["data"]["entries"]
    keys = answer(run, workspace, "load", query.replace("-", " "))["selected_keys"]
    assert keys[0].split("/")[-1] in {row["file"].split("/")[-1] for row in theirs}


def test_each_memory_loads_by_id_with_its_own_authority(run, workspace):
    run("trust", cwd=workspace)
    for row in answer(run, workspace, "list")["entries"]:
        text = run("load", "--id", row["id"], cwd=workspace).stdout
        kind = "reference" if row["type"] == "knowledge" else "instruction"
        assert f"authority: {kind}" in text


def test_a_save_and_an_archive_leave_every_other_byte_alone(run, workspace):
    before = digests(workspace)
    run("list", cwd=workspace)
    run("save", "--force", "--scope", "workspace", "TYPE: knowledge | TEXT: Parcels leave the depot at noon.", cwd=workspace)
    run("archive", "v2-image-formats", "--reason", "tried", cwd=workspace)
    after = digests(workspace)
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed == {".gitignore", "memory.hashes.json", "knowledge/v2-image-formats.md"}
    assert answer(run, workspace, "verify")["ok"]
