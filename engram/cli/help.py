"""`help`, `llm` and `completion`: what there is, for people, agents and shells; all made from the command table.

Must not know what any command does.
"""
from __future__ import annotations

from engram import __version__
from engram.cli import main, table
from engram.errors import Result, UsageError
from engram.propose import guide

OPENING = "engram {version}: memory for AI coding agents. They propose, you approve, the right task gets it back."
CLOSING = ("Every command takes --json, --workspace DIR and --global; `engram <command> --help` says what it writes and shows\n"
           "examples. New here? `engram demo` shows the whole loop, `engram inject` makes a store in this project.")


def options_help(parser):
    parser.add_argument("command", nargs="?", help="show the help of this command")


def run_help(context, args=None):
    """Return the overview: the commands in groups, one line each; or one command's own help."""
    name = getattr(args, "command", None)
    if name:
        row = table.find(name)
        if row is None:
            raise UsageError(f"there is no command `{name}`.", hint="Run engram help.")
        return Result({"command": name}, command_help(row))
    lines = [OPENING.format(version=__version__)]
    for group, title in table.GROUPS:
        rows = [row for row in table.COMMANDS if row.group == group]
        if rows:
            lines += ["", title]
            lines += [f"  {', '.join((row.name, *row.aliases)):18} {row.summary}" for row in rows]
    lines += ["", CLOSING]
    data = {"commands": [{"name": row.name, "aliases": list(row.aliases), "group": row.group, "summary": row.summary,
                          "writes": row.writes, "examples": list(row.examples)} for row in table.COMMANDS]}
    return Result(data, "\n".join(lines))


def command_help(row):
    """Return the help of one command row: usage, what it writes, examples."""
    if not row.raw:
        return main.parser_of(row).format_help()
    examples = "\n".join(f"  {line}" for line in row.examples)
    return f"engram {row.name}: {row.summary}.\n\n{row.writes}\n\nexamples:\n{examples}\n"


def run_llm(context, args):
    """Return the guide for agents."""
    return Result({"guide": guide.GUIDE}, guide.GUIDE)


def options_completion(parser):
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell to complete in")


def run_completion(context, args):
    """Return a completion script for one shell."""
    script = SHELLS[args.shell](commands())
    return Result({"shell": args.shell, "script": script}, script)


def commands():
    """Return rows (name, summary, options) for every command and alias, in the table's order."""
    rows = []
    for row in table.COMMANDS:
        options = ["--help"]
        if not row.raw:
            options = sorted({option for action in main.parser_of(row)._actions for option in action.option_strings
                              if option.startswith("--")})
        rows += [(name, row.summary, options) for name in (row.name, *row.aliases)]
    return rows


def _bash(rows):
    cases = "\n".join(f"    {name}) words='{' '.join(options)}' ;;" for name, _, options in rows)
    names = " ".join(name for name, _, _ in rows)
    return f"""\
# engram completion for bash: source <(engram completion bash)
_engram() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    words='{names} --help --version'
  else
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    case $current in -*) ;; *) return ;; esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _engram engram
"""


def _zsh(rows):
    described = "\n".join(f"    {_single(f'{name}:{summary}')}" for name, summary, _ in rows)
    cases = "\n".join(f"    {name}) options=({' '.join(options)}) ;;" for name, _, options in rows)
    return f"""\
#compdef engram
# engram completion for zsh: source <(engram completion zsh)
_engram() {{
  local -a names options
  names=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe -t commands 'engram command' names
    return
  fi
  case ${{words[2]}} in
{cases}
  esac
  if [[ $PREFIX == -* ]]; then compadd -- $options; else _files; fi
}}
compdef _engram engram
"""


def _fish(rows):
    lines = ["# engram completion for fish: engram completion fish | source"]
    for name, summary, options in rows:
        lines.append(f"complete -c engram -n __fish_use_subcommand -f -a {name} -d {_single(summary)}")
        lines += [f"complete -c engram -n '__fish_seen_subcommand_from {name}' -l {option[2:]}" for option in options]
    return "\n".join(lines) + "\n"


def _powershell(rows):
    names = ", ".join(_doubled(name) for name, _, _ in rows)
    cases = "\n".join(f"    {_doubled(name)} = @({', '.join(_doubled(option) for option in options)})" for name, _, options in rows)
    return f"""\
# engram completion for PowerShell: engram completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName engram -ScriptBlock {{
  param($word, $ast, $position)
  $names = @({names})
  $options = @{{
{cases}
  }}
  $given = @($ast.CommandElements | ForEach-Object {{ $_.ToString() }})
  if ($given.Count -lt 2 -or ($given.Count -eq 2 -and $word)) {{ $found = $names }} else {{ $found = $options[$given[1]] }}
  $found | Where-Object {{ $_ -like "$word*" }} | ForEach-Object {{
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }}
}}
"""


def _single(text):
    return "'" + text.replace("'", "'\\''") + "'"


def _doubled(text):
    return "'" + text.replace("'", "''") + "'"


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish, "powershell": _powershell}
