"""`engram mem …`: session memory at a terminal, by the functions that the `mem_*` tools call.

Must not know how anything is stored or found. A person may name a new project with --project where an agent may not.
"""

from __future__ import annotations

import argparse
import os

from engram.errors import UsageError
from engram.mem import care, doctor, limits, overview, reading, transfer, writing
from engram.mem.refusals import Refusal
from engram.mem.tier import Tier

DEFAULT_FILE = "engram-export.json"


def options_mem(parser):
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name, help):
        made = verbs.add_parser(name, help=help, description=help[:1].upper() + help[1:] + ".", allow_abbrev=False)
        made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON envelope")
        made.add_argument("--workspace", metavar="DIR", default=argparse.SUPPRESS, help="work as if started in DIR")
        made.add_argument("--project", default="", metavar="NAME", help="the project, when not the one of this folder")
        return made

    search = verb("search", "find observations for words; without words the newest")
    search.add_argument("words", nargs="*", metavar="WORDS")
    search.add_argument("--all", action="store_true", help="in all projects")
    search.add_argument("--type", default="")
    search.add_argument("--scope", default="")
    search.add_argument("--limit", type=int, default=limits.SEARCH_DEFAULT)
    search.add_argument("--match", default="all", choices=("all", "any"), help="whether every word must occur")
    save = verb("save", "save an observation; the text from standard input when left out or -")
    save.add_argument("title")
    save.add_argument("text", nargs="?", default="-")
    save.add_argument("--type", default="manual")
    save.add_argument("--scope", default="project")
    save.add_argument("--topic", default="", metavar="KEY", help="a later save with the same key updates this one")
    context = verb("context", "show sessions, prompts and observations of the project")
    context.add_argument("--scope", default="")
    context.add_argument("--max-bytes", type=int, default=limits.CONTEXT_BYTES)
    context.add_argument("--compact", action="store_true", help="titles without texts")
    show = verb("show", "show an observation whole, with its earlier revisions")
    show.add_argument("id", type=_id)
    timeline = verb("timeline", "show what was noted around an observation in its session")
    timeline.add_argument("id", type=_id)
    timeline.add_argument("--before", type=int, default=limits.TIMELINE_DEFAULT)
    timeline.add_argument("--after", type=int, default=limits.TIMELINE_DEFAULT)
    verb("stats", "count sessions, observations, prompts and projects")
    delete = verb("delete", "delete an observation: marked as deleted, or gone for good with --hard")
    delete.add_argument("id", type=_id)
    delete.add_argument("--hard", action="store_true", help="for good, with its earlier revisions")
    check = verb("doctor", "check the database and what is in it")
    check.add_argument("--check", default="", metavar="NAME", help="only this check")
    projects = verb("projects", "list projects, or merge misspelt ones into one")
    projects.add_argument("--merge", nargs=2, metavar=("FROM", "TO"), help="move everything of FROM (names with commas) to TO")
    export = verb("export", f"write everything, or one project, to a file ({DEFAULT_FILE})")
    export.add_argument("file", nargs="?", default=DEFAULT_FILE)
    export.add_argument("--force", action="store_true", help="replace a file that is there")
    take = verb("import", "take in an export, a database or a folder with .engram/ chunks")
    take.add_argument("path")


def run_mem(context, args):
    tier = Tier(folder=context.cwd, env=context.env, override=args.project if args.verb == "save" else "", manual=True)
    try:
        return VERBS[args.verb](context, tier, args)
    except Refusal as error:
        if error.code == "ambiguous_project":
            error.hint = "Name one with --project."  # the token of the tools is for agents, who have to ask first
        raise
    finally:
        tier.close()


def _save(context, tier, args):
    text = context.stdin_text() if args.text == "-" else args.text
    return writing.save(tier, title=args.title, content=text, type=args.type, scope=args.scope, topic_key=args.topic)


def _delete(context, tier, args):
    return writing.delete(tier, id=args.id, expected_project=args.project or None, hard_delete=args.hard)


def _projects(context, tier, args):
    if args.merge:
        return care.merge_projects(tier, sources=args.merge[0], to=args.merge[1])
    return overview.list_projects(tier)


def _file(context, name):
    return os.path.join(context.cwd, os.path.expanduser(name))


def _id(word):
    digits = word.removeprefix("mem:").removeprefix("#")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise UsageError(f"`{word}` is not the number of an observation.")
    return int(digits)


VERBS = {
    "search": lambda context, tier, args: reading.search(
        tier,
        query=" ".join(args.words),
        project=args.project,
        all_projects=args.all,
        type=args.type,
        scope=args.scope,
        limit=args.limit,
        match_mode=args.match,
    ),
    "save": _save,
    "context": lambda context, tier, args: overview.context(
        tier, project=args.project, scope=args.scope, max_bytes=args.max_bytes, compact=args.compact
    ),
    "show": lambda context, tier, args: reading.get_observation(tier, id=args.id, project=args.project),
    "timeline": lambda context, tier, args: reading.timeline(
        tier, observation_id=args.id, before=args.before, after=args.after, project=args.project
    ),
    "stats": lambda context, tier, args: overview.stats(tier, project=args.project),
    "delete": _delete,
    "doctor": lambda context, tier, args: doctor.report(tier, project=args.project, check=args.check),
    "projects": _projects,
    "export": lambda context, tier, args: transfer.export_to(tier, _file(context, args.file), project=args.project, force=args.force),
    "import": lambda context, tier, args: transfer.import_from(tier, _file(context, args.path), context.progress),
}
