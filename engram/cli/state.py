"""The state of memory at the terminal: status, set-role, set-rule-variant."""

from __future__ import annotations

from engram import propose


def run_status(context, args):
    """Count what is there and say what waits."""
    return propose.status(context.place)


def options_set_role(parser):
    parser.add_argument("roles", nargs="*", help="roles, `none`, or `status` (default)")


def run_set_role(context, args):
    """Set the roles that filter memories, or tell them."""
    return propose.set_role(context.place, args.roles or "status")


def options_set_rule_variant(parser):
    parser.add_argument("variant", nargs="?", default="status", help="light, balanced, strict, off, or `status` (default)")


def run_set_rule_variant(context, args):
    """Set which wording of a rule is shown, or tell it."""
    return propose.set_rule_variant(context.place, args.variant)
