"""The database under stress: waiting, crashes, odd places, replaced files (cases DB-01, DB-02)."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

import build
from engram.errors import Busy, StorageError
from engram.mem import doctor, filesystem, overview, reading, writing
from engram.mem.database import Database
from tests.mem.conftest import rows
from tests.trials import count

SAVER = f"""
import os, sys
sys.path.insert(0, {build.ROOT!r})
from engram.mem import reading, writing
from engram.mem.tier import Tier
tier = Tier(folder=sys.argv[1], override="alpha")
name, number = sys.argv[2], int(sys.argv[3])
for at in range(number):
    writing.save(tier, title=f"note {{name}}-{{at}}", content=f"statement {{name}} {{at}}")
    reading.search(tier, query=f"statement {{name}}")
    print(at, flush=True)
"""


def savers(tmp_path, processes, each):
    env = {**os.environ, "ENGRAM_DATA_DIR": str(tmp_path / "data")}
    return [
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SAVER, str(tmp_path), str(name), str(each)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in range(processes)
    ]


def test_writers_wait_their_turn_and_readers_never_wait(tiers):
    first, second = tiers(), tiers()
    writing.save(first, title="t", content="c")
    holding, release = threading.Event(), threading.Event()

    def hold():
        with sqlite3.connect(first.database.path, isolation_level=None) as connection:
            connection.execute("BEGIN IMMEDIATE")
            holding.set()
            release.wait(30)
            connection.execute("COMMIT")
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait(30)
    waiter = threading.Thread(target=lambda: writing.save(second, title="t2", content="c2"))
    waiter.start()
    assert reading.search(first, query="c").structured["count"] == 1
    assert waiter.is_alive()
    release.set()
    waiter.join(30)
    holder.join(30)
    assert len(rows(first)) == 2


def test_waiting_has_a_limit_and_a_clear_error(tiers):
    tier = tiers(patience=0.05)
    writing.save(tier, title="t", content="c")
    connection = sqlite3.connect(tier.database.path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy) as caught:
        writing.save(tier, title="t2", content="c2")
    assert "nothing was saved" in str(caught.value)
    assert tier.database.path in str(caught.value)
    assert doctor.report(tier, check="sqlite_lock_contention").structured["status"] == "warning"
    connection.execute("ROLLBACK")
    connection.close()
    assert writing.save(tier, title="t2", content="c2").structured["id"] == 2


def test_a_caller_that_goes_away_ends_the_waiting(tiers):
    tier = tiers()
    writing.save(tier, title="t", content="c")
    connection = sqlite3.connect(tier.database.path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(Exception) as caught:
        writing.save(tier, title="t2", content="c2", given_up=lambda: True)
    assert caught.value.code == "cancelled"
    connection.close()


def test_first_writers_at_once_make_one_database(tmp_path):
    running = savers(tmp_path, 4, 3)
    for process in running:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    with sqlite3.connect(tmp_path / "data" / "sessions.db") as connection:
        assert connection.execute("SELECT count(*) FROM observations").fetchone()[0] == 12
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


def test_killed_writers_lose_no_saved_row_and_leave_no_lock(tmp_path, tiers):
    promised = 0
    for _ in range(count(3, 40)):
        (process,) = savers(tmp_path, 1, 1000)
        seen = 0
        for _ in range(4):
            process.stdout.readline()
            seen += 1
        process.send_signal(signal.SIGKILL)
        rest = process.communicate(timeout=60)[0]
        promised += seen + sum(line.endswith("\n") for line in rest.splitlines(keepends=True))
    tier = tiers(override="alpha")
    titles = [row["title"] for row in rows(tier)]
    assert len(titles) == len(rows(tier, "SELECT rowid FROM terms")) == len(set(titles))  # the same notes each time: seen again
    assert sum(row["duplicate_count"] for row in rows(tier)) >= promised
    assert writing.save(tier, title="after", content="after").structured["status"] == "saved"
    assert doctor.report(tier).structured["status"] == "ok"


@pytest.mark.case("DB-02")
@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3"])
def test_a_network_file_system_is_refused_before_any_file_is_touched(tmp_path, kind):
    database = Database(str(tmp_path / "data"), kind=lambda folder: kind)
    for use in (database.reading, database.writing):
        with pytest.raises(StorageError) as caught, use():
            pass
        assert "ENGRAM_DATA_DIR" in str(caught.value)
        assert kind in str(caught.value)
    assert not (tmp_path / "data").exists()


@pytest.mark.case("DB-02")
@pytest.mark.parametrize("kind", ["9p", "fuse.sshfs", "somethingfs"])
def test_an_unknown_file_system_works_with_one_warning(tmp_path, kind):
    database = Database(str(tmp_path / "data"), kind=lambda folder: kind)
    for _ in range(3):
        with database.writing() as connection:
            connection.execute("INSERT INTO aliases VALUES (hex(randomblob(4)), 'b')")
    database.close()
    assert len(database.warnings) == 1
    assert kind in database.warnings[0]


def test_the_mount_that_holds_a_folder_is_found(tmp_path):
    table = tmp_path / "mounts"
    table.write_text("rootfs / ext4 rw 0 0\nserver:/x /home nfs4 rw 0 0\ntmpfs /home/sam/a\\040b tmpfs rw 0 0\n/dev/x /homes xfs rw 0 0\n")
    for folder, kind in (("/home/sam/x", "nfs4"), ("/home/sam/a b/c", "tmpfs"), ("/homes/x", "xfs"), ("/etc", "ext4"), ("/home", "nfs4")):
        assert filesystem.kind(folder, table=str(table)) == kind
    assert filesystem.kind("/x", table=str(tmp_path / "none")) == ""


def test_a_database_that_is_replaced_under_a_running_process_is_followed(tiers):
    tier = tiers()
    writing.save(tier, title="old", content="old words")
    for name in os.listdir(tier.database.folder):
        os.remove(os.path.join(tier.database.folder, name))
    assert reading.search(tier, query="old").structured["count"] == 0
    assert writing.save(tier, title="new", content="new words").structured["id"] == 1
    assert [row["title"] for row in rows(tiers())] == ["new"]


def test_the_file_is_for_its_owner_alone(tier):
    writing.save(tier, title="t", content="c")
    for name in os.listdir(tier.database.folder):
        assert os.stat(os.path.join(tier.database.folder, name)).st_mode & 0o077 == 0


def test_a_damaged_database_is_a_clear_error_and_stays_as_it_is(tiers):
    tier = tiers()
    os.makedirs(tier.database.folder)
    with open(tier.database.path, "wb") as file:
        file.write(b"SQLite format 3\0" + b"\xff" * 4000)
    for call in (lambda: reading.search(tier, query="x"), lambda: writing.save(tier, title="t", content="c")):
        with pytest.raises(StorageError) as caught:
            call()
        assert tier.database.path in str(caught.value)
    assert doctor.report(tier).structured["status"] == "error"
    found = overview.current_project(tier).structured
    assert (found["project"], found["error_code"]) == ("alpha", "ENG_IO")
    assert os.path.getsize(tier.database.path) == 4016


def test_a_database_of_another_program_or_a_newer_version_is_left_alone(tiers):
    tier = tiers()
    os.makedirs(tier.database.folder)
    with sqlite3.connect(tier.database.path) as connection:
        connection.execute("CREATE TABLE things (x)")
    connection.close()
    with pytest.raises(StorageError, match="another program"):
        writing.save(tier, title="t", content="c")
    os.remove(tier.database.path)
    writing.save(tier, title="t", content="c")
    tier.close()
    with sqlite3.connect(tier.database.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError, match="newer version"):
        reading.search(tiers(), query="x")


def test_a_full_disk_keeps_what_was_there(tiers):
    tier = tiers()
    writing.save(tier, title="t", content="c")
    with tier.database.writing() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StorageError, match="disk has room"):
        writing.save(tier, title="big", content="x y " * 10_000)
    assert [row["title"] for row in rows(tier)] == ["t"]
    assert reading.search(tier, query="c").structured["count"] == 1


def test_without_a_home_a_read_says_what_to_set(tmp_path):
    from engram.mem.tier import Tier

    tier = Tier(folder=str(tmp_path), env={"HOME": "/"})
    with pytest.raises(Exception) as caught:
        reading.search(tier, query="x")
    assert "ENGRAM_DATA_DIR" in str(caught.value)
    assert overview.current_project(tier).structured["project"]
    assert doctor.report(tier).structured["status"] == "error"
