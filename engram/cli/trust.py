"""`engram trust`: look at what a workspace's memories tell an agent to do, and what changed since the last look.

Must not know how hooks inject. Shown are the memories with the authority of an instruction, as they stand in their
files; what was shown is what is recorded, from the same bytes.
"""
from __future__ import annotations

import difflib
from collections import namedtuple

from engram import safety
from engram.errors import EngramError, Result, diagnostic
from engram.store import memory, trust
from engram.store.vault import fault_of

# Keys and bytes of what is in the workspace now (`contents`), keys of what is new, changed and gone since the last
# look among what speaks with authority, `same` how many did not change, `memories` those that speak, by key, `texts` the old
# text of each changed one (None when it wasn't kept), `faults` diagnostics of files that can't be read.
Look = namedtuple("Look", "trust contents memories new changed gone same texts faults")


def options_trust(parser):
    parser.add_argument("--show", action="store_true", help="only show; record nothing")
    parser.add_argument("--all", action="store_true", help="show unchanged ones too")


def run_trust(context, args):
    """Show what counts as an instruction in this workspace, and record it as seen.

    A person at a terminal is asked first; without one, running the command is the answer.
    """
    place = context.place
    place.store_of("workspace")
    look = compare(place)
    shown = sorted(look.memories) if args.all else [*look.new, *look.changed]
    text = "\n".join([*(_entry(look, key) for key in sorted(shown)), *(f"GONE     {key}\n" for key in look.gone), _summary(place, look)])
    data = {"workspace": place.root, "new": look.new, "changed": look.changed, "gone": look.gone, "unchanged": look.same,
            "reference": len(look.contents) - len(look.memories), "looked": look.trust.looked, "recorded": False}
    notes = place.all_diagnostics() + look.faults
    if args.show:
        return Result(data, text + "Nothing was recorded.", notes)
    if context.interactive and not context.json and not _agreed(context, text, place):
        return Result(data, "Not trusted; nothing was recorded.", notes, exit_code=1)
    failed = trust.look(place, look.contents)
    data["recorded"] = not failed
    said = "Recorded: hooks load these from now on." if not failed else "Nothing could be recorded."
    return Result(data, said if context.interactive and not context.json else text + said, notes + failed, exit_code=5 if failed else 0)


def compare(place):
    """Return the Look of a place's workspace: what is there now against the last look. Writes nothing."""
    store, faults, contents, memories = place.workspace, [], {}, {}
    for rel, _ in store.files(faults) if store.exists else ():
        try:
            raw = store.read_bytes(rel)
            found = memory.parse(raw, rel, store.scope)
        except EngramError as error:
            faults.append(fault_of(error, store.scope, rel))
            continue
        contents[found.key] = raw
        if found.authority == "instruction":
            memories[found.key] = found
    record = trust.read(place)
    seen = record.seen()
    new = [key for key in memories if key not in seen]
    changed = [key for key in memories if key in seen and seen[key][0] != memories[key].sha256]
    gone = sorted(key for key, (_, text) in seen.items() if key not in contents and text is not None)
    return Look(record, contents, memories, sorted(new), sorted(changed), gone, len(memories) - len(new) - len(changed),
                {key: seen[key][1] for key in changed}, faults)


def findings(place):
    """Return the diagnostics of a workspace that is not trusted, or of what changed since its owner's last look."""
    if not place.workspace.exists or place.settings.get("trust") == "off":
        return []
    look = compare(place)
    if not look.trust.workspace_trusted:
        said = f"this workspace is not trusted yet; hooks don't load its {len(look.contents)} memories."
        return [diagnostic("trust.workspace", "warning", said, file=place.workspace.root,
                           remediation="Run engram trust to look at them.")] if look.contents else []
    since = f" since your last look on {look.trust.looked}"
    return [diagnostic("trust.changed", "warning", said + since + effect, file=key, remediation="Run engram trust to look at it.")
            for said, effect, keys in (("new", ", so it counts as reference.", look.new),
                                       ("changed", ", so it counts as reference.", look.changed), ("gone", ".", look.gone)) for key in keys]


def _agreed(context, text, place):
    context.show(text)
    answer = context.ask(f"Let hooks load these in {place.root}? [y/N] ")
    return (answer or "").strip().lower() in ("y", "yes")


def _entry(look, key):
    found, word = look.memories[key], "NEW" if key in look.new else "CHANGED" if key in look.changed else "SEEN"
    old = look.texts.get(key)
    now = found.raw.decode("utf-8", "replace").replace("\r\n", "\n")
    lines = now.splitlines()
    if old is not None:
        before = old.decode("utf-8", "replace").replace("\r\n", "\n").splitlines()
        lines = list(difflib.unified_diff(before, lines, "last look", "now", lineterm=""))
    orders = [f"  ! line {row.line} reads like an order to the reader, so load leaves this memory out"
              for row in safety.instruction_lines(now)]
    return "\n".join([f"{word:<8} {key}  ({found.type} {found.id})", *orders, *("  | " + line for line in lines), ""])


def _summary(place, look):
    parts = [f"{len(keys)} {word}" for word, keys in (("new", look.new), ("changed", look.changed), ("gone", look.gone)) if keys]
    what = f"{len(look.memories)} rules and skills" + (f" ({', '.join(parts)})" if parts else " (none changed since your last look)")
    reference = len(look.contents) - len(look.memories)
    state = "" if look.trust.workspace_trusted else "  Not trusted so far."
    off = "  The setting `trust` is off: everything counts as trusted." if not look.trust.on else ""
    return f"{place.root}: {what}, {reference} for reference.{state}{off}\n"
