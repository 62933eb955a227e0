"""`engram upgrade`: bring what `link` wrote up to date, here and for the user, and touch nothing else."""
from __future__ import annotations

from engram.cli import link as linking
from engram.editors import source
from engram.errors import EngramError, Result, diagnostic
from engram.hosts import table
from engram.link import apply, plan


def options_upgrade(parser):
    parser.add_argument("--plan", action="store_true", help="print what would change, change nothing")


def run_upgrade(context, args):
    """Pin entries anew and refresh instructions, skills and hooks that are Engram's, in the workspace and for the user."""
    rows, notes, overlay = [], [], {}
    for user in (True,) if context.global_only else (False, True):
        where = linking.site_of(context, user=user, refresh=True)
        for host in table.HOSTS:
            if host.shape == "bundle":
                continue
            try:
                rows += _upgraded(host, where, args.plan, overlay, notes)
            except EngramError as error:
                notes.append(diagnostic("upgrade.refused", "warning", f"{host.name}: {error.message}", file=error.file,
                                        remediation=error.hint))
    done = "would be changed" if args.plan else "changed"
    lines = [f"{row['host']} ({row['scope']}): {row['file']} ({', '.join(row['parts'])})"
             + (f"; before Engram: {row['copy']}" if row["copy"] else "") for row in rows]
    lines.append(f"{len(rows)} files {done}." if rows else "Everything of Engram's is up to date.")
    return Result({"plan": args.plan, "files": rows}, "\n".join(lines), notes, exit_code=1 if notes else 0)


def _upgraded(host, where, planned_only, overlay, notes):
    options = plan.Options(args_key=host.name != "opencode" or linking.reads_args_key(where))
    planned = plan.build(host, where, options, apply.read)
    for edit in planned.edits:
        _check(edit)
    if planned_only:
        made = [(change, None) for change in apply.preview(planned, where.user_dir, overlay=overlay)]
        overlay.update((change.path, change.after) for change, _ in made)
    else:
        made = apply.link(planned, where)
    return [{"host": host.name, "scope": "user" if where.user else "workspace", "file": change.path, "parts": change.parts, "copy": copy}
            for change, copy in made if change.after != change.before]


def _check(edit):
    """Raise Unreadable for a file that can't be edited and may hold something of ours: others are nobody's business here."""
    data = apply.read(edit.path) if edit.exact else None
    if data and b"engram" in data:
        try:
            edit.drop(source.decode(data), {})
        except source.Unreadable as error:
            error.file = edit.path
            raise
        except EngramError:
            pass  # somebody else's server of our name
