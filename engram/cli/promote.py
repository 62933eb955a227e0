"""Make what an agent noted durable: promote, for working notes and session observations."""

from __future__ import annotations

from engram import propose
from engram.cli import approval
from engram.cli.write import answer_options
from engram.mem import promoting
from engram.mem.tier import Tier


def options_promote(parser):
    parser.add_argument("id", help="a note's id, or mem:<id> of a session observation")
    parser.add_argument("--explain", action="store_true", help="say which words made the verdict")
    answer_options(parser)


def run_promote(context, args):
    """Propose a note as a durable memory and ask."""
    number = promoting.observation_id(args.id)
    if number is not None:
        tier = Tier(folder=context.cwd, env=context.env)
        try:
            proposal = promoting.proposal(tier, number, place=context.place, scope=args.scope, keep=False, explain=args.explain)
        finally:
            tier.close()
        return approval.settle(context, proposal, force=args.force)
    proposal = propose.promote(context.place, args.id, scope=args.scope, keep=False, explain=args.explain)
    return approval.settle(context, proposal, force=args.force)
