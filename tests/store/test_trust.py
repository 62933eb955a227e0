"""The record of trusted workspaces: what it covers, what it forgets, and where it lives."""

import os
import sqlite3
import stat

import pytest

from engram import files
from engram.store import trust, user_records
from engram.store.vault import Store


class Settings:
    def __init__(self, trust):
        self.trust = trust

    def get(self, key):
        return {"trust": self.trust}[key]


class Place:
    def __init__(self, root, user):
        self.root, self.user_dir, self.settings = str(root), str(user), Settings("on")
        self.workspace = Store("workspace", os.path.join(root, ".agents", ".engram"), boundary=str(root))


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "project", tmp_path / "user")
    os.makedirs(made.workspace.path("rules"))
    return made


def write(place, rel, content):
    with open(place.workspace.path(rel), "wb") as file:
        file.write(content)
    return "workspace:" + rel, files.sha256(content)


def test_a_workspace_that_nobody_acted_in_is_not_trusted_and_covers_nothing(place):
    key, sha256 = write(place, "rules/a.md", b"one")
    found = trust.read(place)
    assert (found.on, found.workspace_trusted, found.covers(key, sha256), found.changed(key, sha256)) == (True, False, False, False)
    assert not os.path.exists(place.user_dir)


def test_acting_in_a_workspace_covers_what_it_says_then_and_not_what_comes_later(place):
    key, sha256 = write(place, "rules/a.md", b"one")
    assert trust.trust_workspace(place) == []
    later, later_sha256 = write(place, "rules/b.md", b"two")
    found = trust.read(place)
    assert found.workspace_trusted and found.covers(key, sha256)
    assert not found.covers(key, files.sha256(b"changed")) and not found.covers(later, later_sha256)
    assert found.changed(key, files.sha256(b"changed")) and not found.changed(key, sha256) and not found.changed(later, later_sha256)


def test_acting_again_does_not_count_as_a_look(place):
    trust.trust_workspace(place)
    key, sha256 = write(place, "rules/a.md", b"one")
    assert trust.trust_workspace(place) == []
    assert not trust.read(place).covers(key, sha256)


def test_an_approved_memory_is_covered_in_exactly_the_form_that_was_approved(place):
    trust.trust_workspace(place)
    key, sha256 = write(place, "rules/a.md", b"one")
    other, _ = write(place, "rules/b.md", b"two")
    assert trust.remember(place, {key: sha256, other: files.sha256(b"not what is there"), "global:rules/c.md": sha256}) == []
    found = trust.read(place)
    assert found.covers(key, sha256) and not found.covers(other, files.sha256(b"two"))
    assert set(found.seen()) == {key}


def test_an_approval_in_a_new_workspace_trusts_it(place):
    key, sha256 = write(place, "rules/a.md", b"one")
    trust.remember(place, {key: sha256})
    assert trust.read(place).workspace_trusted and trust.read(place).covers(key, sha256)


def test_a_look_keeps_the_text_of_rules_and_forgets_what_is_gone(place):
    trust.look(place, {"workspace:rules/a.md": b"old", "workspace:rules/gone.md": b"x"})
    trust.look(place, {"workspace:rules/a.md": b"new", "workspace:knowledge/k.md": b"fact"})
    assert trust.read(place).seen() == {
        "workspace:rules/a.md": (files.sha256(b"new"), b"new"),
        "workspace:knowledge/k.md": (files.sha256(b"fact"), None),
    }


def test_a_global_memory_is_its_users_own(place):
    assert trust.read(place).covers("global:rules/a.md", "0" * 64)


def test_the_setting_off_trusts_everything_and_records_nothing(place):
    place.settings = Settings("off")
    key, sha256 = write(place, "rules/a.md", b"one")
    trust.remember(place, {key: sha256})
    found = trust.read(place)
    assert not found.on and found.workspace_trusted and found.covers(key, sha256) and not found.changed(key, "0" * 64)
    assert not os.path.exists(place.user_dir)


def test_trust_does_not_move_to_another_workspace(place, tmp_path):
    key, sha256 = write(place, "rules/a.md", b"one")
    trust.trust_workspace(place)
    os.rename(place.root, tmp_path / "elsewhere")
    moved = Place(tmp_path / "elsewhere", place.user_dir)
    assert not trust.read(moved).workspace_trusted and not trust.read(moved).covers(key, sha256)


def test_a_link_to_a_workspace_is_the_same_workspace(place, tmp_path):
    trust.trust_workspace(place)
    os.symlink(place.root, tmp_path / "link")
    assert trust.read(Place(tmp_path / "link", place.user_dir)).workspace_trusted


def test_the_record_is_readable_by_its_owner_alone(place):
    old = os.umask(0)
    try:
        trust.trust_workspace(place)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(os.path.join(place.user_dir, trust.FILE)).st_mode) == 0o600


@pytest.mark.parametrize("content", [b"not a database", b"", b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_record_trusts_nothing_until_the_next_look(place, content):
    key, sha256 = write(place, "rules/a.md", b"one")
    trust.trust_workspace(place)
    with open(os.path.join(place.user_dir, trust.FILE), "wb") as file:
        file.write(content)
    found = trust.read(place)
    assert not found.workspace_trusted and not found.covers(key, sha256) and found.seen() == {}
    assert trust.trust_workspace(place) == []
    assert trust.read(place).covers(key, sha256)


def test_a_record_that_cannot_be_written_is_a_diagnostic_and_not_an_error(place, tmp_path):
    (tmp_path / "user").write_bytes(b"a file where the folder should be")
    (found,) = trust.trust_workspace(place)
    assert found["id"] == "trust.not_recorded" and "engram trust" in found["remediation"]
    place.user_dir = None
    (found,) = trust.trust_workspace(place)
    assert "ENGRAM_DATA_DIR" in found["message"]


def test_a_writer_that_waits_too_long_loses_nothing(place, monkeypatch):
    trust.trust_workspace(place)
    key, sha256 = write(place, "rules/a.md", b"one")
    holder = sqlite3.connect(os.path.join(place.user_dir, trust.FILE), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    connect = sqlite3.connect
    monkeypatch.setattr(user_records.sqlite, "connect", lambda file, timeout, **more: connect(file, timeout=0, **more))
    (found,) = trust.look(place, {key: b"one"})
    assert found["id"] == "trust.not_recorded"
    holder.execute("ROLLBACK")
    holder.close()
    assert trust.read(place).workspace_trusted and not trust.read(place).covers(key, sha256)
