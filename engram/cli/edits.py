"""Edits by hand, approved at the terminal: rehash and edit (store.md, Integrity)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile

from engram import files, safety
from engram.cli import approval
from engram.errors import EngramError, HumanNeeded, IntegrityError, NotFound, Result, UsageError
from engram.propose import plan, preview
from engram.store import integrity, memory, trust
from engram.store.writing import Writer


def options_rehash(parser):
    parser.add_argument("ids", nargs="*", metavar="ID", help="memories to accept (default: all that changed)")
    parser.add_argument("--scope", choices=("workspace", "global"), help="which store")
    parser.add_argument("--force", "-f", action="store_true", help="accept what the human has already looked at")


def run_rehash(context, args):
    """Show what was edited by hand and accept it after a yes."""
    place, changes, skipped = context.place, [], []
    for store in place.need_stores():
        if args.scope in (None, store.scope):
            found, bad = _changed(store, args.ids)
            changes += [(store, rel, raw) for rel, raw in found]
            skipped += bad
    if args.ids and not changes and not skipped:
        for id in args.ids:
            if all(plan.find(store, id) is None for store in place.stores):
                raise NotFound(f"there is no memory `{id}`.")
    if not changes:
        text = "\n".join([*skipped, "Nothing to accept: every readable memory is as approved."])
        return Result({"accepted": []}, text, exit_code=1 if skipped else 0)
    lines = list(skipped)
    for number, (store, rel, raw) in enumerate(changes, 1):
        lines += [f"[{number}] {store.scope}:{rel}", *_difference(place, store, rel, raw), ""]
    approval.show(context, "\n".join(lines))
    chosen = "all"
    if not args.force:
        if not context.interactive:
            needed = "Nothing was accepted: approval needs a person at a terminal. With a human's yes, run it again with --force."
            return Result(
                {"changed": [f"{store.scope}:{rel}" for store, rel, _ in changes]}, needed, exit_code=3, error=(HumanNeeded.code, needed)
            )
        answer = approval.ask(context, list(range(1, len(changes) + 1)), noun="change")
        if answer is None:
            return Result({"accepted": []}, "Rejected. Nothing was accepted.", exit_code=1)
        chosen = answer[0]
    taken = [change for number, change in enumerate(changes, 1) if chosen == "all" or number in chosen]
    for store in {change[0].scope: change[0] for change in taken}.values():
        with Writer(store) as writer:
            for owner, rel, raw in taken:
                if owner is store:
                    writer.approve(rel, files.sha256(raw) if raw is not None else None)
            writer.commit()
    accepted = [f"{store.scope}:{rel}" for store, rel, _ in taken]
    notes = [] if args.force else trust.remember(place, {f"{s.scope}:{rel}": files.sha256(raw) for s, rel, raw in taken if raw is not None})
    return Result({"accepted": accepted}, "\n".join(f"Accepted {key}" for key in accepted), notes)


def _changed(store, wanted):
    """Return ([(path, bytes or None when gone)] not as approved, lines about those that can't be accepted)."""
    found, bad = [], []
    wanted = {id.lower() for id in wanted}
    for rel, _ in integrity.check(store)[1]:
        if rel.startswith("archive/"):
            continue
        raw = files.read_regular(store.path(rel), limit=memory.LARGEST)
        name = rel.rpartition("/")[2].removesuffix(".md").lower()
        if raw is None:
            if not wanted or name in wanted:
                found.append((rel, None))
            continue
        try:
            id = memory.parse(raw, rel, store.scope).id.lower()
        except EngramError as error:
            if not wanted or name in wanted:
                bad.append(f"Not accepted: {error}")
            continue
        if not wanted or id in wanted or name in wanted:
            found.append((rel, raw))
    return found, bad


def _difference(place, store, rel, raw, old=None):
    """Return the lines that show a change: against the approved bytes where they can be found, else the whole file."""
    if raw is None:
        return ["    the file is gone; its recorded hash is dropped"]
    text = raw.decode("utf-8", "replace")
    scan = safety.scan_file(text)
    lines = [f"Hint: load leaves it out: line {found.line}: {found.label}" for found in [*scan.findings, *scan.instructions]]
    old = approved_bytes(place, store, rel) if old is None else old
    if old is None:
        return [
            *lines,
            "    new, or its approved text is not at hand; the whole file:",
            *(preview.BAR + line for line in text.rstrip("\n").split("\n")),
        ]
    return lines + preview.difference(old.decode("utf-8", "replace"), text)


def approved_bytes(place, store, rel):
    """Return the bytes that were approved for a path, from Git or from the last look, or None."""
    known = store.hashes()
    if not known.known(rel):
        return None
    seen = trust.read(place).seen().get(f"{store.scope}:{rel}")
    if seen and seen[1] is not None and known.approves(rel, files.sha256(seen[1])):
        return seen[1]
    for commit in ("", "HEAD"):
        shown = _git(store, "cat-file", "blob", f"{commit}:./{rel}")
        if shown is not None and known.approves(rel, files.sha256(shown)):
            return shown
    return None


def _git(store, *words):
    try:
        # cat-file runs no filter that a repository's attributes name, and no monitor that its config names
        done = subprocess.run(
            ["git", "-C", store.root, "-c", "core.fsmonitor=false", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def options_edit(parser):
    parser.add_argument("id", help="the memory to edit")
    parser.add_argument("--scope", choices=("workspace", "global"), help="which store, when both have it")


def run_edit(context, args):
    """Open a memory in $VISUAL or $EDITOR, check it, show the diff, and write it after a yes."""
    if not context.interactive:
        raise HumanNeeded("editing needs a person at a terminal.", hint="Edit the file, then run engram rehash.")
    place = context.place
    store, old = _the_memory(place, args.id, args.scope)
    editor = context.env.get("VISUAL") or context.env.get("EDITOR") or "vi"
    folder = tempfile.mkdtemp(prefix="engram-edit-")
    path = os.path.join(folder, os.path.basename(old.rel))
    files.create(path, old.raw, mode=0o600)
    kept = False
    try:
        while True:
            _open(editor, path)
            raw = files.read(path) or b""
            try:
                made = memory.parse(raw, old.rel, store.scope)
                if made.id.lower() != old.id.lower() and not plan.is_free(store, made.id):
                    raise UsageError(f"the id `{made.id}` is taken.")
                break
            except EngramError as error:
                approval.show(context, f"It can't be saved like this: {error}")
                if (context.ask("E edit again, C give up: ") or "c").strip().upper() != "E":
                    return Result({"saved": []}, "Given up. Nothing was written.", exit_code=1)
        if raw == old.raw and store.approved(old):
            return Result({"saved": []}, "Nothing was changed.")
        # against what was approved: an earlier edit without approval is a change too
        change = _difference(place, store, old.rel, raw, old.raw if store.approved(old) else None)
        approval.show(context, "\n".join([f"[1] {old.key}", *change]))
        if approval.ask(context, [1], noun="change") is None:
            return Result({"saved": []}, approval.REJECTED, exit_code=1)
        with Writer(store) as writer:
            if files.sha256(store.read_bytes(old.rel)) != old.sha256:
                kept = True
                raise IntegrityError(
                    f"the file changed while you edited it; nothing was written, and your text is in {path}.",
                    file=old.key,
                    hint="Edit it again.",
                )
            writer.put(old.rel, raw)
            writer.commit()
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    notes = trust.remember(place, {old.key: files.sha256(raw)})
    return Result({"saved": [{"id": made.id, "file": old.key}]}, f"Saved {old.key}", notes)


def _the_memory(place, id, scope):
    stores = [place.store_of(scope)] if scope else place.need_stores()
    for store in stores:
        found = plan.find(store, id)
        if found is not None:
            return store, found
    raise NotFound(f"there is no memory `{id}`.", hint="engram search finds ids.")


def _open(editor, path):
    try:
        subprocess.run([*shlex.split(editor), path], check=True)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise UsageError(f"the editor `{editor}` failed: {error}", hint="Set VISUAL or EDITOR.") from None
