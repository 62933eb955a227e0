"""Settings at the terminal: `config view|set|unset` and the short commands for the common ones."""
from __future__ import annotations

from engram.errors import Result, UsageError
from engram.propose import preferences
from engram.store import settings


def options_config(parser):
    parser.add_argument("action", nargs="?", choices=("view", "set", "unset"), default="view", help="what to do (default: view)")
    parser.add_argument("key", nargs="?", help="a setting, as engram config view lists them")
    parser.add_argument("value", nargs="*", help="the new value (for set)")
    parser.add_argument("--user", action="store_true", help="for you in every workspace, not for this store")


def run_config(context, args):
    """Show the settings in force, or write one."""
    if args.action == "view":
        return view(context.place, args.key)
    row = _row(args.key)
    if args.action == "unset":
        return preferences.put(context.place, row.key, None, user=args.user)
    if not args.value and row.kind != "words":
        raise UsageError(f"which value should `{row.key}` have?", hint=f"engram config set {row.key} VALUE")
    return preferences.put(context.place, row.key, settings.read_value(row, args.value), user=args.user)


def view(place, key=None):
    """Return every setting with its value and where it comes from, or one."""
    rows = [_row(key)] if key else settings.SETTINGS
    values = {row.key: place.settings.get(row.key) for row in rows}
    data = {"settings": {name: {"value": value, "source": place.settings.sources[name]} for name, value in values.items()}}
    width = max(len(name) for name in values)
    lines = [f"{row.key:{width}}  {settings.show(values[row.key]):14}  {place.settings.sources[row.key]:9}  {row.about}" for row in rows]
    return Result(data, "\n".join(lines), place.settings.diagnostics)


def _short(key):
    """Return the pair of functions of a command that shows, sets or resets one setting."""

    def options(parser):
        parser.add_argument("value", nargs="*", help="the new value, `status` (default) or `reset`")
        parser.add_argument("--user", action="store_true", help="for you in every workspace, not for this store")

    def run(context, args):
        row = settings.BY_KEY[key]
        if args.value in ([], ["status"]):
            return view(context.place, key)
        value = None if args.value == ["reset"] else settings.read_value(row, args.value)
        return preferences.put(context.place, key, value, user=args.user)

    return options, run


options_set_save_target, run_set_save_target = _short("scope")
options_set_load_limit, run_set_load_limit = _short("load.limit")
options_set_read, run_set_read = _short("read")
options_set_proof, run_set_proof = _short("proof")


def _row(key):
    row = settings.BY_KEY.get(key)
    if row is None:
        raise UsageError(f"there is no setting `{key}`." if key else "which setting?", hint="Run engram config view to see them.")
    return row
