"""Run the trials: `python -m tests.torture BIN [--short|--long] [--seed N] [TRIAL…]`. Exits 1 when one lost something."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import traceback

from tests.torture import (
    concurrency,
    configs,
    crash,
    fuzz,
    hostile,
    limits,
    locales,
    permissions,
    secrets,
    soak,
)

# name -> (what is tried, module); the order of the README's table
TRIALS = {
    "crash": ("kill -9 at random moments of commits, archives, links and mem writes", crash),
    "concurrency": ("many processes write one store, one config, one database", concurrency),
    "limits": ("disk full, file-size limit, read-only disk", limits),
    "permissions": ("another user, unwritable and unreadable places, no home", permissions),
    "fuzz": ("generated and mutated JSON-RPC lines, both eras, both surfaces", fuzz),
    "configs": ("link then unlink on real and generated configs, every host", configs),
    "hostile": ("hostile stores: links, devices, huge and binary files, odd ids, a poisoned index", hostile),
    "secrets": ("a corpus of secrets through every write path, then a search of all bytes on disk", secrets),
    "locales": ("locales, encodings, -O and -W error, each Python: the same results", locales),
    "soak": ("mixed calls to one server: memory, files, threads", soak),
}


class Run:
    """How a trial is run: `size(short, long)` picks a count, `dice` is its own random.Random."""

    def __init__(self, built, long, seed, name):
        self.built = built
        self.long = long
        self.dice = random.Random(f"{seed}:{name}")

    def size(self, short, long):
        return long if self.long else short


def main():
    parser = argparse.ArgumentParser(prog="build.py torture")
    parser.add_argument("built")
    parser.add_argument("--short", action="store_true", help="a minute or two (default)")
    parser.add_argument("--long", action="store_true", help="for a person with an hour")
    parser.add_argument("--seed", default="1")
    parser.add_argument("trials", nargs="*", metavar="TRIAL", help=f"of {', '.join(TRIALS)}; default all")
    args = parser.parse_intermixed_args()
    unknown = [name for name in args.trials if name not in TRIALS]
    if unknown:
        parser.error(f"no trial {', '.join(unknown)}; there are {', '.join(TRIALS)}")
    built = os.path.abspath(args.built)
    print(f"torture: {'long' if args.long else 'short'}, seed {args.seed}, Python {sys.version.split()[0]}", flush=True)
    passed = failed = 0
    for name in args.trials or TRIALS:
        what, module = TRIALS[name]
        begin = time.monotonic()
        try:
            done, lost = module.run(Run(built, args.long, args.seed, name))
        except Exception as error:
            done, lost = (
                "stopped",
                [f"{type(error).__name__}: {error}", *traceback.format_exc(limit=-3).strip().split("\n")[-4:]],
            )
        took = time.monotonic() - begin
        print(f"{'LOST ' if lost else 'ok   '} {name:12} {what}")
        print(f"      {done}; lost: {len(lost) or 'nothing'} ({took:.0f} s)", flush=True)
        for line in lost[:20]:
            print(f"        {line}", flush=True)
        passed, failed = passed + (not lost), failed + bool(lost)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
