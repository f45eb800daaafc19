"""Programs of this machine in a root directory, each with the libraries that it needs; busybox stands in for all others."""

import os, re, shutil
from pathlib import Path

from commands import need, run

from . import archive

PROGRAMS = """bash env cat cp mv rm ln ls mkdir rmdir mknod mkfifo chmod chown chgrp touch stat dd sync df du head tail sort uniq wc cut tr
 seq sleep date timeout tee truncate readlink realpath id md5sum sha1sum sha256sum cmp diff od printf basename dirname expr test true false
 link unlink tar gzip find xargs grep sed awk getfattr setfattr mount umount flock kmod keyctl request-key kinit klist kdestroy ip""".split()
NEEDED = {"busybox": "busybox-static", "kmod": "kmod", "getfattr": "attr", "keyctl": "keyutils", "request-key": "keyutils",
          "kinit": "krb5-user", "ip": "iproute2"}
# Other names of kmod.
OF_KMOD = ["modprobe", "insmod", "rmmod", "lsmod", "modinfo", "depmod"]
# aklog-kafs makes tokens of tickets; kafs-dns finds for the kernel where a cell's servers are.
OF_KAFS_CLIENT = ["usr/bin/aklog-kafs", "usr/libexec/kafs-dns"]


def install(root, work):
    need(NEEDED)
    for name in PROGRAMS:
        if found := shutil.which(name):
            copy(Path(found), root)
    for name in OF_KMOD:
        link("../bin/kmod", root / "usr/sbin" / name)
    kafs_client(root, work / "kafs-client")
    busybox(root)


def copy(file, root):
    """A program or a library at its own path, with its libraries."""
    location = root / file.relative_to("/")
    if not location.exists():
        location.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, location)
        for library in libraries(file):
            copy(library, root)


def libraries(file, **environment):
    """What the dynamic linker would load for it. Nothing for a script or a static program."""
    done = run("sh", "-c", 'ldd "$1" 2>&1 || true', "sh", file, env={**os.environ, **environment})
    return [Path(os.path.normpath(found)) for found in re.findall(r"(/\S+) \(0x", done)]


def kafs_client(root, folder):
    """Debian's package is only unpacked: installed, it would mount /afs on this machine."""
    archive.fetch(folder, "kafs-client", "libkafs-client0")
    own = sorted(folder.glob("usr/lib/**/libkafs_client.so*"))
    for name in OF_KAFS_CLIENT:
        for library in libraries(folder / name, LD_LIBRARY_PATH=str(own[0].parent)):
            if folder not in library.parents:
                copy(library, root)
    for file in own + [folder / name for name in OF_KAFS_CLIENT]:
        location = root / file.relative_to(folder)
        location.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, location)


def busybox(root):
    """Links to busybox under all the names that it knows and nothing else has."""
    location = root / "usr/bin/busybox"
    shutil.copy(shutil.which("busybox"), location)
    for name in run(location, "--list").split():
        if not any((root / folder / name).exists() for folder in ["usr/bin", "usr/sbin"]):
            link("busybox", root / "usr/bin" / name)


def link(target, location):
    if not location.is_symlink():
        location.symlink_to(target)
