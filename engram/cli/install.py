"""`engram install`: put the single file into a folder on PATH, with `engram-mcp` beside it. Must not know hosts."""
from __future__ import annotations

import os
import sys
import zipfile

from engram import files
from engram.cli.link import site_of
from engram.errors import Refused, Result, UsageError, diagnostic
from engram.link import site

NAMES = ("engram", "engram-mcp")


def options_install(parser):
    parser.add_argument("folder", nargs="?", metavar="DIR", help="where to (default: ~/.local/bin)")
    parser.add_argument("--force", action="store_true", help="replace a program of that name that is not Engram")


def run_install(context, args):
    """Install the single file that runs. Raises UsageError when it is none, Refused for other programs of our name."""
    source = site.archive()
    if source is None:
        raise UsageError("Engram does not run as the single file here.", hint="Build it with python3 build.py and run dist/engram install.")
    if sys.platform == "win32":
        raise UsageError("Windows can't run the single file by its name.", hint="Use pip, uvx or the npm package there.")
    home = context.env.get("HOME") or os.path.expanduser("~")
    folder = os.path.abspath(os.path.join(context.cwd, args.folder or os.path.join(home, ".local", "bin")))
    program, server = (os.path.join(folder, name) for name in NAMES)
    if not args.force:
        for path in (program, server):
            if os.path.lexists(path) and not _is_engram(path):
                raise Refused("there is another program of this name; it stays as it is.", file=path,
                              hint="Use --force, or another folder.")
    data = files.read(source)
    changed = files.read(program) != data
    if changed:
        files.ensure_dir(folder)
        if os.path.islink(program):
            os.unlink(program)  # install here, not where a link leads
        files.replace(program, data, mode=0o755)
    os.chmod(program, 0o755)
    if not (os.path.islink(server) and os.readlink(server) == NAMES[0]):
        _link_beside(server)
        changed = True
    result = {"folder": folder, "files": [program, server], "changed": changed, "on_path": _first_on_path(context, program)}
    text = f"{'Installed' if changed else 'Already there:'} {program} and {server}"
    return Result(result, text, _path_notes(context, folder, program))


def _link_beside(path):
    temporary = f"{path}.{os.getpid()}.new"
    try:
        os.symlink(NAMES[0], temporary)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise files.StorageError(f"can't make the link: {error.strerror}.", file=path) from None


def _is_engram(path):
    """Return whether a program is the single file of Engram, of whatever version (or a link that leads nowhere)."""
    if not os.path.exists(path):
        return os.path.islink(path)
    try:
        with zipfile.ZipFile(path) as found:
            return any(name.endswith(("engram/__main__.py", "engram/__main__.pyc")) for name in found.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _first_on_path(context, program):
    found = site_of(context).which(NAMES[0])
    return found is not None and os.path.realpath(found) == os.path.realpath(program)


def _path_notes(context, folder, program):
    words = [os.path.normpath(word) for word in (context.env.get("PATH") or "").split(os.pathsep) if word]
    if os.path.normpath(folder) not in words:
        return [diagnostic("install.path", "warning", f"{folder} is not on PATH.", remediation=f'Add it: export PATH="{folder}:$PATH"')]
    if not _first_on_path(context, program):
        return [diagnostic("install.shadowed", "warning", f"another engram stands before {program} on PATH.",
                           remediation="Remove it, or put it later.")]
    return []
