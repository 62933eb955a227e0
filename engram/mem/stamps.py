"""Points in time as the session tier writes them: `YYYY-MM-DD HH:MM:SS`, UTC.

Pure; must not read a clock. Foreign files also have decimals, RFC 3339 and bare dates (mem-tools.md 2.13);
a time without a zone is UTC (case TM-01).
"""

from __future__ import annotations

import time

from engram.store import dates


def write(seconds):
    """Return the stamp for seconds since the epoch."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def read(text):
    """Return seconds since the epoch for a stamp in any known form, or None for anything else."""
    try:
        return dates.instant(text)
    except (ValueError, AttributeError, TypeError):
        return None


def tidy(text, otherwise):
    """Return a foreign stamp in our form, `otherwise` when it can't be read (case TM-03)."""
    seconds = read(text)
    return otherwise if seconds is None else write(seconds)


def months_later(text, months):
    """Return the stamp `months` later, on the last day of the month where the day doesn't exist there."""
    year, month = int(text[:4]), int(text[5:7]) - 1 + months
    year, month = year + month // 12, month % 12 + 1
    day = int(text[8:10])
    while read(f"{year:04}-{month:02}-{day:02}") is None:
        day -= 1
    return f"{year:04}-{month:02}-{day:02}{text[10:]}"
