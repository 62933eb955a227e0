"""`engram doctor`: everything that could be wrong with Engram here, each with a stable id and what to do.

Changes nothing. Must not know how a check works: each is a function of the context (or the place) that returns
diagnostics. Ids are listed in `doctor_store` and `doctor_hosts`.
"""
from __future__ import annotations

from engram.cli import doctor_hosts, doctor_store
from engram.errors import Result

ORDER = {"error": 0, "warning": 1, "info": 2}
SIGNS = {"error": ("error", "red"), "warning": ("warning", "yellow"), "info": ("ok", "green")}


def options_doctor(parser):
    parser.add_argument("--strict", action="store_true", help="exit 1 on warnings too")
    parser.add_argument("--no-start", action="store_true", help="don't start registered servers")


def run_doctor(context, args):
    """Check the machine, the store and the hosts; exit code 1 on errors, with --strict on warnings too."""
    found = [*doctor_store.findings(context), *doctor_hosts.findings(context, start=not args.no_start)]
    found.sort(key=lambda row: ORDER[row["severity"]])
    counts = {severity: sum(row["severity"] == severity for row in found) for severity in ORDER}
    failed = counts["error"] or args.strict and counts["warning"]
    lines = [line for row in found for line in _lines(context, row)]
    lines.append(f"{counts['error']} errors, {counts['warning']} warnings, {counts['info']} in order.")
    data = {"findings": found, "errors": counts["error"], "warnings": counts["warning"], "strict": args.strict}
    return Result(data, "\n".join(lines), found if context.json else (), exit_code=1 if failed else 0)


def _lines(context, row):
    sign, colour = SIGNS[row["severity"]]
    where = f"{row['file']}: " if "file" in row else ""
    yield f"{context.paint(f'{sign:<8}', colour)}{row['id']:<24} {where}{row['message']}"
    if row.get("remediation"):
        yield f"{'':<8}{'':<24} {row['remediation']}"
