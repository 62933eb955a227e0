"""Places, settings, containment, hashes, writing: the store as a folder on disk."""

import json
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from engram import files
from engram.errors import Busy, MemoryFileError, NotFound, Refused, StorageError, UsageError
from engram.store import hashes, integrity, journal, memory, places, settings, vault, writing
from tests.trials import count, dice

HEADER = {"type": "knowledge", "author_name": "Sam Field", "author_email": "sam.field@example.com"}


def text_of(id, text="- Text.", **header):
    return memory.new({**HEADER, "id": id, **header}, id, [("Content", text)])


@pytest.fixture
def store(tmp_path):
    made = vault.Store("workspace", str(tmp_path / "ws/.agents/.engram"), boundary=str(tmp_path / "ws"))
    writing.make(made)
    return made


def save(store, *names, **kwargs):
    with writing.Writer(store) as writer:
        for name in names:
            writer.put(f"knowledge/{name}.md", text_of(name, **kwargs))
        writer.commit()


def place(folder, **env):
    return places.find(str(folder), env={"HOME": str(folder / "home"), **env})


# where


def test_the_root_is_the_nearest_folder_with_a_store_within_the_git_top(tmp_path):
    home = tmp_path / "home"
    deep = home / "repo/a/b"
    deep.mkdir(parents=True)
    find = lambda start: places.find(str(start), env={"HOME": str(home)}).root
    assert find(deep) == str(deep)
    (home / "repo/.git").write_text("gitdir: elsewhere")  # a worktree's is a file
    assert find(deep) == str(home / "repo")
    (home / ".agents/.engram").mkdir(parents=True)
    assert find(deep) == str(home / "repo")
    (home / "repo/a/.agents/.engram").mkdir(parents=True)
    assert find(deep) == str(home / "repo/a")
    assert find(home) == str(home)


def test_without_a_store_a_proposal_says_what_to_run(tmp_path):
    with pytest.raises(UsageError, match="engram inject"):
        place(tmp_path).need_stores()


def test_the_user_folder_and_the_global_store_come_from_the_environment_or_the_user(tmp_path):
    found = place(tmp_path)
    assert (found.user_dir, found.global_, found.save_scope) == (str(tmp_path / "home/.engram"), None, "workspace")
    found = place(tmp_path, ENGRAM_DATA_DIR="", ENGRAM_GLOBAL_DIR=str(tmp_path / "g"))
    assert (found.global_.root, found.global_.exists, found.save_scope) == (str(tmp_path / "g"), False, "both")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/engram.config.json").write_text(json.dumps({"global_path": str(tmp_path / "u")}))
    found = place(tmp_path, ENGRAM_CONFIG_DIR=str(tmp_path / "conf"))
    assert found.global_.root == str(tmp_path / "u")
    assert found.user_dir == str(tmp_path / "home/.engram")


def test_without_a_home_nothing_is_under_the_root_folder():
    assert places.home_folder({"HOME": "/"}) is None


# settings


def test_settings_are_workspace_over_user_over_defaults_key_by_key(tmp_path):
    (tmp_path / "home/.engram").mkdir(parents=True)
    (tmp_path / ".agents/.engram").mkdir(parents=True)
    (tmp_path / "home/.engram/engram.config.json").write_text('{"load": {"limit": 3, "max_tokens": 900}, "x": 1}')
    (tmp_path / ".agents/.engram/engram.config.json").write_text(
        '// mine\n{"load": {"limit": 5,}, "read": "sometimes", "author": {"name": "E"},}'
    )
    found = place(tmp_path).settings
    assert (found.get("load.limit"), found.get("load.max_tokens"), found.get("read"), found.get("author")) == (5, 900, "auto", None)
    assert [row["id"] for row in found.diagnostics] == ["config.value", "config.not-here"]


@pytest.mark.parametrize(("key", "value"), [("global_path", "/etc"), ("trust", "off"), ("author", {"name": "E", "email": "e@x.y"})])
def test_a_repository_cannot_choose_paths_authors_or_trust(tmp_path, key, value):
    (tmp_path / ".agents/.engram").mkdir(parents=True)
    (tmp_path / ".agents/.engram/engram.config.json").write_text(json.dumps({key: value}))
    found = place(tmp_path).settings
    assert found.get(key) == settings.BY_KEY[key].default
    assert found.diagnostics[0]["id"] == "config.not-here"


@pytest.mark.parametrize("text", ["{", "[]", "\xff", "{'a': 1}", '{"load": 3}', "[" * 100000])
def test_a_settings_file_that_cannot_be_read_gives_the_defaults_and_a_diagnostic(tmp_path, text):
    (tmp_path / ".agents/.engram").mkdir(parents=True)
    (tmp_path / ".agents/.engram/engram.config.json").write_bytes(text.encode("latin-1"))
    found = place(tmp_path).settings
    assert found.get("load.limit") == 8
    assert len(found.diagnostics) == (0 if text == '{"load": 3}' else 1)


@pytest.mark.parametrize("row", settings.SETTINGS, ids=lambda row: row.key)
def test_each_setting_takes_its_range_and_nothing_else(row):
    right = {
        "word": list(row.choices or ()),
        "number": list(row.choices or ()),
        "words": [["a"], []],
        "author": [{"name": "Sam Field", "email": "sam.field@example.com"}],
        "folder": ["/x"],
    }[row.kind]
    assert [value for value in right if settings.check(row, value)] == []
    wrong = [True, None, 1.5, {}, [1], "no such word", -1, 10**9]
    assert [value for value in wrong if not settings.check(row, value)] == []


# containment


@pytest.mark.case("SE-02")
def test_links_out_of_the_store_are_faults_and_not_read(store, tmp_path):
    (tmp_path / "secret.txt").write_text("SECRET")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/a.md").write_bytes(text_of("outside", "- SECRET"))
    save(store, "good")
    for folder in ("skills",):
        os.makedirs(os.path.join(store.root, folder))
    os.symlink(tmp_path / "secret.txt", os.path.join(store.root, "knowledge/leak.md"))
    os.symlink(tmp_path / "dir", os.path.join(store.root, "skills/linked"))
    faults = []
    assert [found.id for found in store.memories(faults)] == ["good"]
    assert sorted(row["file"] for row in faults) == ["workspace:knowledge/leak.md", "workspace:skills/linked"]
    for rel in ("knowledge/leak.md", "skills/linked/a.md"):
        with pytest.raises(Refused):
            store.read(rel)
    with pytest.raises(Refused):
        store.find("leak")
    with pytest.raises(NotFound):
        store.find("elsewhere")


@pytest.mark.parametrize("rel", ["../x", "/etc/passwd", "a/../../x", "a//b", "", ".", "a\\b", "C:x", "x\0", "rules/.."])
def test_a_path_that_could_lead_outside_is_refused(store, rel):
    with pytest.raises(Refused):
        store.path(rel)


@pytest.mark.case("SE-04")
def test_a_workspace_reached_through_a_link_works(store, tmp_path):
    os.symlink(tmp_path / "ws", tmp_path / "link")
    found = place(tmp_path / "link")
    save(found.workspace, "a")
    assert store.find("a").id == "a"
    assert integrity.faults(found.workspace) == []


def test_a_store_that_is_a_link_out_of_the_workspace_is_refused(tmp_path):
    (tmp_path / "ws/.agents").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "ws/.agents/.engram")
    with pytest.raises(Refused, match="leads out"):
        place(tmp_path / "ws").need_stores()


@pytest.mark.parametrize("name", [".gitignore", "memory.hashes.json", "journal.json", "store.lock"])
def test_no_file_is_written_through_a_link_out_of_the_store(store, tmp_path, name):
    goal = tmp_path / "victim"
    goal.write_text("{}")
    if os.path.lexists(os.path.join(store.root, name)):
        os.unlink(os.path.join(store.root, name))
    os.symlink(goal, os.path.join(store.root, name))
    with pytest.raises((Refused, StorageError)):
        save(store, "a")
    assert goal.read_text() == "{}"


def test_devices_pipes_and_huge_files_are_faults_and_never_read(store):
    save(store, "good")
    os.mkfifo(os.path.join(store.root, "knowledge/pipe.md"))
    with open(os.path.join(store.root, "knowledge/huge.md"), "wb") as file:
        file.truncate(memory.LARGEST + 1)
    faults = integrity.faults(store)
    assert [row["id"] for row in faults] == ["memory.too-large", "memory.not-a-file"]
    with pytest.raises(StorageError):
        store.read("knowledge/pipe.md")


@pytest.mark.case("ST-17")
def test_two_files_with_one_id_are_one_memory_and_one_fault(store):
    for name in ("caf\u00e9.md", "cafe\u0301.md"):
        os.makedirs(os.path.join(store.root, "knowledge"), exist_ok=True)
        with open(os.path.join(store.root, "knowledge", name), "wb") as file:
            file.write(text_of("cafe-x"))
    faults = []
    assert len(list(store.memories(faults))) == 1
    assert [row["id"] for row in faults] == ["memory.duplicate-id"]
    assert all(name in faults[0]["file"] + faults[0]["message"] for name in ("caf\u00e9.md", "cafe\u0301.md"))


# hashes


def test_the_hashes_file_is_a_flat_object_in_path_order():
    made = hashes.rewritten(None, {"a": "1", "c": "3"}, {"b": "2", "c": None, "é": "4"})
    assert made.decode() == '{\n  "a": "1",\n  "b": "2",\n  "é": "4"\n}\n'
    assert hashes.parse(made).entries == {"a": "1", "b": "2", "é": "4"}
    assert list(hashes.parse(hashes.rewritten(None, {"z": "1", "a": "2"}, {"b": "3"})).entries) == ["z", "a", "b"]


def updated(entries, changes):
    """Return entries with changes applied, the plain way: kept paths in place, new ones in order where all are, else last."""
    made = {path: changes.get(path, value) for path, value in entries.items() if changes.get(path, value) is not None}
    fresh = {path: value for path, value in sorted(changes.items()) if value is not None and path not in entries}
    return dict(sorted({**made, **fresh}.items())) if list(made) == sorted(made) else {**made, **fresh}


def test_lines_that_do_not_change_are_not_written_anew():
    chance = dice("lines")
    names = ["rules/a.md", "rules/a b.md", "rules/a-b.md", 'rules/"q".md', "skills/é.md", "knowledge/中.md", "rules/z\\.md", "rules/\n.md"]
    for _ in range(500):
        paths = chance.sample(names, chance.randint(0, len(names)))
        entries = {path: str(chance.randrange(9)) for path in (sorted(paths) if chance.random() < 0.7 else paths)}
        changes = {path: chance.choice((None, "new")) for path in chance.sample(names, chance.randint(0, 4))}
        raw = hashes.dump(entries)
        wanted = hashes.dump(updated(entries, changes))
        assert hashes.rewritten(raw, hashes.parse(raw).entries, changes) == wanted
        assert hashes.parse(wanted).entries == updated(entries, changes)


def test_what_was_read_can_be_changed_without_changing_what_is_read_next():
    raw = hashes.dump({"a": "1"})
    for _ in range(2):
        found = hashes.parse(raw)
        assert found.entries == {"a": "1"} and not found.extra
        found.entries["b"] = "2"
        found.add("a", "3")


@pytest.mark.parametrize("raw", [None, b"", b"{}\n", b'{"a": "1", "b": "2"}\n', b'\xef\xbb\xbf{\n  "a": "1",\n  "b": "2"\n}\n',
                                 b'{\r\n  "a": "1",\r\n  "b": "2"\r\n}\r\n', b'{\n  "a": "1",\n  "b": "0",\n  "b": "2"\n}\n'])
def test_a_file_in_another_layout_is_written_in_ours(raw):
    entries = hashes.parse(raw).entries
    assert hashes.rewritten(raw, entries, {"c": "3"}) == hashes.dump({**entries, "c": "3"})


def test_a_conflicted_hashes_file_is_the_union_of_both_sides(store):
    save(store, "a", "b")
    path = store.path(hashes.FILE)
    good = files.read(path).decode().split("\n")
    ours, theirs = good[1].rstrip(","), good[1].replace(good[1].split('"')[3], "0" * 64).rstrip(",")
    files.replace(path, "\n".join([good[0], "<<<<<<< HEAD", ours + ",", "=======", theirs + ",", ">>>>>>> other", good[2], "}"]).encode())
    assert integrity.check(store)[1] == []
    assert not store.hashes().whole
    save(store, "c")
    assert store.hashes().whole
    assert integrity.check(store)[1] == []


@pytest.mark.case("ST-13")
@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-10], lambda raw: raw.replace(b",\n", b""), lambda raw: b"\0" * 100 + raw, lambda raw: b"\0" * 100]
)
def test_a_damaged_hashes_file_keeps_what_can_be_read_and_a_copy(store, damage):
    save(store, "a", "b", "c")
    path = store.path(hashes.FILE)
    broken = damage(files.read(path))
    files.replace(path, broken)
    kept = store.hashes()
    assert all(kept.approves(rel, store.read(rel).sha256) for rel in kept.entries)
    assert len(list(store.memories())) == 3
    save(store, "d")
    assert store.hashes().whole
    assert any(files.read(os.path.join(store.root, name)) == broken for name in os.listdir(store.root) if name.startswith(".damaged"))


def test_verify_names_every_kind_of_difference(store, tmp_path):
    save(store, "a", "b", "c", "d")
    folder = os.path.join(store.root, "knowledge")
    with open(os.path.join(folder, "a.md"), "ab") as file:
        file.write(b"more\n")
    os.unlink(os.path.join(folder, "b.md"))
    with open(os.path.join(folder, "new.md"), "wb") as file:
        file.write(text_of("new"))
    result = integrity.verify(place(tmp_path / "ws"))
    assert result.exit_code == 1
    assert [(row["file"], row["problem"].split(":")[0]) for row in result.data["problems"]] == [
        ("knowledge/a.md", "edited"),
        ("knowledge/b.md", "gone"),
        ("knowledge/new.md", "never approved"),
    ]


@pytest.mark.case("GT-03")
def test_a_crlf_checkout_is_approved_with_a_notice_and_an_edit_in_it_is_not(store, tmp_path):
    save(store, "a", "b", "c")
    for name in "abc":
        path = store.path(f"knowledge/{name}.md")
        files.replace(path, files.read(path).replace(b"\n", b"\r\n"))
    checked, problems, notes = integrity.check(store)
    assert (checked, problems, [row["id"] for row in notes]) == (3, [], ["hashes.line-ends"])
    files.replace(path, files.read(path).replace(b"Text", b"Test"))
    assert [rel for rel, _ in integrity.check(store)[1]] == ["knowledge/c.md"]


# writing


def test_files_keep_mode_and_link_and_a_changed_file_is_not_overwritten(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    os.chmod(target, 0o640)
    os.symlink(target, link)
    files.replace(str(link), b"new", expected=b"old")
    assert (link.is_symlink(), target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (True, b"new", 0o640)
    with pytest.raises(files.Changed):
        files.replace(str(link), b"newer", expected=b"old")
    with pytest.raises(files.Changed):
        files.create(str(target), b"x")
    with pytest.raises(files.Changed):
        files.remove(str(target), expected=b"old")
    assert sorted(os.listdir(tmp_path)) == ["link", "target"]


def test_a_lock_waits_with_a_limit_and_dies_with_its_owner(tmp_path):
    path = str(tmp_path / "x.lock")
    code = f"import sys; sys.path.insert(0, {os.getcwd()!r})\nfrom engram import files\n"
    code += f"with files.lock({path!r}):\n print('in', flush=True)\n sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        with pytest.raises(Busy), files.lock(path, timeout=0.05):
            pass
        child.kill()
        child.wait()
    with files.lock(path, timeout=5):
        pass


def test_leaving_a_writer_without_commit_writes_nothing(store):
    before = sorted(os.listdir(store.root))
    with writing.Writer(store) as writer:
        writer.put("knowledge/a.md", text_of("a"))
    assert sorted(set(os.listdir(store.root)) - set(before)) == ["store.lock"]


def test_an_archived_memory_moves_with_its_hash_and_a_second_one_of_that_id_has_its_own_file(store):
    for _ in range(2):
        save(store, "a")
        old, new = writing.archive(store, "a", "no -- longer\nneeded", "2026-11-30T12:00:00.000Z")
        raw = files.read(store.path(new))
        assert raw.startswith(b"<!-- Archived by Engram on 2026-11-30T12:00:00.000Z -->\n<!-- Original: workspace:knowledge/a.md -->\n")
        assert raw.endswith(text_of("a"))
        assert not os.path.exists(store.path(old))
    assert new == "archive/2026-11-30/knowledge/a-2.md"
    assert integrity.check(store) == (0, [], [])
    files.replace(store.path(new), raw + b"edited")
    assert [rel for rel, _ in integrity.check(store)[1]] == [new]


def test_an_unfinished_commit_counts_as_done_and_the_next_writer_finishes_it(store):
    save(store, "a", "b")
    new = text_of("a", "- New.")
    steps = [journal.Step("write", "knowledge/a.md", new, files.sha256(new)), journal.Step("drop", "knowledge/b.md", None, None)]
    files.replace(store.path(journal.FILE), journal.dump(steps))
    assert integrity.check(store)[1] == []
    files.replace(store.path("knowledge/a.md"), new)  # and half-way through
    assert integrity.check(store)[1] == []
    save(store, "c")
    assert integrity.check(store) == (2, [], [])
    assert store.find("a").content == "- New."
    assert not os.path.exists(store.path(journal.FILE))


@pytest.mark.parametrize("rel", ["../x.md", "engram.config.json", ".gitignore", "rules/../../x", "/etc/x", "memory.hashes.json"])
def test_a_journal_that_came_with_a_clone_cannot_choose_its_files(store, tmp_path, rel):
    step = journal.Step("write", rel, b"x", None)
    files.replace(store.path(journal.FILE), journal.dump([step]))
    before = {name: files.read(os.path.join(store.root, name)) for name in (".gitignore",)}
    try:
        save(store, "a")
    except Refused:
        pass
    assert {name: files.read(os.path.join(store.root, name)) for name in before} == before
    assert not os.path.exists(os.path.join(store.root, "engram.config.json"))
    assert not (tmp_path / "ws/.agents/x.md").exists()


def commit_many(root, boundary, number, total):
    store = vault.Store("workspace", root, boundary=boundary)
    for i in range(total):
        save(store, f"w{number}-{i}")


@pytest.mark.case("ST-12")
def test_parallel_writers_lose_nothing(store):
    total = count(10, 25)
    workers = [multiprocessing.Process(target=commit_many, args=(store.root, store.boundary, n, total)) for n in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert integrity.check(store) == (8 * total, [], [])


def test_kill_at_any_moment_leaves_every_file_whole_and_the_store_verified(store):
    rng, kills = dice("store-kill"), count(25, 300)
    save(store, *(f"k{i}" for i in range(5)))
    for round_ in range(kills):
        worker = multiprocessing.Process(target=rewrite_for_ever, args=(store.root, store.boundary, round_))
        worker.start()
        time.sleep(rng.uniform(0.005, 0.05))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        assert integrity.check(store)[1] == []
        revisions = {found.revision for found in store.memories()}
        assert len(list(store.memories())) == 5
        assert revisions  # every file reads
    save(store, "after")
    assert len({found.revision for found in store.memories() if found.id != "after"}) == 1
    assert [name for name in os.listdir(store.root) if name == journal.FILE] == []


def rewrite_for_ever(root, boundary, number):
    store = vault.Store("workspace", root, boundary=boundary)
    revision = number * 1000
    while True:
        revision += 1
        save(store, *(f"k{i}" for i in range(5)), revision=revision)


def test_a_full_disk_leaves_the_old_content(store):
    save(store, "a")
    before = files.read(store.path("knowledge/a.md"))
    code = (
        f"import sys, resource, signal; sys.path.insert(0, {os.getcwd()!r})\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"
        "from engram.store import vault, writing\nfrom engram.errors import StorageError\n"
        f"s = vault.Store('workspace', {store.root!r}, boundary={store.boundary!r})\n"
        "try:\n with writing.Writer(s) as w:\n  w.put('knowledge/a.md', b'x' * 5000); w.commit()\n"
        "except StorageError as e: print('refused', e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("refused"), done.stderr
    assert files.read(store.path("knowledge/a.md")) == before
    assert integrity.check(store)[1] == []
    assert [name for name in os.listdir(store.root) if name.endswith(".tmp")] == []


def test_a_file_that_cannot_be_parsed_is_reported_and_breaks_nothing(store):
    save(store, "a")
    bad = os.path.join(store.root, "knowledge/bad.md")
    with open(bad, "wb") as file:
        file.write(b"---\nid: [\n---\n")
    faults = []
    assert [found.id for found in store.memories(faults)] == ["a"]
    assert "line 2" in faults[0]["message"]
    with pytest.raises(MemoryFileError):
        store.read("knowledge/bad.md")
