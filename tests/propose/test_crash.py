"""kill -9 at any point of a commit: each candidate whole or absent, and the token's state agrees (propose.md, Verdicts)."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from engram import propose
from engram.propose import approvals
from engram.store import integrity, memory, places
from tests.propose.conftest import make_place, on_disk
from tests.trials import count, dice

WORDS = (
    "amber basalt cedar delta ember fjord garnet heath indigo juniper kelp lagoon maple nectar onyx pine quartz rowan sorrel thyme".split()
)


def batch(number):
    """Return five candidates that no other batch resembles: three new, one update, one that supersedes."""
    mark = f"{WORDS[number % 20]}{number}"
    return "\n".join(
        [
            f"TYPE: knowledge | TEXT: Gate {mark}{part} opens at dawn for {WORDS[(number * 3 + at) % 20]}{number}."
            for at, part in enumerate(("left", "right", "back"))
        ]
        + [
            f"TYPE: rule | TEXT: Grease hinge {mark} with tallow. | UPDATE: hinges",
            f"TYPE: rule | TEXT: Lamp {mark} burns oil. | SUPERSEDES: lamp-{number}",
        ]
    )


CALLS = ("replace", "fsync", "write", "unlink", "link", "makedirs")  # what changes the disk


def _commit(root, env, token, at, calls):
    """Commit in a process of its own that kills itself before the `at`-th call that changes the disk."""
    place = places.find(root, env=env)

    def dying(real):
        def call(*args, **kwargs):
            if calls.value == at:
                os.kill(os.getpid(), signal.SIGKILL)
            calls.value += 1
            return real(*args, **kwargs)

        return call

    for name in CALLS:
        setattr(os, name, dying(getattr(os, name)))
    propose.commit(place, token)


def kill_in_commit(place, token, at):
    """Return (whether the process died of it, how many calls it came to)."""
    context = multiprocessing.get_context("fork")
    calls = context.Value("i", 0)
    process = context.Process(target=_commit, args=(place.root, place.env, token, at, calls))
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0, calls.value


@pytest.mark.parametrize("scope", ["workspace", "both"])
def test_a_kill_at_any_point_leaves_each_candidate_whole_or_absent_and_the_token_agrees(tmp_path, scope):
    place = make_place(tmp_path, with_global=scope == "both")
    scopes = ["workspace", "global"] if scope == "both" else ["workspace"]
    propose.accept(place, propose.save(place, "rule: Grease the hinges.", keep=False, scope=scope), by="force")
    kinds, random, trials, seen = {"none": 0, "all": 0}, dice(f"kill-{scope}"), count(12, 200) // len(scopes), 0
    span = None
    for number in range(trials):
        propose.accept(place, propose.save(place, f"rule: Lamp {number} burns wax.", keep=False, scope=scope), by="force")
        lamp = {s: next(rel for rel, raw in on_disk(place, s).items() if f"Lamp {number} burns wax".encode() in raw) for s in scopes}
        text = (
            batch(number)
            .replace("UPDATE: hinges", "UPDATE: grease-the-hinges")
            .replace(f"lamp-{number}", lamp["workspace"].partition("/")[2].removesuffix(".md"))
        )
        before = {s: on_disk(place, s) for s in scopes}
        proposal = propose.save_session(place, text, scope=scope)
        planned = {s: {write.rel: write.data for row in proposal.rows if row.scope == s for write in row.writes} for s in scopes}
        died, calls = kill_in_commit(place, proposal.token, random.randrange(span) if span else -1)
        span, seen = span or calls, seen + died
        # what readers see now, before anybody has mended anything, is whole and approved or not there
        for s in scopes:
            store = place.store_of(s)
            known = store.hashes()
            for rel, _ in store.files():
                found = store.read(rel)
                assert store.approved(found, known) and found.raw in (before[s].get(rel), planned[s].get(rel)), rel
        # the next writer finishes or drops it
        done = propose.accept(
            place,
            propose.save(place, f"knowledge: Bell {number} rings {WORDS[number % 20]}{number} twice.", keep=False, scope=scope),
            by="force",
        )
        assert done.data["saved"], done.data
        try:
            propose.reopen(place, proposal.token)
            used = False
        except approvals.TokenUsed:
            used = True
        if scope == "both" and used:
            propose.revoke(place, propose.save(place, "knowledge: One more.").entry)
        for s in scopes:
            now = on_disk(place, s)
            for rel, data in planned[s].items():
                assert now.get(rel) == (data if used else before[s].get(rel)), (number, s, rel, used)
        assert integrity.verify(place).data["ok"]
        kinds["all" if used else "none"] += 1
        if not used:
            assert len(propose.commit(place, proposal.token).data["saved"]) == 5 * len(scopes)
    assert seen >= trials * 0.6 and min(kinds.values()) > 0, (seen, kinds)
    assert all(memory.parse(raw, rel) for s in scopes for rel, raw in on_disk(place, s).items())
