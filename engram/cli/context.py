"""What a command may use of the world: where it runs, who is there to answer, where text goes.

Must not know any command. Everything is looked up when first asked for, so that a command pays only for
what it uses.
"""
from __future__ import annotations

import os
import sys

from engram.errors import HumanNeeded, UsageError

LARGEST_INPUT = 16 * 1024 * 1024
COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}


class Context:
    """One run of one command.

    `workspace` and `global_only` come from the options of that name; `json` says that stdout belongs to
    the envelope.
    """

    def __init__(self, *, argv=(), env=None, cwd=None, stdin=None, stdout=None, stderr=None):
        self.argv = list(argv)
        self.env = os.environ if env is None else env
        self.workspace = None
        self.global_only = False
        self.json = False
        self.stdin = sys.stdin if stdin is None else stdin
        self.stdout = sys.stdout if stdout is None else stdout
        self.stderr = sys.stderr if stderr is None else stderr
        self._cwd = cwd
        self._place = None

    @property
    def cwd(self):
        """The folder the command works in, absolute; `--workspace` moves it. Raises UsageError."""
        if self.workspace is not None:
            folder = os.path.abspath(os.path.expanduser(self.workspace))
            if not os.path.isdir(folder):
                raise UsageError(f"--workspace {self.workspace}: there is no such folder.")
            return folder
        if self._cwd is None:
            try:
                self._cwd = os.getcwd()
            except OSError:
                raise UsageError("the working directory no longer exists.", hint="Change into one that does.") from None
        return self._cwd

    @property
    def place(self):
        """The stores and settings in reach of the working folder (`engram.store.places.Place`)."""
        if self._place is None:
            from engram.store import places  # a command without a store (help, completion) never loads it

            self._place = places.find(self.cwd, env=self.env, global_only=self.global_only)
        return self._place

    @property
    def interactive(self):
        """Whether a person can answer: stdin and stdout both are terminals (case AP-13)."""
        return _is_terminal(self.stdin) and _is_terminal(self.stdout)

    def stdin_text(self):
        """Return all of standard input as text; a terminal counts as empty. Raises UsageError."""
        if self.stdin is None or _is_terminal(self.stdin):
            return ""
        data = self.stdin.buffer.read(LARGEST_INPUT + 1)
        if len(data) > LARGEST_INPUT:
            raise UsageError("standard input is larger than 16 MiB.")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input is not UTF-8 (byte {error.start}).") from None

    def ask(self, prompt):
        """Show `prompt` and return the line a person typed; None at end of input. Raises HumanNeeded."""
        if not self.interactive:
            raise HumanNeeded("this needs an answer from a person at a terminal.")
        self.show(prompt, end="")
        try:
            line = self.stdin.readline()
        except (KeyboardInterrupt, UnicodeDecodeError):
            self.show("")
            return None
        return line.rstrip("\r\n") if line else None

    def show(self, text, *, end="\n"):
        """Write text for a person now: to stdout, or to stderr when stdout belongs to JSON."""
        write(self.stderr if self.json else self.stdout, text + end)

    def note(self, text):
        """Write one line to stderr."""
        write(self.stderr, text + "\n")

    def paint(self, text, *names):
        """Colour text (red, green, yellow, bold, dim) on a terminal without NO_COLOR; else return it as it is."""
        stream = self.stderr if self.json else self.stdout
        if not _is_terminal(stream) or self.env.get("NO_COLOR") or self.env.get("TERM") == "dumb":
            return text
        return "".join(f"\x1b[{COLOURS[name]}m" for name in names) + text + "\x1b[0m"

    def progress(self, label, done, total):
        """Show how far long work is, on one line of stderr, when that is a terminal."""
        if _is_terminal(self.stderr):
            write(self.stderr, f"\r{label} {done:,}/{total:,}" + ("\n" if done >= total else ""))


def write(stream, text):
    """Write text to a stream in whatever encoding it has: what that can't say is replaced, never an error (case EN-06)."""
    if stream is None:  # started without it (pythonw, a closed descriptor)
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    data = text.encode(encoding, "replace")
    if hasattr(stream, "buffer"):
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()
    else:
        stream.write(data.decode(encoding))


def _is_terminal(stream):
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
