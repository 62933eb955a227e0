"""Dates and instants as memories have them, without `datetime` (2 ms of every hook).

Read: `2026-01-31`, with an optional time and zone. A plain value is UTC (case TM-01). Written: UTC days.
"""
from __future__ import annotations

import re
import time

DAY = 86400
SHAPE = re.compile(r"(\d{4})-(\d\d)-(\d\d)"
                   r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?\s?(Z|z|[+-]\d\d:?\d\d)?)?\Z", re.ASCII)
MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def instant(text):
    """Return seconds since 1970 (UTC) for a date or a date with time. Raises ValueError for anything else."""
    return _read(text)[0]


def end(text):
    """Return the instant from which something valid until `text` is over: a bare day counts in full."""
    seconds, has_time = _read(text)
    return seconds if has_time else seconds + DAY


def today():
    """Return the current UTC day as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def day_after(days):
    """Return the UTC day that many days from today."""
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + days * DAY))


def stamp(seconds=None):
    """Return an instant as 2026-11-30T12:08:13.000Z (default: now)."""
    seconds = time.time() if seconds is None else seconds
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"


def _read(text):
    found = SHAPE.match(text.strip())
    if not found:
        raise ValueError("not a date of the form YYYY-MM-DD")
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (1 <= month <= 12 and 1 <= day <= MONTH_DAYS[month - 1] and (month != 2 or day < 29 or leap)):
        raise ValueError("there is no such day")
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError("there is no such time")
    # days since 1970 in the proleptic Gregorian calendar; March begins the year, so that leap days come last
    shifted = year - (month <= 2)
    era_year = shifted % 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = (shifted // 400) * 146097 + era_year * 365 + era_year // 4 - era_year // 100 + day_of_year - 719468
    seconds = days * DAY + hour * 3600 + minute * 60 + second
    zone = found[7]
    if zone and zone not in "Zz":
        offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        seconds -= offset if zone[0] == "+" else -offset
    return seconds, found[4] is not None
