"""The stub with tools that misbehave as a process: print, write to descriptor 1, start children, never end."""
from __future__ import annotations

import os
import subprocess
import time

from engram.errors import Result
from engram.server.tool import Tool
from tests.server.stub import Stub

NOTHING = {"type": "object", "properties": {}}


def noisy(context, arguments):
    print("a stray print")
    os.write(1, b"a stray write\n")
    subprocess.run(["/bin/sh", "-c", "echo a stray child; cat"], check=True)  # gets neither the wire nor the input
    return Result(text="quiet")


def slow(context, arguments):
    time.sleep(0.4)
    return Result(text="slow")


def endless(context, arguments):
    while True:
        time.sleep(1)


class Acting(Stub):
    def __init__(self):
        super().__init__()
        self.tools += (Tool("noisy", "Noisy", "Writes everywhere.", NOTHING, noisy), Tool("slow", "Slow", "Takes a while.", NOTHING, slow),
                       Tool("endless", "Endless", "Never ends.", NOTHING, endless))
