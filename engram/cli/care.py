"""Care of a store: verify, repair, rebuild-index, archive."""
from __future__ import annotations

from engram.errors import NotFound, Result, diagnostic
from engram.store import dates, index, integrity, writing

SCOPES = ("workspace", "global", "both")


def options_verify(parser):
    parser.add_argument("--scope", choices=SCOPES, help="which store (default: all in reach)")


def run_verify(context, args):
    """Check every memory against its approved hash; exit code 1 on a mismatch."""
    return integrity.verify(context.place, args.scope)


def options_repair(parser):
    parser.add_argument("--scope", choices=SCOPES, help="which store (default: all in reach)")


def run_repair(context, args):
    """List what can't be read and rebuild what is derived; a memory file is never touched."""
    place, rows, done = context.place, [], []
    for store in place.need_stores():
        if args.scope not in (None, "both", store.scope):
            continue
        rows += integrity.faults(store)
        if not store.hashes().whole or store.read_journal():
            with writing.Writer(store):  # entering finishes what a crash left
                writing.record(store, [])
            done.append(f"{store.scope}:memory.hashes.json: hashes file written whole")
    count = _rebuild(context, args.scope)
    done.append(f"index rebuilt: {count:,} memories")
    lines = [f"{row['file']}: {row['message']}. {row['remediation'] if row.get('remediation') else ''}".rstrip() for row in rows]
    lines += done
    lines.append(f"{len(rows)} files can't be used; they were left as they are." if rows else "Every memory file can be read.")
    return Result({"faults": rows, "done": done, "indexed": count}, "\n".join(lines), place.all_diagnostics(), exit_code=1 if rows else 0)


def run_rebuild_index(context, args):
    """Build the derived index anew."""
    count = _rebuild(context, None)
    return Result({"indexed": count}, f"Index rebuilt: {count:,} memories.", context.place.all_diagnostics())


def options_archive(parser):
    parser.add_argument("id", help="the memory to retire")
    parser.add_argument("--reason", default="", help="why; written into the archived file")
    parser.add_argument("--scope", choices=SCOPES[:2], help="which store, when both have the id (default: the workspace's)")


def run_archive(context, args):
    """Move a memory to archive/, its hash with it; its bytes stay below three comment lines."""
    place = context.place
    found = _store_with(place, args.id, args.scope)
    old, new = writing.archive(found, args.id, args.reason, dates.stamp())
    notes = [diagnostic("archive.dependants", "warning", f"{row.id} depends on {args.id}.", file=row.key)
             for row in found.memories() if args.id in row.depends_on]
    return Result({"id": args.id, "scope": found.scope, "from": old, "to": new}, f"Archived {found.scope}:{old}\n      to {new}", notes)


def _store_with(place, id, scope):
    """Return the store that has a memory; the workspace's when both have it. Raises NotFound."""
    if scope:
        return place.store_of(scope)
    stores = place.need_stores()
    for store in stores:
        try:
            store.find(id)
        except NotFound:
            continue
        return store
    raise NotFound(f"there is no memory `{id}`.", hint="Run engram list to see what is there.")


def _rebuild(context, scope):
    return sum(index.rebuild(store, context.progress) for store in context.place.need_stores() if scope in (None, "both", store.scope))
