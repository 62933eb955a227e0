"""Run one command and render what it returns: as text for people, or as the JSON envelope.

The second lazy door of the package: only the module of the command that runs is imported. Also one of
the two places with a broad `except` (the other is the server's loop).
"""
from __future__ import annotations

import os
from importlib import import_module

from engram.cli import table
from engram.cli.context import Context, write
from engram.errors import EngramError, Result, UsageError, envelope, failure

COMMON = ("--json", "--global", "--workspace")


def main(words, *, context=None):
    """Run the command that `words` name and return the exit code (cli.md: 0, 1, 2, 3, 4, 5)."""
    context = context or Context()
    try:
        return _main(list(words), context)
    except KeyboardInterrupt:
        return 130
    except OSError as error:  # the answer could not be printed
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python tries once more at exit, and complains
        if isinstance(error, BrokenPipeError):
            return 0  # the reader went away (`engram search x | head -1`), which is no error
        write(context.stderr, f"engram: can't write the output: {error.strerror or error}\n")
        return 5


def _main(words, context):
    leading, words = _split_leading(words)
    context.json = "--json" in leading or _has_flag(words, "--json")
    try:
        row = _row(words)
        if row.raw:
            return import_module(f"engram.cli.{row.module}").main(leading + words[1:], context)
        result = _run(row, leading + words[1:], context)
    except EngramError as error:
        result = failure(error)
    except RecursionError:
        result = Result(error=("ENG_INPUT", "the input is nested too deeply."), text="the input is nested too deeply.", exit_code=2)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        text = f"{error.filename + ': ' if isinstance(error.filename, str) else ''}{error.strerror or error}"
        result = Result(error=("ENG_IO", text), text=text, exit_code=5)
    except Exception as error:
        if context.env.get("ENGRAM_DEBUG"):
            raise
        text = f"internal error: {type(error).__name__}: {error}. Set ENGRAM_DEBUG=1 to see where, and please report it."
        result = Result(error=("ENG_INTERNAL", text), text=text, exit_code=70)
    render(result, context)
    return result.exit_code


def render(result, context):
    """Print a result: the envelope with `--json`, else its text (errors and diagnostics on stderr)."""
    if context.json:
        import json  # text needs no encoder

        # ASCII escapes are right in every encoding a terminal may have
        write(context.stdout, json.dumps(envelope(result), ensure_ascii=True, indent=2, default=str) + "\n")
        return
    text = clean(result.text)
    if result.ok:
        if text:
            write(context.stdout, text if text.endswith("\n") else text + "\n")
    else:
        write(context.stderr, f"engram: {text or clean(result.error[1])}\n")
    for row in result.diagnostics:
        line = f"{row['severity']}: {row.get('file', '') and row['file'] + ': '}{row['message']}"
        if row.get("remediation"):
            line += f" {row['remediation']}"
        write(context.stderr, clean(line) + "\n")


def clean(text):
    """Return text without characters that a terminal would obey (propose.md, "The human at a terminal")."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    from engram.safety import visible  # only where there is something to make visible

    return visible(text)


def parser_of(row):
    """Return the argparse parser of a command row."""
    import argparse  # help and the hook go without

    module = import_module(f"engram.cli.{row.module}")

    def formatter(prog):
        # without a width argparse imports shutil, and with it three packers of archives: 3 ms of each command
        return argparse.RawDescriptionHelpFormatter(prog, width=_columns() - 2)

    class Parser(argparse.ArgumentParser):
        def error(self, message):
            raise UsageError(_explain(self, message), hint=f"See engram {row.name} --help.")

    epilog = f"{row.writes}\n\nexamples:\n" + "\n".join(f"  {line}" for line in row.examples)
    parser = Parser(prog=f"engram {row.name}", description=row.summary[:1].upper() + row.summary[1:] + ".", epilog=epilog,
                    formatter_class=formatter, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print one JSON envelope")
    parser.add_argument("--workspace", metavar="DIR", help="work as if started in DIR")
    parser.add_argument("--global", dest="global_only", action="store_true", help="use the global store alone")
    options = getattr(module, f"options_{_python_name(row)}", None)
    if options:
        options(parser)
    return parser


def _columns():
    """Return the width of the terminal."""
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns) or 80
    except (OSError, ValueError):
        return 80


def _run(row, words, context):
    quick = getattr(import_module(f"engram.cli.{row.module}"), f"quick_{_python_name(row)}", None)
    if quick and not any(word.startswith("-") for word in words):
        return quick(context, words)  # words alone need no parser, which takes as long as Python itself to start
    parser = parser_of(row)
    ahead = words[:words.index("--")] if "--" in words else words
    if "--help" in ahead or "-h" in ahead:
        return Result(text=_page(parser, ahead).format_help())
    args = parser.parse_intermixed_args(words) if _mixes(parser) else parser.parse_args(words)
    context.json, context.workspace, context.global_only = args.json, args.workspace, args.global_only
    return getattr(import_module(f"engram.cli.{row.module}"), f"run_{_python_name(row)}")(context, args)


def _page(parser, words):
    # `engram mem search --help` is about search
    verbs = next((action.choices for action in parser._actions if action.nargs == "A..."), {})
    return next((verbs[word] for word in words if word in verbs), parser)


def _mixes(parser):
    # parse_intermixed_args lets `engram load deploy --json the api` work, and can't do subparsers or remainders
    return not any(action.nargs in ("A...", "...") for action in parser._actions)


def _row(words):
    if not words or words[0] in ("--help", "-h"):
        return table.find("help")
    row = table.find(words[0])
    if row is None:
        if words[0].startswith("-"):
            raise UsageError(f"there is no option `{words[0]}` before a command." + _nearest(words[0], (*COMMON, "--help", "--version")),
                             hint="Run engram help.")
        names = [name for row in table.COMMANDS for name in (row.name, *row.aliases)]
        raise UsageError(f"there is no command `{words[0]}`." + _nearest(words[0], names), hint="Run engram help.")
    return row


def _split_leading(words):
    leading = []
    while words and words[0].split("=", 1)[0] in COMMON:
        takes = words[0] == "--workspace"
        leading += words[:1 + takes]
        words = words[1 + takes:]
    return leading, words


def _has_flag(words, flag):
    return flag in (words[:words.index("--")] if "--" in words else words)


def _explain(parser, message):
    marker = "unrecognized arguments: "
    if message.startswith(marker):
        word = message[len(marker):].split()[0]
        known = [option for action in parser._actions for option in action.option_strings]
        return f"unknown {'option' if word.startswith('-') else 'argument'} `{word}`." + _nearest(word.split("=")[0], known)
    return message.rstrip(".") + "."


def _nearest(word, known):
    import difflib  # only for a mistyped word

    near = difflib.get_close_matches(word, known, 1, 0.6)
    return f" Did you mean `{near[0]}`?" if near else ""


def _python_name(row):
    return row.name.replace("-", "_")


