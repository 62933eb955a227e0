"""What can come out of a function: an error that says whose fault and where, or a result.

Knows nothing of the rest of the package. Exit codes and error codes are those of cli.md. An outcome
that a caller can act on is a `Result`; an exception means that the caller can't go on.
"""
from __future__ import annotations

CONTRACT_VERSION = "1"


class EngramError(Exception):
    """Something the user has to know about: what is wrong, where, and what to do.

    `hint` is one sentence that says what to do; `file`, `line` and `column` (from 1) say where;
    `data` is a mapping for scripts and for the tool envelope.
    """

    code = "ENG_ERROR"
    exit_code = 1

    def __init__(self, message, *, hint=None, file=None, line=None, column=None, data=None):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line
        self.column = column
        self.data = data or {}

    def __str__(self):
        where = ""
        if self.file is not None:
            where = str(self.file)
            if self.line is not None:
                where += f", line {self.line}"
                if self.column is not None:
                    where += f", column {self.column}"
            where += ": "
        return f"{where}{self.message}" + (f" {self.hint}" if self.hint else "")


class UsageError(EngramError):
    """The call itself is wrong: unknown option, missing argument, value out of range."""

    code, exit_code = "ENG_USAGE", 2


class NotFound(EngramError):
    """What was asked for does not exist."""

    code, exit_code = "ENG_NOT_FOUND", 1


class HumanNeeded(EngramError):
    """A person has to answer and none is there."""

    code, exit_code = "ENG_HUMAN", 3


class Refused(EngramError):
    """Refused for safety: a secret, an instruction-like line, a path that leads outside."""

    code, exit_code = "ENG_REFUSED", 4


class IntegrityError(EngramError):
    """Content and its recorded hash, or a sealed value and its seal, don't agree."""

    code, exit_code = "ENG_INTEGRITY", 4


class Busy(EngramError):
    """Somebody else holds the lock for longer than we wait."""

    code, exit_code = "ENG_BUSY", 5


class StorageError(EngramError):
    """The disk said no: full, read-only, not permitted."""

    code, exit_code = "ENG_IO", 5


class MemoryFileError(EngramError):
    """A memory file that can't be read as one; `kind` is a stable word such as `duplicate-key`."""

    code = "ENG_MEMORY_FILE"

    def __init__(self, message, *, kind="invalid", **where):
        super().__init__(message, **where)
        self.kind = kind


class ConfigError(EngramError):
    """A settings file or a host's config that can't be read as what it should be."""

    code = "ENG_CONFIG"


class Result:
    """What a function under a tool or a command returns; a renderer turns it into text or JSON.

    `data` is a mapping, `text` what a person reads, `diagnostics` a list made by `diagnostic`,
    `error` a pair (code, message) when the answer failed. `structured` replaces the standard envelope
    where a surface has one of its own.
    """

    __slots__ = ("data", "diagnostics", "error", "exit_code", "structured", "text")

    def __init__(self, data=None, text="", diagnostics=(), *, exit_code=0, error=None, structured=None):
        self.data = data if data is not None else {}
        self.text = text
        self.diagnostics = list(diagnostics)
        self.exit_code = exit_code
        self.error = error
        self.structured = structured

    @property
    def ok(self):
        return self.error is None


def failure(error):
    """Make the Result of an EngramError, so that each face renders one kind of thing."""
    data = dict(error.data)
    return Result(data, str(error), exit_code=error.exit_code, error=(error.code, str(error)))


def diagnostic(id, severity, message, *, file=None, remediation=None):
    """Make one diagnostic row; `severity` is info, warning or error."""
    row = {"id": id, "severity": severity, "message": message}
    if file is not None:
        row["file"] = file
    if remediation is not None:
        row["remediation"] = remediation
    return row


def envelope(result):
    """Return the envelope of cli.md and mcp.md for a Result."""
    made = {"contract_version": CONTRACT_VERSION, "ok": result.ok, "data": result.data, "diagnostics": result.diagnostics}
    if not result.ok:
        made["error"] = {"code": result.error[0], "message": result.error[1]}
    return made
