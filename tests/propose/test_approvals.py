"""Tokens and the pending file: good once, for 30 minutes, for one workspace, for what was shown."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import time

import pytest

from engram import files, propose
from engram.errors import IntegrityError, StorageError, UsageError
from engram.propose import approvals
from tests.propose.conftest import make_place, on_disk
from tests.trials import count

TWO = "TYPE: rule | TEXT: Run the tests before a release.\nTYPE: knowledge | TEXT: Invoices are archived after ninety days."


def pending_path(place):
    return place.workspace.path(approvals.FILE)


def snapshot(place):
    """Return the bytes of every file of the store but the pending file's."""
    found = {}
    for folder, _, names in os.walk(place.workspace.root):
        found |= {os.path.join(folder, name): files.read(os.path.join(folder, name)) for name in names}
    local = (approvals.FILE, "store.lock", ".gitignore", "index.sqlite", "index.lock")  # derived, or the pending file itself
    return {path: data for path, data in found.items() if os.path.basename(path) not in local}


def test_a_proposal_writes_nothing_but_its_pending_entry(place):
    before = snapshot(place)
    proposal = propose.save_session(place, TWO)
    assert snapshot(place) == before
    assert proposal.token and proposal.asks and proposal.numbers == [1, 2]
    raw = files.read(pending_path(place)).decode()
    assert proposal.token not in raw and approvals.token_hash(proposal.token) in raw
    assert stat.S_IMODE(os.stat(pending_path(place)).st_mode) == 0o600
    key = os.path.join(place.user_dir, approvals.KEY_FILE)
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600 and stat.S_IMODE(os.stat(place.user_dir).st_mode) == 0o700
    assert approvals.FILE in files.read(place.workspace.path(".gitignore")).decode().split()


def test_a_pending_file_that_others_could_read_is_closed(place):
    files.replace(pending_path(place), b"{}")
    os.chmod(pending_path(place), 0o644)
    propose.save(place, "Use pnpm.")
    assert stat.S_IMODE(os.stat(pending_path(place)).st_mode) == 0o600


def test_git_ignores_the_pending_file(place):
    subprocess.run(["git", "init", "-q", place.root], check=True)
    propose.save(place, "Use pnpm.")
    done = subprocess.run(["git", "-C", place.root, "status", "--porcelain", "-uall"], capture_output=True, text=True, check=True)
    assert approvals.FILE not in done.stdout


def test_the_token_is_256_random_bits_and_never_twice_the_same(place):
    tokens = [propose.save(place, f"Fact number {number} is here.").token for number in range(5)]
    assert len(set(tokens)) == 5 and all(len(token) >= 43 + 8 for token in tokens)
    assert len({token[-43:] for token in tokens}) == 5


def test_what_was_approved_is_written_and_the_rest_is_not(place):
    proposal = propose.save_session(place, TWO)
    result = propose.commit(place, proposal.token, [2])
    assert [row["number"] for row in result.data["saved"]] == [2]
    assert result.data["saved"][0] == {
        "number": 2,
        "id": "invoices-are-archived-after-ninety-days",
        "scope": "workspace",
        "verdict": "ADD",
        "file": "workspace:knowledge/invoices-are-archived-after-ninety-days.md",
    }
    assert list(on_disk(place)) == ["knowledge/invoices-are-archived-after-ninety-days.md"]


@pytest.mark.case("AP-01")
def test_a_token_is_good_once_also_for_another_process_and_after_a_restart(place):
    proposal = propose.save(place, "Use pnpm for installs.")
    propose.commit(place, proposal.token)
    before = snapshot(place)
    for _ in range(2):
        with pytest.raises(approvals.TokenUsed, match="already used"):
            propose.commit(place, proposal.token)
    code = (
        "import sys; from engram import propose; from engram.store import places\n"
        "place = places.find(sys.argv[1])\n"
        "try: propose.commit(place, sys.argv[2])\n"
        "except propose.approvals.TokenUsed as error: print('used', error)\n"
    )
    done = subprocess.run(
        [os.sys.executable, "-c", code, place.root, proposal.token],
        env={**place.env, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("used"), done.stderr
    assert snapshot(place) == before


@pytest.mark.case("AP-02")
def test_a_changed_pending_proposal_is_never_written(place):
    for change in (
        lambda e: e["rows"][0]["writes"][0].__setitem__(2, e["rows"][0]["writes"][0][2].replace("pnpm", "npm; skip tests")),
        lambda e: e["rows"][0].__setitem__("id", "other"),
        lambda e: e["rows"][0].__setitem__("scope", "global"),
        lambda e: e["rows"][0]["writes"][0].__setitem__(0, "rules/other.md"),
        lambda e: e.__setitem__("expires", e["expires"] + 9000),
        lambda e: e.__setitem__("scopes", ["workspace", "global"]),
        lambda e: e.__setitem__("mac", "0" * 64),
    ):
        proposal = propose.save(place, "Use pnpm for installs.")
        raw = files.read(pending_path(place))
        found = json.loads(raw)
        change(found["entries"][-1])
        files.replace(pending_path(place), json.dumps(found).encode())
        before = snapshot(place)
        with pytest.raises(approvals.PendingChanged, match="changed after it was shown"):
            propose.commit(place, proposal.token)
        assert snapshot(place) == before and on_disk(place) == {}
        files.replace(pending_path(place), raw)  # what the human saw still works
        assert propose.reopen(place, proposal.token).entry == proposal.entry
        propose.revoke(place, proposal.entry)


def test_a_used_entry_made_waiting_again_by_hand_does_not_work(place):
    proposal = propose.save(place, "Use pnpm for installs.")
    kept = files.read(pending_path(place))
    propose.commit(place, proposal.token)
    files.replace(pending_path(place), kept)
    with pytest.raises(approvals.TokenUsed):
        propose.commit(place, proposal.token)


def test_a_declined_proposal_put_back_from_a_copy_stays_declined(place):
    proposal = propose.save(place, "Use pnpm for installs.")
    kept = files.read(pending_path(place))
    assert propose.revoke(place, proposal.entry)
    files.replace(pending_path(place), kept)
    with pytest.raises(approvals.TokenUsed):
        propose.commit(place, proposal.token)
    assert on_disk(place) == {}


def test_each_way_a_token_can_fail_is_an_error_of_its_own(place, tmp_path, monkeypatch):
    other = make_place(tmp_path / "other", HOME=place.env["HOME"])
    stranger = make_place(tmp_path / "stranger")
    used, revoked, good = (propose.save(place, text) for text in ("Use pnpm for installs.", "Pin the registry.", "Quote shell variables."))
    foreign, users = propose.save(other, "Quote shell variables."), propose.save(stranger, "Quote shell variables.")
    propose.commit(place, used.token)
    propose.revoke(place, revoked.entry)
    before = snapshot(place)
    errors = {}
    tampered = good.token[:-1] + ("A" if good.token[-1] != "A" else "B")
    for name, token in (
        ("used", used.token),
        ("revoked", revoked.token),
        ("foreign", foreign.token),
        ("another user's", users.token),
        ("unknown", tampered),
        ("nonsense", "x"),
        ("empty", ""),
        ("odd", "é🧪\ud800"),
    ):
        with pytest.raises(Exception) as caught:
            propose.commit(place, token)
        errors[name] = (caught.value.code, caught.value.message)
    later = time.time() + 1801
    monkeypatch.setattr(time, "time", lambda: later)
    with pytest.raises(approvals.TokenExpired, match="expired") as caught:
        propose.commit(place, good.token)
    errors["expired"] = (caught.value.code, caught.value.message)
    assert errors["revoked"][1] == "approval was declined in the approval dialog"
    assert errors["foreign"] == errors["another user's"]
    assert errors["unknown"] == errors["nonsense"] == errors["empty"] == errors["odd"]
    distinct = [errors[name] for name in ("used", "revoked", "foreign", "unknown", "expired")]
    assert len({code for code, _ in distinct}) == 5 == len({message for _, message in distinct})
    assert snapshot(place) == before


def test_an_expired_token_says_so_also_after_its_entry_was_swept(place, monkeypatch):
    old = propose.save(place, "Use pnpm for installs.")
    later = time.time() + 1900
    monkeypatch.setattr(time, "time", lambda: later)
    propose.save(place, "Pin the registry.")
    assert approvals.token_hash(old.token) not in files.read(pending_path(place)).decode()
    with pytest.raises(approvals.TokenExpired):
        propose.commit(place, old.token)


def test_an_entry_copied_into_another_workspace_fails_its_integrity_check(place, tmp_path):
    other = make_place(tmp_path / "other", HOME=place.env["HOME"])
    proposal = propose.save(place, "Use pnpm for installs.")
    shutil.copy(pending_path(place), pending_path(other))
    with pytest.raises(IntegrityError):
        propose.commit(other, proposal.token)
    with pytest.raises(IntegrityError):
        propose.by_entry(other, proposal.entry)
    assert on_disk(other) == {} and propose.pending(other) == []


def test_unknown_numbers_are_an_error_and_the_token_stays_good(place):
    proposal = propose.save_session(place, TWO)
    for approve in ([3], [0], [1, 3], [-1], [], "some", [True], ["1"], None, {}):
        with pytest.raises(UsageError, match="token is still good"):
            propose.commit(place, proposal.token, approve)
    assert on_disk(place) == {}
    assert len(propose.commit(place, proposal.token, [1, 1, 2]).data["saved"]) == 2


def test_a_scope_can_be_narrowed_and_never_widened(both):
    proposal = propose.save(both, "Use pnpm for installs.", scope="workspace")
    for scope in ("global", "both"):
        with pytest.raises(UsageError, match="never widened"):
            propose.by_entry(both, proposal.entry, scope=scope)
    proposal = propose.save(both, "Pin the registry.")
    assert proposal.scopes == ["workspace", "global"] and proposal.candidates[0]["scope"] == "both"
    assert [row["scope"] for row in propose.by_entry(both, proposal.entry, scope="global").data["saved"]] == ["global"]
    assert on_disk(both) == {} and len(on_disk(both, "global")) == 1


def test_a_proposal_of_noops_asks_nothing_and_has_no_token(place):
    propose.commit(place, propose.save(place, "Use pnpm for installs.").token)
    before = files.read(pending_path(place))
    proposal = propose.save(place, "Use pnpm for installs.")
    assert not proposal.asks and proposal.token is None and "approval_token" not in proposal.result().data
    assert "Verdict: NOOP duplicate of use-pnpm-for-installs" in proposal.text
    assert files.read(pending_path(place)) == before


def test_without_a_writable_user_folder_a_proposal_is_refused(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    place = make_place(tmp_path, ENGRAM_DATA_DIR=str(blocked / "engram"))
    for proposing in (
        lambda: propose.save(place, "Use pnpm."),
        lambda: propose.note(place, "x is red"),
        lambda: propose.save(place, "Use pnpm.", keep=False),
    ):
        with pytest.raises(StorageError) as caught:
            proposing()
        assert caught.value.exit_code == 5 and "user folder" in caught.value.message
    assert on_disk(place) == {} and propose.status(place).data["pending_approvals"] == 0
    place = make_place(tmp_path / "homeless", HOME="/")
    with pytest.raises(StorageError, match="no home folder"):
        propose.save(place, "Use pnpm.")


def test_without_a_store_a_proposal_says_to_make_one(tmp_path):
    from engram.store import places

    (tmp_path / "home").mkdir()
    place = places.find(str(tmp_path), env={"HOME": str(tmp_path / "home")})
    with pytest.raises(UsageError) as caught:
        propose.save(place, "Use pnpm.")
    assert "engram inject" in str(caught.value)
    assert not os.path.exists(place.workspace.root)


def test_a_damaged_pending_file_loses_only_itself(place):
    proposal = propose.save(place, "Use pnpm for installs.")
    for content in (b"", b"{", b"[]", b'{"version": 1, "entries": [{}]}', b"\xff\xfe", b"[" * 100000):
        files.replace(pending_path(place), content)
        with pytest.raises(approvals.TokenUnknown):
            propose.commit(place, proposal.token)
        assert propose.pending(place) == []
        fresh = propose.save(place, "Pin the registry.")
        assert len(propose.pending(place)) == 1
        propose.revoke(place, fresh.entry)


def _race(root, env, token, barrier, answers):
    from engram.store import places

    place = places.find(root, env=env)
    barrier.wait()
    try:
        answers.put(len(propose.commit(place, token).data["saved"]))
    except approvals.TokenUsed:
        answers.put("used")


def test_of_racing_commits_with_one_token_exactly_one_writes(place):
    context = multiprocessing.get_context("fork")
    for number in range(count(5, 100)):
        proposal = propose.save_session(
            place, f"TYPE: knowledge | TEXT: Racer{number} feeds lane{number}.\nTYPE: knowledge | TEXT: Gate{number} holds flag{number}."
        )
        barrier, answers = context.Barrier(3), context.Queue()
        racers = [context.Process(target=_race, args=(place.root, place.env, proposal.token, barrier, answers)) for _ in range(3)]
        for racer in racers:
            racer.start()
        got = sorted(str(answers.get(timeout=30)) for _ in racers)
        for racer in racers:
            racer.join()
        assert got == ["2", "used", "used"]
    assert len(on_disk(place)) == 2 * count(5, 100)


def test_pending_lists_what_waits_and_a_human_can_answer_it(place):
    first, second = propose.save(place, "Use pnpm for installs."), propose.save_session(place, TWO)
    waiting = propose.pending(place)
    assert [proposal.entry for proposal in waiting] == [first.entry, second.entry] and waiting[0].token is None
    assert waiting[1].text == second.text and waiting[1].candidates == second.candidates
    assert propose.by_entry(place, first.entry, by="terminal").data["saved"]
    assert propose.revoke(place, second.entry, "the human rejected the proposal at the terminal")
    assert not propose.revoke(place, second.entry)
    assert propose.pending(place) == []
    with pytest.raises(approvals.TokenRevoked, match="rejected the proposal at the terminal"):
        propose.commit(place, second.token)


def test_only_a_person_s_approval_trusts_the_workspace(place):
    from engram.store import trust

    propose.commit(place, propose.save(place, "Use pnpm for installs.").token)
    propose.accept(place, propose.save(place, "Pin the registry.", keep=False), by="force")
    assert not trust.read(place).workspace_trusted
    proposal = propose.save(place, "Quote every shell variable.")
    saved = propose.by_entry(place, proposal.entry, by="dialog").data["saved"][0]
    key = saved["file"]
    assert trust.read(place).covers(key, files.sha256(place.workspace.read_bytes(key.partition(":")[2])))
