"""Export to a file and import from what others wrote: `engram mem export` and `import`.

The only part of the tier that touches files of the user's choosing. Must not know terminals.
"""

from __future__ import annotations

import json
import os

from engram import files
from engram.errors import Result, UsageError, diagnostic
from engram.mem import answers, export, foreign, projects
from engram.mem.importing import Import
from engram.mem.refusals import Refusal


def export_to(tier, path, *, project="", force=False):
    """Write everything, or one project, to a file of mode 600. Returns a Result.

    An earlier export (or an empty file) of that name is replaced; anything else only with `force`.
    """
    path = os.path.abspath(path)
    before = files.read_regular(path, limit=foreign.LARGEST)
    if before and not force and not foreign.is_export(before):
        raise UsageError(f"{path} is there already, and no export.", hint="Give another name, or --force to replace it.")
    with tier.database.reading() as connection:
        name = projects.check_name(tier, connection, project) if project else None
        made = export.document(connection, tier.clock(), name)
    data = json.dumps(made, ensure_ascii=False, indent=2).encode("utf-8") + b"\n"
    files.replace(path, data, expected=before, mode=0o600)
    counts = {kind: len(made.get(kind, ())) for kind in ("sessions", "observations", "prompts", "relations", "revisions")}
    return Result({"file": path, "version": made["version"], **counts}, f"Exported {_listed(counts)} to {path}.")


def import_from(tier, path, progress=lambda label, done, total: None):
    """Take in an export, a database or a chunk folder, all or nothing. Returns a Result; nothing beside `path` is written.

    `progress(label, done, total)` hears how far a long one is.
    """
    path = os.path.abspath(path)
    if tier.database.exists() and os.path.realpath(path) == os.path.realpath(tier.database.path):
        raise UsageError("this is the database that session memory is kept in.")
    rows, notes = foreign.read(path)
    with tier.database.writing() as connection:
        work = Import(connection, rows, tier.clock())
        try:
            work.run(progress)
        except (Refusal, foreign.Malformed) as error:
            error.file = error.file or path
            raise
    counts = work.counts
    new = {kind: counts[kind] for kind in ("sessions", "observations", "prompts", "relations", "revisions")}
    text = f"Imported {_listed(new)}; {counts['updated']} updated, {counts['unchanged'] + counts['skipped']} already there."
    if work.redacted:
        text += f" Secrets or private parts were redacted in {answers.counted(work.redacted, 'text')}."
    found = [diagnostic("mem.import-skipped", "warning", note, file=path) for note in notes]
    return Result({"file": path, **counts, "redacted": work.redacted}, text, found)


def _listed(counts):
    return ", ".join(answers.counted(number, kind[:-1]) for kind, number in counts.items())
