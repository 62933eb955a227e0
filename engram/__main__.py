"""Start the server or the command line, by the name this was started under or by its first word.

Nothing else happens here. One of the two lazy doors of the package (architecture.md, "Fast start"): each
branch imports only its own side, and `--version` imports nothing.
"""
import sys

from engram import __version__


def main(argv=None):
    """Run Engram with `argv` (default: `sys.argv`) and return the exit code."""
    if argv is None:
        _speak_utf8()
        argv = sys.argv
    name = argv[0].replace("\\", "/").rsplit("/", 1)[-1].lower()
    words = argv[1:]
    if name in ("engram-mcp", "engram-mcp.exe"):
        if words == ["--version"]:
            print(__version__)
            return 0
        from engram.server import main as serve

        return serve(words, surface="engram")
    if words[:1] in (["--version"], ["-V"]):
        print(__version__)
        return 0
    if words[:1] == ["mcp"] and "--help" not in words and "-h" not in words:
        from engram.server import main as serve

        return serve(words[1:], surface="mem")
    import gc  # only here: the version needs none, and the server has its own way

    gc.set_threshold(50_000)  # a start makes thousands of objects and no garbage; looking for some takes 1 to 2 ms
    if words[:1] in (["hook"], ["agent-hook"]):
        from engram.cli.hook import main as answer  # people wait for it at every prompt: past the dispatch, 1 ms

        return answer(words[1:])
    from engram.cli.main import main as run

    return run(words)


def start():
    """Run Engram as the whole of a process, and end that without taking the interpreter apart.

    Taking it apart is 7 ms of every hook, and the system gets everything back anyway. What was registered for
    the end runs, and what was written is out, or the usual way takes over and says why not. The server ends the usual way.
    """
    code = main()
    if "engram.server" not in sys.modules:
        import atexit
        import os

        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        except (OSError, ValueError, AttributeError):
            pass
    sys.exit(code)


def _speak_utf8():
    """Start again in UTF-8 mode where the locale has another encoding: file names in a store are UTF-8 everywhere.

    What goes to a terminal stays in the locale's encoding.
    """
    if sys.getfilesystemencoding() != "utf-8":
        import os  # only here and below: hardly any machine is like this

        os.environ["ENGRAM_TERMINAL"] = getattr(sys.stdout, "encoding", None) or "ascii"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    if sys.flags.utf8_mode:
        import os

        encoding = os.environ.pop("ENGRAM_TERMINAL", None)
        for stream in (sys.stdout, sys.stderr) if encoding else ():
            if stream is not None:
                stream.reconfigure(encoding=encoding, errors="replace")


if __name__ == "__main__":
    start()
