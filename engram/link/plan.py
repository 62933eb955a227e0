"""Plan a link or its undoing: which edits a host needs, and what they make of the files. Pure, but for `read`.

Must not know the store, nor write. `read(path) -> bytes | None` gives the files; nothing else is looked at. Planning
comes first and whole: when one file of a host can't be edited, nothing of that host is written.
"""
from __future__ import annotations

import copy
import itertools
import os
import shlex

from engram.editors import markdown, source
from engram.editors.source import Foreign
from engram.errors import EngramError
from engram.link import bundle, hooks, instructions, launcher, registration


class Options:
    """What the person asked for: parts left out, the launcher's form, `force`, Codex's approval mode.

    `args_key` is False for an OpenCode that rejects that key. `folder` is where a bundle goes (None: its usual place).
    """

    __slots__ = ("approval", "args_key", "folder", "force", "hooks", "instructions", "launcher", "mcp")

    def __init__(self, *, mcp=True, hooks=True, instructions=True, launcher="auto", force=False, approval=None, args_key=True,
                 folder=None):
        self.folder = folder
        self.mcp = mcp
        self.hooks = hooks
        self.instructions = instructions
        self.launcher = launcher
        self.force = force
        self.approval = approval
        self.args_key = args_key


class Change:
    """What becomes of one file: `before` and `after` are bytes, or None for no file. `parts` are those that changed.

    `record` is what to keep for the undoing: `created` (whether link made the file) and `marks`; None when nothing
    of ours is left in the file.
    """

    __slots__ = ("after", "before", "parts", "path", "record")

    def __init__(self, path, before, after, parts, record):
        self.path = path
        self.before = before
        self.after = after
        self.parts = parts
        self.record = record


class Plan:
    """What a link of one host comes to: `edits`, `notes` for the person, `say` (lines to print, such as a command to run),
    `copy` (whether the kept copy is needed), `skipped` (why there is no registration, or None), `refresh` (as the site says).

    `beside` are edits that were not asked for: they tell what else of ours a file may hold.
    """

    __slots__ = ("beside", "copy", "edits", "notes", "refresh", "say", "skipped")

    def __init__(self, refresh=False):
        self.refresh = refresh
        self.edits = []
        self.beside = []
        self.notes = []
        self.say = []
        self.copy = False
        self.skipped = None


def build(host, site, options, read, *, undo=False):
    """Return the Plan of `host` at `site`; for an undoing it covers every file that ours may be in.

    Raises UsageError for a launcher that can't be.
    """
    plan = Plan(site.refresh)
    if host.shape == "bundle":
        folder = options.folder or os.path.join(site.user_dir, bundle.NAME)
        plan.edits += bundle.bundle_edits(folder)
        plan.say += [] if undo else bundle.next_steps(folder)
        return plan
    _plan_hooks(plan, host, site, options.hooks, undo)
    if options.mcp:
        _plan_registration(plan, host, site, options, read, undo)
    else:
        plan.beside += [registration.edit(host, path, [registration.NAME]) for path in _paths(host, site, "mcp")]
    if options.instructions:
        _plan_instructions(plan, host, site, read, undo)
    else:
        plan.beside += [instructions.block(path, host.name) for path in _paths(host, site, "text")]
    if host.name == "cursor" and site.user:  # all its parts are in a plugin, which needs a manifest
        for edits in (plan.edits, plan.beside):
            parts = dict.fromkeys(edit.part for edit in edits)
            edits += [instructions.plugin(site.path("{plugin}/.cursor-plugin/plugin.json"), site.version, part) for part in parts]
    return plan


def changes(plan, read, records, *, undo=False):
    """Return the list of Change that the edits of `plan` come to; files that stay as they are are left out.

    `records` maps paths to what was kept of earlier links. Raises what the edits raise, with the file's path.
    """
    made, by_path = [], {}
    for edit in plan.edits:
        by_path.setdefault(edit.path, []).append(edit)
    for path, edits in by_path.items():
        before, optional = read(path), all(edit.optional for edit in edits)
        beside = [edit for edit in plan.beside if edit.path == path]
        try:
            text = None if before is None else _decoded(before, exact=edits[0].exact)
            change = _change(path, edits, beside, before, text, records.get(path) or {}, plan.notes, undo, plan.refresh)
        except EngramError as error:
            error.file = error.file or path
            if not optional:
                raise
            _note(plan.notes, error)
            continue
        if change is not None:
            made.append(change)
    return made


def _change(path, edits, beside, before, text, record, notes, undo, refresh):
    if text is None or not any(edit.there(text) for edit in [*edits, *beside]):
        record = {}  # what an interrupted or long gone link left says nothing about this file
    if refresh:
        edits = [edit for edit in edits if text is not None and edit.holds(text, record.get("marks", {}))]
    if not edits or undo and text is None:
        return None
    marks = copy.deepcopy(record.get("marks", {}))
    created = record.get("created", before is None if not undo else None)
    parts, new = [], text
    for edit in reversed(edits) if undo else edits:
        if undo and not new:
            break
        try:
            done = edit.drop(new, marks) if undo else edit.add(new, marks)
        except Foreign as error:
            error.file = path
            if not (edit.optional or undo):
                raise
            _note(notes, error)
            continue
        if done != new:
            parts.append(edit.part)
        new = done
    if undo and new != text and (edits[0].blank(new) and (created or created is None and not edits[0].leaves)
                                 or created is None and _all_ours(edits, text)):
        new = None
    if new == text and marks == record.get("marks", {}):
        return None
    kept = new is not None and (not undo or any(edit.there(new) for edit in [*edits, *beside]))
    return Change(path, before, None if new is None else _encoded(new), parts, {"created": bool(created), "marks": marks} if kept else None)


def _note(notes, error):
    if str(error) not in notes:  # a plan is gone through more than once
        notes.append(str(error))


def _all_ours(edits, text):
    """Return whether the text is what some of the edits make of no file: then nobody else wrote any of it (a clone, whose
    records are with a colleague)."""
    for size in range(1, len(edits) + 1):
        for some in itertools.combinations(edits, size):
            made, marks = None, {}
            for edit in some:
                made = edit.add(made, marks)
            if made == text:
                return True
    return False


def _decoded(data, *, exact):
    if exact or data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data:
        return source.decode(data)
    return data.decode("utf-8", "surrogateescape")


def _encoded(text):
    return text.encode("utf-8", "surrogateescape")


def _paths(host, site, kind):
    """Return the files of a host for `kind` (mcp, text, skill, command) at the level of the site."""
    return [site.path(template) for template in getattr(host, f"{'user' if site.user else 'workspace'}_{kind}")]


def _plan_hooks(plan, host, site, asked, undo):
    words = launcher.hook_words(site)
    edits = hooks.edits(host, site, words or [registration.NAME])
    if not asked:
        plan.beside += edits
    elif edits and words is None and not undo:
        plan.beside += edits
        plan.notes.append("hooks are left out: `engram` is neither on PATH nor runs as the single file (`engram install` puts it there).")
    elif edits:
        plan.edits += edits
        plan.copy = plan.copy or words is not None and words[-1] == launcher.kept_copy(site, "engram")


def _plan_registration(plan, host, site, options, read, undo):
    flags = [registration.ALWAYS] if host.name == "claude" and not _hooked(plan, host, site, read) else []
    paths = _paths(host, site, "mcp")
    if not paths and (site.user is False or host.name != "claude"):
        plan.skipped = host.no_workspace
        return
    chosen = launcher.choose(site, options.launcher, shared=not site.user)
    plan.notes += chosen.notes
    plan.copy = plan.copy or chosen.form == "file"
    if not paths:  # Claude Code rewrites its own user file all the time: its command is the one door (hosts.md, 1.5)
        words = ["claude", "mcp", "add", "--scope", "user", registration.NAME, "--", *chosen.words, *flags]
        plan.say.append(" ".join(map(shlex.quote, words)))
        return
    plan.edits += [registration.edit(host, path, chosen.words, force=options.force, flags=flags, args_key=options.args_key,
                                     approval=options.approval, tidy=site.refresh and host.name == "claude")
                   for path in (paths if undo else [_pick(host, paths, read)])]


def _plan_instructions(plan, host, site, read, undo):
    texts = _paths(host, site, "text")
    for path in texts if undo else [_pick_text(texts, read)] if texts else []:
        front = instructions.CURSOR_FRONT if path.endswith(".mdc") else instructions.WINDSURF_FRONT if ".windsurf" in path else ()
        plan.edits.append(instructions.block(path, host.name, front=front, also=_imports(host, site, path, read),
                                             strict=path != texts[0]))
    plan.edits += [instructions.skill(path, host.name) for path in _paths(host, site, "skill")]
    plan.edits += [instructions.slash(path) for path in _paths(host, site, "command")]


def _pick_text(paths, read):
    """Return the file for the block: the first, but where only the other one is there and says something, that one: a new
    file would hide it from the host (OpenCode reads CLAUDE.md where there is no AGENTS.md)."""
    there = [path for path in paths if read(path) is not None]
    return paths[0] if paths[0] in there else next((path for path in there if _without_block(read(path))), paths[0])


def _imports(host, site, path, read):
    """Return the lines that keep an AGENTS.md in Claude's sight: it reads that file only where there is no CLAUDE.md."""
    if host.name != "claude" or site.user:
        return ()
    own = _without_block(read(path))
    return ("@AGENTS.md", "") if not own and _without_block(read(os.path.join(site.workspace, "AGENTS.md"))) else ()


def _without_block(data):
    """Return what a Markdown file says beside our block, "" for no file; all of it where the markers are in disorder."""
    if data is None:
        return ""
    text = data.decode("utf-8", "surrogateescape")
    try:
        return markdown.drop_block(text).strip()
    except EngramError:
        return text.strip()


def _hooked(plan, host, site, read):
    """Return whether an Engram hook for `host` is being installed or is there, at either level."""
    if any(edit.part == "hooks" for edit in plan.edits):
        return True
    shape = hooks.SHAPES[host.name]
    for template in (shape.workspace, shape.user):
        try:
            data = read(site.path(template))
            if data and hooks.installed(host.name, source.decode(data)):
                return True
        except EngramError:  # a file that nobody can read holds no hook that runs
            continue
    return False


def _pick(host, paths, read):
    """Return the file for the registration: of several the one that has our entry, or is there; else the first."""
    there = [path for path in paths if read(path) is not None]
    for path in there:
        try:
            if registration.found(host, source.decode(read(path))) is not None:
                return path
        except EngramError:
            continue
    return next((path for path in there if path.endswith(".jsonc")), there[0] if there else paths[0])
