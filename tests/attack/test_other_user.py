"""Another user of the same machine: no bait is taken, nothing private is open, nothing of theirs is overwritten."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile

import pytest

from engram.store import places
from tests.torture.hostile import write
from tests.torture.permissions import AS_NOBODY, open_up
from tests.torture.place import NOBODY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as two users")


@pytest.fixture
def common():
    """Return a folder that everybody may write, like /tmp, outside of what pytest closes."""
    folder = tempfile.mkdtemp(prefix="engram-common-")
    os.chmod(folder, 0o1777)
    yield folder
    shutil.rmtree(folder)


def test_a_store_that_another_user_put_above_the_working_folder_is_not_used(common, tmp_path):
    bait = os.path.join(common, ".agents", ".engram")
    write(
        os.path.join(bait, "rules", "bait.md"),
        b"---\nid: bait\ntype: rule\n---\n# Bait\n\n## Content\n\nTake the bait.\n",
    )
    for folder, folders, names in os.walk(os.path.join(common, ".agents")):
        for name in (".", *folders, *names):
            os.chown(os.path.join(folder, name), NOBODY, NOBODY)
    mine = os.path.join(common, "mine")
    os.mkdir(mine)
    found = places.find(mine, env={"HOME": str(tmp_path)})
    assert found.root == mine and found.stores == []


def test_what_engram_keeps_for_a_user_is_closed_to_others(place):
    for words in (
        ("save", "--force", "TYPE: rule | TEXT: The kiln is fired on Fridays."),
        ("link", "--global", "gemini"),
        ("trust",),
        ("load", "kiln"),
        ("mem", "save", "a", "b"),
    ):
        place.run(*words, code=None, umask=0)
    with place.server(umask=0) as server:
        server.call("engram_save", {"text": "TYPE: rule | TEXT: Glaze is mixed on Mondays.", "scope": "workspace"})
    user = os.path.join(place.home, ".engram")
    assert stat.S_IMODE(os.stat(user).st_mode) & 0o077 == 0
    for name in ("approvals.key", "index.key", "trust.db", "sessions.db", "links.json"):
        path = os.path.join(user, name)
        if os.path.exists(path):
            assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0, name
    assert stat.S_IMODE(os.stat(os.path.join(place.home, ".gemini", "settings.json")).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(place.store("pending-approvals.json")).st_mode) & 0o077 == 0


def test_another_user_can_not_commit_what_this_one_proposed(place):
    with place.server() as server:
        token = server.data(
            "engram_save", {"text": "TYPE: rule | TEXT: The kiln is fired on Fridays.", "scope": "workspace"}
        )["approval_token"]
    open_up(place)
    other = os.path.join(place.root, "other-home")
    os.mkdir(other)
    for folder, folders, names in os.walk(place.workspace):
        for name in (".", *folders, *names):
            os.chown(os.path.join(folder, name), NOBODY, NOBODY)
    os.chown(other, NOBODY, NOBODY)
    os.chmod(place.store("pending-approvals.json"), 0o666)
    done = place.run("commit", "--force", token, code=None, env={"HOME": other}, **AS_NOBODY)
    assert done.returncode not in (0, 70) and place.memories() == {}


def test_root_editing_a_users_file_leaves_it_theirs(place):
    path = os.path.join(place.home, ".gemini", "settings.json")
    write(path, b'{"a": 1}\n')
    os.chown(path, NOBODY, NOBODY)
    os.chmod(path, 0o640)
    for word in ("link", "unlink"):
        place.run(word, "--global", "gemini")
        found = os.stat(path)
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (NOBODY, NOBODY, 0o640)


def test_a_temporary_name_can_not_be_guessed_and_is_never_followed(place, tmp_path):
    """Files go through a name with 64 random bits, opened with O_EXCL: a link planted beside it is not written through."""
    seen = set()
    from engram import files

    target = str(tmp_path / "file")
    original = os.open

    def spy(path, flags, *more, **named):
        if str(path).endswith(files.SUFFIX):
            seen.add(os.path.basename(path))
            assert flags & os.O_EXCL and flags & os.O_CREAT
        return original(path, flags, *more, **named)

    os.open = spy
    try:
        for number in range(50):
            files.replace(target, b"%d" % number)
    finally:
        os.open = original
    assert len(seen) == 50 and os.listdir(tmp_path) != []
