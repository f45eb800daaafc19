"""A local file system made for one measurement: ext4 with a journal in an image of its own, so that nothing counts that was there before.

ext4 without a journal, which some virtual machines have as their root, looks at each inode of a group that was removed in the last minutes
before it takes one for a new file: a creation there costs a hundred times what it does elsewhere, and more the more was removed before."""

import shutil, subprocess
from pathlib import Path

import processes
from processes import run

# Sparse: what is not written takes no room.
GIB = 24


class LocalDisk:
    """Mounted while it is entered. What a killed run has left is taken down first."""

    def __init__(self, folder):
        self.folder, self.image = Path(folder), Path(folder).parent / f"{Path(folder).name}.image"

    def __enter__(self):
        self.take_down()
        self.folder.mkdir(parents=True)
        with open(self.image, "wb") as image:
            image.truncate(GIB << 30)
        # Zeroed now and not beside what is measured.
        run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", self.image])
        device = run(["losetup", "--find", "--show", "--direct-io=on", self.image]).strip()
        try:
            run(["mount", device, self.folder])
        finally:
            # It stays until the unmount.
            run(["losetup", "--detach", device])
        return self.folder

    def __exit__(self, *_):
        self.take_down()

    def take_down(self):
        if self.folder.is_mount():
            done = subprocess.run(["umount", self.folder], capture_output=True, text=True)
            if done.returncode != 0:
                # What a measurement left running must not make its results unreadable.
                subprocess.run(["umount", "--lazy", self.folder], capture_output=True)
        self.image.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
