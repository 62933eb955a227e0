"""`engram link` and `engram unlink`: for the hosts named, for all on this machine, or a list of how they stand.

Must not know formats: `engram.link` plans and applies. Linking a workspace is acting in it, so it also trusts it.
"""
from __future__ import annotations

import os
import subprocess  # one host is asked for its version

from engram.editors import source
from engram.errors import EngramError, Result, StorageError, UsageError
from engram.hosts import table
from engram.link import apply, launcher, plan, registration, site
from engram.store import trust

PROBE_SECONDS = 2


def options_link(parser):
    _common(parser)
    parser.add_argument("--launcher", choices=launcher.FORMS, default="auto", help="how the entry starts Engram")
    parser.add_argument("--force", action="store_true", help="replace an entry of our name that runs something else")
    parser.add_argument("--commit-approval", choices=("prompt", "approve"), help="Codex: what it does before engram_commit")


def options_unlink(parser):
    _common(parser)


def _common(parser):
    parser.add_argument("hosts", nargs="+", metavar="HOST", help="a host, `all`, or `list`: "
                        + ", ".join(row.name for row in table.HOSTS))
    parser.add_argument("--plan", action="store_true", help="print what would change, change nothing")
    parser.add_argument("--dir", metavar="DIR", help="dsh: where the bundle goes (default: a folder in your own Engram folder)")
    parser.add_argument("--no-hooks", action="store_true", help="leave hooks alone")
    parser.add_argument("--no-mcp", action="store_true", help="leave the MCP registration alone")
    parser.add_argument("--no-instructions", action="store_true", help="leave instructions, skill and command alone")


def run_link(context, args):
    """Link hosts, or list them."""
    where = site_of(context)
    if "list" in args.hosts:
        return _listing(where)
    hosts, skipped = _chosen(args.hosts, where)
    if args.commit_approval and all(row.name != "codex" for row in hosts):
        raise UsageError("--commit-approval is for codex.")
    options = _options(args, launcher=args.launcher, force=args.force, approval=args.commit_approval)
    overlay, rows = {}, list(skipped)
    for host in hosts:
        options.args_key = host.name != "opencode" or not options.mcp or reads_args_key(where)
        rows.append(_one(host, where, options, args, overlay, single=len(hosts) == 1 and not skipped))
    notes = [] if where.user or args.plan or not any(row["ok"] for row in rows) else trust.trust_workspace(context.place)
    return _result(rows, where, args.plan, notes)


def run_unlink(context, args):
    """Take hosts' links out again."""
    where = site_of(context)
    if "list" in args.hosts:
        return _listing(where)
    everything = "all" in args.hosts
    hosts = [row for row in table.HOSTS if row.shape != "bundle"] if everything else _chosen(args.hosts, where)[0]
    rows = [_undo(host, where, _options(args), args, {}, single=len(hosts) == 1) for host in hosts]
    if everything:
        rows = [row for row in rows if row["status"] != "not linked"]
    if not rows:
        return Result({"scope": _scope(where), "hosts": []}, "not linked: nothing of Engram's is here.")
    return _result(rows, where, args.plan, [])


def site_of(context, *, user=None, refresh=False):
    """Return the Site of a command: this workspace, or the user level with `--global` or `user`.

    Raises StorageError without a user folder.
    """
    place = context.place
    if place.user_dir is None:
        raise StorageError("no home folder can be told, so there is nowhere to keep copies.", hint="Set HOME or ENGRAM_DATA_DIR.")
    return site.Site(place.root, place.user_dir, context.env, user=context.global_only if user is None else user, refresh=refresh,
                     archive=site.archive())


def _chosen(names, where):
    """Return (rows of the hosts to do, report rows of those that are skipped)."""
    if "all" in names:
        known = [row for row in table.HOSTS if row.shape != "bundle"]
        away = [row for row in known if not where.here(row)]
        why = "it is not on this machine: no program on PATH, no folder of its own."
        return [row for row in known if row not in away], [_row(row, where, "skipped", notes=[why]) for row in away]
    rows = []
    for name in names:
        row = table.find(name.lower())
        if row is None:
            raise UsageError(f"there is no host `{name}`.", hint="Known: " + ", ".join(row.name for row in table.HOSTS) + ", all, list.")
        if row not in rows:
            rows.append(row)
    return rows, []


def _options(args, **more):
    if args.dir and not any(table.find(name.lower()) is table.find("dsh") for name in args.hosts):
        raise UsageError("--dir is for dsh.")
    folder = os.path.abspath(args.dir) if args.dir else None
    return plan.Options(folder=folder, mcp=not args.no_mcp, hooks=not args.no_hooks, instructions=not args.no_instructions, **more)


def _one(host, where, options, args, overlay, *, single):
    """Link one host and return its report row; with one host only, what goes wrong is raised."""
    try:
        planned = plan.build(host, where, options, apply.read)
        if args.plan:
            made = [(change, None) for change in apply.preview(planned, where.user_dir, overlay=overlay)]
            overlay.update((change.path, change.after) for change, _ in made)
        else:
            made = apply.link(planned, where)
    except EngramError as error:
        if single:
            raise
        return _row(host, where, "refused", error=error)
    notes = [*planned.notes, *_session_note(host, planned)]
    if planned.skipped:
        notes.insert(0, f"no registration here: {planned.skipped}")
    files = [change for change in made if change[0].after != change[0].before]
    status = ("planned" if args.plan else "linked") if files else "unchanged" if planned.edits else "printed" if planned.say else "skipped"
    return _row(host, where, status, files, notes, planned.say)


def _undo(host, where, options, args, overlay, *, single):
    try:
        planned = plan.build(host, where, options, apply.read, undo=True)
        planned.notes.clear()
        made = ([(change, None) for change in apply.preview(planned, where.user_dir, undo=True)] if args.plan
                else apply.unlink(planned, where))
    except EngramError as error:
        if single:
            raise
        return _row(host, where, "refused", error=error)
    files = [change for change in made if change[0].after != change[0].before]
    say = []
    if host.name == "claude" and where.user and options.mcp and ("all" not in args.hosts or in_claude_json(where)):
        say = ["claude mcp remove --scope user engram"]
    status = ("planned" if args.plan else "unlinked") if files or say else "not linked"
    return _row(host, where, status, files, planned.notes, say)


def _session_note(host, planned):
    for edit in planned.edits:
        if edit.part == "mcp" and edit.exact:
            data = apply.read(edit.path)
            if data is not None and registration.serves_session(host, source.decode(data)):
                return [f"{edit.path}: the entry `engram` starts `engram mcp`, the server of the session surface; it stays. "
                        "--force makes it the memory server."]
    return []


def _row(host, where, status, changes=(), notes=(), say=(), error=None):
    done = [{"file": change.path, "action": "removed" if change.after is None else "created" if change.before is None else "changed",
             "parts": change.parts, "copy": copy} for change, copy in changes]
    row = {"host": host.name, "scope": _scope(where), "status": status, "ok": error is None, "files": done, "notes": list(notes),
           "run": list(say)}
    if error is not None:
        row["error"] = {"code": error.code, "message": str(error), "exit_code": error.exit_code}
    return row


def _scope(where):
    return "user" if where.user else "workspace"


def _result(rows, where, planned, notes):
    failed = [row for row in rows if not row["ok"]]
    lines = []
    for row in rows:
        lines.append(f"{row['host']}: {row['status']}" + (" (nothing was written)" if planned and row["files"] else ""))
        for one in row["files"]:
            action = {"removed": "remove", "created": "create", "changed": "change"}[one["action"]] if planned else one["action"]
            lines.append(f"  {action} {short(one['file'], where)} ({', '.join(one['parts'])})"
                         + (f"; before Engram: {one['copy']}" if one["copy"] else ""))
        lines += [f"  run: {line}" for line in row["run"]]
        lines += [f"  {line}" for line in row["notes"]]
        if not row["ok"]:
            lines.append(f"  {row['error']['message']}")
    text = "\n".join(lines)
    data = {"scope": _scope(where), "plan": bool(planned), "hosts": rows}
    if failed:
        message = "; ".join(f"{row['host']}: {row['error']['message']}" for row in failed)
        code = max(row["error"]["exit_code"] for row in failed)
        return Result(data, text, notes, exit_code=code, error=(failed[0]["error"]["code"], message))
    return Result(data, text, notes)


def short(path, where):
    """Return a path as a person reads it: from the workspace on where it is in it."""
    folder = where.workspace.rstrip(os.sep) + os.sep
    return path[len(folder):] if not where.user and path.startswith(folder) else path


def _listing(where):
    """List every host: whether it is here, and how its registration stands at both levels. Writes nothing."""
    rows, lines = [], []
    for host in table.HOSTS:
        if host.shape == "bundle":
            continue
        row = {"host": host.name, "title": host.title, "found": where.here(host), "workspace": None, "user": None}
        for level in ("workspace", "user"):
            row[level] = standing(host, where, level)
        rows.append(row)
        here = "here" if row["found"] else "-"
        lines.append(f"{host.name:12} {here:5} workspace: {row['workspace']['status']:12} user: {row['user']['status']}")
        levels = [row[level] for level in ("workspace", "user")]
        lines += [f"             {level['file']}: {level['reason']}" for level in levels if level.get("reason")]
    return Result({"hosts": rows}, "\n".join(lines))


def standing(host, where, level):
    """Return how a host's registration stands at a level (workspace, user): `status` linked, not linked, foreign,
    unreadable or - (no such level), and where there is one `file`, `command` (its words), `entry` (its value), `reason`."""
    templates = host.user_mcp if level == "user" else host.workspace_mcp
    if host.name == "claude" and level == "user":
        return {"status": "linked" if in_claude_json(where) else "not linked", "file": claude_json(where)}
    if not templates:
        return {"status": "-"}
    paths = [where.path(template) for template in templates]
    found = {"status": "not linked", "file": paths[0]}
    for path in paths:
        try:
            data = apply.read(path)
            value = None if data is None else registration.found(host, source.decode(data))
        except EngramError as error:
            where_in = f"line {error.line}: " if error.line else ""
            return {"status": "unreadable", "file": path, "reason": where_in + error.message}
        if value is not None:
            status = "linked" if registration.is_ours(value) else "foreign"
            return {"status": status, "file": path, "command": registration.words_of(value), "entry": value}
    return found


def claude_json(where):
    """Return the path of Claude Code's own user file."""
    folder = where.env.get("CLAUDE_CONFIG_DIR")
    return os.path.join(where.path("{claude}") if folder else where.home, ".claude.json")


def in_claude_json(where):
    """Return whether Claude Code's own user file has an entry of ours; link never writes that file."""
    try:
        data = apply.read(claude_json(where))
        return data is not None and registration.is_ours(registration.found(table.find("claude"), source.decode(data)))
    except EngramError:
        return False


def reads_args_key(where):
    """Ask the OpenCode on PATH for its version: old ones reject a key that newer ones need not have (hosts.md, 1.1)."""
    program = where.which("opencode")
    if program is None:
        return True
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", timeout=PROBE_SECONDS,
                              stdin=subprocess.DEVNULL, env=dict(where.env), check=False)
    except (OSError, subprocess.SubprocessError):
        return True
    return registration.takes_args_key(done.stdout)
