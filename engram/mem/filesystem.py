"""Which kind of file system a folder lies on (case DB-02).

Must not know the database. SQLite's write-ahead log needs shared memory between its users, which network
file systems don't have: rows of different generations get mixed until the file is no database any more.
"""

from __future__ import annotations

import os

NETWORK = frozenset(
    ("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "smbnetfs", "afs", "afpfs", "ncpfs", "webdav", "davfs", "fuse.davfs")
)
LOCAL = frozenset(
    (
        "apfs",
        "bcachefs",
        "btrfs",
        "ecryptfs",
        "exfat",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "fuseblk",
        "fuse.fuse-overlayfs",
        "hfs",
        "jfs",
        "msdos",
        "ntfs",
        "ntfs3",
        "overlay",
        "overlayfs",
        "ramfs",
        "reiserfs",
        "rootfs",
        "squashfs",
        "tmpfs",
        "ufs",
        "vfat",
        "xfs",
        "zfs",
        "aufs",
        "shiftfs",
        "erofs",
        "iso9660",
        "devtmpfs",
    )
)


def kind(folder, *, table="/proc/self/mounts"):
    """Return the type of the file system that `folder` (or its nearest parent that exists) is on; "" when unknown."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.split(" ") for line in file]
    except OSError:
        return ""  # no such table on this system
    folder = os.path.realpath(folder)
    best, found = -1, ""
    for row in rows:
        if len(row) < 3:
            continue
        point = row[1].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # of two mounts on one point the later one is on top
            best, found = len(point), row[2].lower()
    return found
