"""`engram link dsh`: the bundle's files, written and taken back."""
import json
import os

from engram import files
from engram.link import bundle
from engram.session import names


def test_the_bundle_is_written_and_taken_back_and_a_changed_file_stays(run, tmp_path):
    goal = tmp_path / "my bundle"
    run("link", "dsh", "--dir", str(goal))
    assert sorted(os.listdir(goal)) == sorted(bundle.CONTENTS)
    package = json.loads((goal / "package.json").read_text())
    assert (package["type"], package["dsh"], list(package["dependencies"]), list(package["peerDependencies"])) == (
        "module", {"bundle": {"patch": "./cordis.patch.yml"}}, ["@modelcontextprotocol/sdk"], ["@deepseek-ai/schemastery"])
    before = {name: (goal / name).stat().st_mtime_ns for name in bundle.CONTENTS}
    assert "unchanged" in run("link", "dsh", "--dir", str(goal)).stdout
    assert {name: (goal / name).stat().st_mtime_ns for name in bundle.CONTENTS} == before
    (goal / "README.md").write_text("mine\n")
    run("unlink", "dsh", "--dir", str(goal))
    assert os.listdir(goal) == ["README.md"]


def test_a_plan_writes_nothing(run, tmp_path):
    assert "create" in run("link", "dsh", "--plan", "--dir", str(tmp_path / "b")).stdout
    assert not (tmp_path / "b").exists()


def test_the_patch_is_one_row_that_pins_no_program():
    text = files.package_data("link/dsh/cordis.patch.yml").decode()
    assert text.split() == "- insert: - id: engram-session name: dsh-engram-session config: serverName: engram args: [mcp]".split()


def test_the_lockfile_names_no_registry_and_the_prompt_no_braces():
    assert "resolved" not in files.package_data("link/dsh/package-lock.json").decode()
    assert "{{" not in files.package_data("link/dsh/protocol.js").decode()
    for old, new in names.SCOPE_TEXTS.values():
        assert old in files.package_data("link/dsh/protocol.js").decode()
        assert new in files.package_data("link/dsh/protocol.js").decode()
