"""`load`, `route`, `search`, `show`, `list`: what an agent or a person reads.

Must not know how memories are chosen (`recall`).
"""
from __future__ import annotations

from engram import recall
from engram.errors import UsageError


def options_load(parser):
    parser.add_argument("query", nargs="*", help="the task; without one, what a session starts with")
    parser.add_argument("--id", action="append", default=[], metavar="ID", help="print this memory whatever the budget (repeat for more)")
    parser.add_argument("--budget", "--budget-tokens", type=int, metavar="TOKENS", help="most tokens to print (default: 1600)")
    parser.add_argument("--disclosure", choices=("auto", "cards", "bodies"), default="auto", help="bodies for the best, or one form")
    parser.add_argument("--limit", type=int, metavar="N", help="most memories to select, 1 to 32 (default: load.limit)")
    parser.add_argument("--all", action="store_true", help="select everything that matches")
    parser.add_argument("--full", action="store_true", help="whole files, every variant, no budget")
    parser.add_argument("--explain", action="store_true", help="say what matched and why others were left out, without bodies")


def quick_load(context, words):
    return recall.load(context.place, " ".join(words))


def run_load(context, args):
    if args.id and args.query:
        raise UsageError("give a task or --id, not both.")
    return recall.load(context.place, " ".join(args.query), ids=args.id, budget=args.budget, disclosure=args.disclosure, full=args.full,
                       explain=args.explain, limit=args.limit, everything=args.all)


def options_route(parser):
    parser.add_argument("query", nargs="*", help="the task")
    parser.add_argument("--explain", action="store_true", help="say what matched and why others were left out")


def run_route(context, args):
    return recall.route(context.place, " ".join(args.query), explain=args.explain)


def options_search(parser):
    parser.add_argument("query", nargs="*", help='words; "a phrase", type:rule, scope:global and tag:release narrow. Blank: the newest')
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="most hits, 1 to 50 (default: 10)")
    parser.add_argument("--scope", choices=("workspace", "global", "both"), help="look in this store only")
    parser.add_argument("--include-archived", action="store_true", help="look at archived and superseded memories too, marked")
    parser.add_argument("--include-expired", action="store_true", help="look at expired memories too, marked")


def quick_search(context, words):
    return recall.search(context.place, " ".join(words))


def run_search(context, args):
    return recall.search(context.place, " ".join(args.query), limit=args.limit, scope=args.scope, archived=args.include_archived,
                         expired=args.include_expired)


def options_show(parser):
    parser.add_argument("id", help="the memory's or note's id")


def run_show(context, args):
    return recall.show(context.place, args.id)


def options_list(parser):
    parser.add_argument("--type", choices=("rule", "skill", "knowledge"), help="only this type")
    parser.add_argument("--scope", choices=("workspace", "global", "both"), help="only this store")
    parser.add_argument("--limit", type=int, metavar="N", help="show the first N")
    parser.add_argument("--include-archived", action="store_true", help="show archived memories too")


def run_list(context, args):
    if args.limit is not None and args.limit < 1:
        raise UsageError("the limit is a number from 1.")
    return recall.listing(context.place, type=args.type, scope=args.scope, limit=args.limit, archived=args.include_archived)
