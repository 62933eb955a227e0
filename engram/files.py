"""The one door for file updates: whole files, atomically, under locks that die with their owner.

Must not know what the files mean. How an update goes (store.md, Writing): the new content is written to
a file of a unique name in the same folder, synced, given the old mode, and renamed over the old one; a
symlink stays a link and its target is replaced. A reader sees the old file or the new one. A crash
leaves at most a `.name.<hex>.tmp` that nothing reads and the next writer of that folder may sweep.
"""
from __future__ import annotations

import errno
import os
import stat
import time

from engram.errors import Busy, EngramError, StorageError

try:  # the interpreter's own SHA-2: hashlib would load OpenSSL, 3 ms of every hook (zipapp.md, 5)
    from _sha2 import sha256 as _sha256
except ImportError:
    try:
        from _sha256 import sha256 as _sha256
    except ImportError:
        from hashlib import sha256 as _sha256

try:
    import fcntl
except ImportError:  # Windows has no flock; msvcrt locks a byte range instead
    fcntl = None
    import msvcrt

ANY = object()
SUFFIX = ".tmp"
STALE_SECONDS = 3600  # a temporary file this old belongs to nobody any more


class Changed(EngramError):
    """The file is not what the caller saw; nothing was written."""

    code, exit_code = "ENG_CHANGED", 5


def sha256(data):
    """Return the SHA-256 of bytes as 64 lower-case hex digits."""
    return _sha256(data).hexdigest()


def read(path):
    """Return the bytes of a regular file, or None when there is none. Raises StorageError for anything else."""
    return read_regular(path, limit=None)


def read_regular(path, *, limit):
    """Return the bytes of a regular file of at most `limit` bytes (None: of any size); None when there is none.

    Never waits on a pipe or a device that somebody put there. Raises StorageError with the reason.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
                             | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _storage("read", path, error) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise StorageError("not a regular file.", file=path)
        if limit is not None and found.st_size > limit:
            raise StorageError(f"larger than {limit:,} bytes ({found.st_size:,}).", file=path)
        data = os.read(descriptor, found.st_size + 1)
        if len(data) == found.st_size:  # the usual case, without a file object: load reads eight
            return data
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return data + file.read()
    except OSError as error:
        raise _storage("read", path, error) from None
    finally:
        os.close(descriptor)


def replace(path, data, *, expected=ANY, mode=None):
    """Write `data` as the whole content of `path`, atomically.

    `expected` is the content the caller saw (bytes; None for "no such file"): when the file holds
    something else by now, raises Changed and writes nothing. The old mode is kept; `mode` is for a new
    file (what the umask gives when left out). Raises StorageError with the old content intact.
    """
    target = os.path.realpath(path) if os.path.islink(path) else path
    try:
        kept = os.stat(target)
    except OSError:
        kept = None
    temporary = _write_beside(target, data, stat.S_IMODE(kept.st_mode) if kept else mode, kept)
    try:
        if expected is not ANY and read(target) != expected:
            raise Changed("the file changed while it was being edited; nothing was written.", file=path, hint="Try again.")
        os.replace(temporary, target)
    except OSError as error:
        _drop(temporary)
        raise _storage("write", path, error) from None
    except Changed:
        _drop(temporary)
        raise
    sync_folder(os.path.dirname(target))


def create(path, data, *, mode=None):
    """Write a new file, whole or not at all. Raises Changed when something is there already."""
    temporary = _write_beside(path, data, mode)
    try:
        os.link(temporary, path)  # unlike rename, a link never replaces
    except FileExistsError:
        raise Changed("there is a file of this name already; nothing was written.", file=path) from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise _storage("write", path, error) from None
        if os.path.lexists(path):  # a file system without hard links
            raise Changed("there is a file of this name already; nothing was written.", file=path) from None
        os.replace(temporary, path)
        temporary = None
    finally:
        if temporary:
            _drop(temporary)
    sync_folder(os.path.dirname(path))


def remove(path, *, expected=ANY):
    """Remove a file if it holds what is `expected`; a missing one is fine. Raises Changed, StorageError."""
    if expected is not ANY and read(path) not in (expected, None):
        raise Changed("the file changed; it was not removed.", file=path)
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _storage("remove", path, error) from None
    sync_folder(os.path.dirname(path))


def ensure_dir(path, *, mode=0o777):
    """Make a folder and its parents. Raises StorageError."""
    try:
        os.makedirs(path, mode=mode, exist_ok=True)
    except OSError as error:
        raise _storage("make", path, error) from None


def ensure_private(path):
    """Make an empty file of mode 600, with its folder, unless there is one: SQLite would use what the umask gives.

    Raises StorageError.
    """
    ensure_dir(os.path.dirname(path), mode=0o700)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0), 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise _storage("write", path, error) from None


def sweep(folder, *, now=None):
    """Remove temporary files that a crash of ours left in `folder` more than an hour ago; never raises."""
    limit = (time.time() if now is None else now) - STALE_SECONDS
    try:
        # names alone first: a folder of thousands is listed at every commit
        made = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(SUFFIX) and _is_temporary(name)]
    except OSError:
        return
    for path in made:
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_mtime < limit:
            _drop(path)


def _is_temporary(name):
    # the folder may be anybody's: only names exactly as `_write_beside` makes them
    stem = name.removesuffix(SUFFIX)
    return stem != name and len(stem) > 18 and stem[0] == stem[-17] == "." and not stem[-16:].strip("0123456789abcdef")


class lock:
    """Hold an exclusive lock on `path` while in a `with` block.

    The system drops it when the holder dies, so nothing is left to clean up. Waits `timeout` seconds with
    growing pauses, then raises Busy. The lock file itself stays: removing it would let two owners in.
    Locks of one process on one path exclude each other too.
    """

    def __init__(self, path, *, timeout=10.0):
        self.path = path
        self.timeout = timeout
        self.descriptor = None

    def __enter__(self):
        try:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
                                      | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError as error:
            raise _storage("lock", self.path, error) from None
        deadline, pause = time.monotonic() + self.timeout, 0.001
        while not _try_lock(self.descriptor):
            if time.monotonic() >= deadline:
                os.close(self.descriptor)
                raise Busy(f"another process has held the lock for {self.timeout:g} s.", file=self.path,
                           hint="Try again when it is done.")
            time.sleep(pause)
            pause = min(pause * 1.6, 0.05)
        return self

    def __exit__(self, *_):
        os.close(self.descriptor)  # closing releases it


def package_data(name):
    """Return the bytes of a data file of this package; `name` is relative to it ("text/words.bin")."""
    path, offset, size = package_span(name)
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        return file.read(size)


def package_span(name):
    """Return (path, offset, size): where a data file of this package lies on disk, for reading a part of it.

    That is the file itself in a checkout or an installed package, and a stretch of the archive in the single file,
    where build.py stores it uncompressed. Raises StorageError when it is not there.
    """
    archive = getattr(__loader__, "archive", None)
    if archive is None:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), *name.split("/"))
        try:
            return path, 0, os.stat(path).st_size
        except OSError as error:
            raise _storage("read", path, error) from None
    wanted = b"site-packages/engram/" + name.encode()
    number = lambda data, at, size: int.from_bytes(data[at:at + size], "little")
    with open(archive, "rb", buffering=0) as file:
        # the zip's own tables, read by hand: the zipfile module costs every hook 4 ms
        length = file.seek(-22, os.SEEK_END)
        end = file.read(22)
        size, start = number(end, 12, 4), number(end, 16, 4)
        before = file.seek(length - size) - start
        rows = file.read(size)
        at = rows.find(wanted) - 46
        while at >= 0 and not (rows[at:at + 4] == b"PK\1\2" and number(rows, at + 28, 2) == len(wanted)):
            at = rows.find(wanted, at + 47) - 46
        if at < 0:
            raise StorageError(f"{name} is missing from this archive.", file=archive, hint="Build or fetch it again.")
        header = before + number(rows, at + 42, 4)
        file.seek(header)
        local = file.read(30)
        return archive, header + 30 + number(local, 26, 2) + number(local, 28, 2), number(rows, at + 24, 4)


def sync_folder(folder):
    """Make a rename durable where the system lets folders be synced."""
    try:
        descriptor = os.open(folder or ".", os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _write_beside(path, data, mode, owner=None):
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:40]}.{os.urandom(8).hex()}{SUFFIX}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        # never wider than the file it becomes, from its first byte on (case CF-03)
        descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600)
    except OSError as error:
        raise _storage("write", path, error) from None
    try:
        try:
            if owner is not None and hasattr(os, "fchown") and os.geteuid() == 0:
                os.fchown(descriptor, owner.st_uid, owner.st_gid)  # root editing a user's file leaves it theirs
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view):]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        _drop(temporary)
        raise _storage("write", path, error) from None
    except BaseException:
        _drop(temporary)
        raise
    return temporary


def _try_lock(descriptor):
    try:
        if fcntl:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK, errno.EINTR):
            return False
        os.close(descriptor)
        raise StorageError(f"this file system has no locks: {error.strerror}.") from None
    return True


def _drop(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def _storage(verb, path, error):
    hint = {errno.ENOSPC: "The disk is full: make room and try again.", errno.EDQUOT: "The quota is used up.",
            errno.EROFS: "The file system is read-only.", errno.EACCES: "Permission is missing.",
            errno.EFBIG: "The file-size limit is reached."}.get(error.errno)
    return StorageError(f"can't {verb} it: {error.strerror or error}.", file=path, hint=hint)
