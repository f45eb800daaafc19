"""Mount of a cell by OpenAFS's client in user space, afsd.fuse. It has no tokens: it is always system:anyuser."""

import os, re
from pathlib import Path

from commands import Failure, attempt, begin, need, until
from network import end

# The kernel's own caches of attributes and names, a second otherwise, hide what another client wrote.
STRICT = ["-oattr_timeout=0,entry_timeout=0,negative_timeout=0"]


class Mount:
    # Size of the cache, in KiB, unless another is given.
    BLOCKS = 400_000

    def __init__(self, host):
        self.host = host

    def file(self):
        """The file with the folder of the host's mount."""
        return self.host.folder / "mount"

    def is_on(self, folder):
        return self.file().exists() and self.file().read_text() == str(Path(folder).absolute())

    def make(self, folder, is_strict, blocks=BLOCKS):
        """Mounts /afs of the host on a folder that the whole machine sees; returns when it can be listed."""
        need({"afsd.fuse": "openafs-fuse", "fusermount3": "fuse3"})
        folder = Path(folder).absolute()
        if is_mounted(folder):
            raise Failure(f"{folder} is a mount point already")
        self.host.inside()  # Fails unless the host is running.
        folder.mkdir(parents=True, exist_ok=True)
        self.file().write_text(str(folder))
        log = self.host.folder / "afsd.log"
        process = begin(self.command(folder, is_strict, blocks), log, env=self.host.cell.environment())

        def is_there():
            if process.poll() is not None:
                raise Failure(f"afsd.fuse on {self.host.name} ended with status {process.returncode}: {log.read_text()[-2000:].strip()}")
            return is_mounted(folder) and attempt("ls", folder, timeout=20).returncode == 0

        until(f"{folder} mounted by afsd.fuse (its log is {log})", is_there, 60)

    def command(self, folder, is_strict, blocks):
        """Flags of FUSE come first: afsd.fuse treats every argument after a bare flag of its own as its own.

        Only the network namespace is the host's: the mount belongs to the whole machine."""
        own = self.host.folder
        # As many files as its chunks of a mebibyte fill, twice: many times that by default, which takes minutes to make.
        files = blocks // 512 if blocks > self.BLOCKS else None
        return ["nsenter", f"--net={self.host.namespace.path}", *afsd(folder, own / "etc-openafs", own / "cache", blocks, files, STRICT if is_strict else [])]

    def remove(self):
        """Unmounts; the client ends by itself. Does nothing if there is no mount."""
        if not self.file().exists():
            return
        folder = Path(self.file().read_text())
        if is_mounted(folder) and attempt("fusermount3", "-u", folder, timeout=20).returncode != 0:
            attempt("umount", "-l", folder, timeout=20)
        self.file().unlink()
        end(self.processes)

    def processes(self):
        """Process numbers of the client, the only one of that name on its host."""
        return [pid for pid in self.host.namespace.processes() if name_of(pid) == "afsd.fuse"]


def afsd(folder, configuration, cache, blocks, files=None, fuse=()):
    """The client in the foreground, with a cache of so many KiB in so many files; flags of FUSE come first."""
    words = ["afsd.fuse", "-f", *fuse, "-dynroot", "-fakestat", "-nosettime", "-confdir", configuration, "-mountdir", folder]
    return [*words, "-cachedir", cache, "-blocks", blocks, *(["-files", files] if files else []), "-chunksize", 20, "-volume-ttl", 600]


def configuration(cell, servers, cache, blocks):
    """Files of a client of this cell, whose databases are at these addresses, by their names."""
    databases = "".join(f"{one} #{one.replace('.', '-')}.{cell}\n" for one in servers)
    return {"cacheinfo": f"/afs:{cache}:{blocks}\n", "ThisCell": f"{cell}\n", "CellServDB": f">{cell} #test cell\n{databases}"}


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None  # It ended meanwhile.


def is_mounted(folder):
    """Read from the kernel's table: the mount itself may not reply."""
    octal = lambda found: chr(int(found[1], 8))
    with open("/proc/self/mountinfo") as table:
        points = [re.sub(r"\\(\d{3})", octal, line.split()[4]) for line in table]
    return os.path.realpath(folder.parent) + "/" + folder.name in points
