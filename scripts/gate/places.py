"""Places in which the gate runs programs: directories of the machine's disk, and a private directory of one cell on mounts of each kind."""

import os, subprocess
from dataclasses import dataclass
from pathlib import Path

from soaking import trees
from soaking.cell import Cell
from soaking.place import UID, USER, Failed, as_user, environment, run, shown

# The users of each kind's programs. Of `root` and `shared` it is the same mount of root's, which all users of the machine may enter.
KINDS = {"root": "root", "shared": USER, "user": USER, "lease": USER}
PROGRAM = Path("/run/program")
KILL_SECONDS = 10


@dataclass
class Place:
    """Where a suite runs, as whom, and the same directory on another machine's mount (not of the disk)."""

    name: str
    user: str
    top: Path
    local: Path
    beside: Path | None = None

    @property
    def base(self):
        """The name of the directory of the disk that this place is compared with."""
        return "disk-root" if self.user == "root" else "disk"

    def folder(self, suite):
        return self.top / suite

    def make(self, suite):
        run("mkdir", self.folder(suite), user=self.user)

    def run(self, words, seconds, folder=None, **around):
        """Runs a command in a directory of this place; answers status (`None` if it did not end in time), output and complaints."""
        # Root cannot enter a mount of the user's, so that the user's shell does.
        entered = ["bash", "-c", 'cd "$0" && exec "$@"', folder or self.top, *words]
        limited = ["timeout", "-k", KILL_SECONDS, max(1, int(seconds)), *entered]
        env = environment(self.local) | {name: str(value) for name, value in around.items()}
        done = subprocess.run(as_user(limited, self.user), cwd="/", env=env, capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace")
        return None if done.returncode in (124, 137) else done.returncode, done.stdout, done.stderr


class Places:
    """The cell with its mounts, and the places of the kinds that were chosen, those of the disk first."""

    def __init__(self, andrew, scratch, kinds):
        shown(andrew.parent, PROGRAM)
        self.cell = Cell(PROGRAM / andrew.name, scratch / "cell", "root", False)
        self.lister = trees.Lister(scratch)
        self.scratch = scratch
        mounts = {"root": self.cell.mount("root"), "beside": self.cell.mount("beside")}
        self.beside = mounts["beside"]
        for kind in {"user", "lease"} & set(kinds):
            mounts[kind] = self.cell.mount(kind, USER, leases=kind == "lease")
        self.login("root")
        self.login(USER)
        own = self.private(mounts["root"]).relative_to(mounts["root"])
        disks = {Place("x", KINDS[kind], scratch, scratch).base: KINDS[kind] for kind in kinds}
        self.all = [self.disk(name, user) for name, user in disks.items()]
        self.all += [self.mounted(kind, mounts.get(kind, mounts["root"]) / own) for kind in KINDS if kind in kinds]

    def login(self, user):
        """The token of the same user of the cell, for root's processes too."""
        secret = self.scratch / f"passphrase-{user}"
        secret.write_text((self.cell.home / "passphrase").read_text())
        secret.chmod(0o600)
        os.chown(secret, *[0 if user == "root" else UID] * 2)
        run(self.cell.andrew, "login", USER, "--cell", "soak.test", "--servers", "127.0.0.1", "--passphrase-file", secret,
            user=user, home=self.cell.home_of(user))

    def private(self, mount):
        """A directory of the user's into which nobody else may look."""
        folder = self.cell.own_folder(mount)
        run(self.cell.andrew, "fs", "setacl", folder, "system:anyuser", "none", user=USER, home=self.cell.home)
        return folder

    def disk(self, name, user):
        top = self.scratch / name
        run("install", "-d", "-o", 0 if user == "root" else UID, top)
        return Place(name, user, top, self.beside_of(name, user))

    def mounted(self, kind, own):
        user = KINDS[kind]
        run("mkdir", own / kind, user=user)
        return Place(kind, user, own / kind, self.beside_of(kind, user), self.beside / own.name / kind)

    def beside_of(self, name, user):
        """A directory of the disk for what a program in that place keeps elsewhere."""
        local = self.scratch / f"local-{name}"
        run("install", "-d", "-o", 0 if user == "root" else UID, "-g", 0 if user == "root" else UID, local)
        return local

    def listing(self, place, folder):
        return self.lister.listing(folder, place.user)

    def seen_by_others(self):
        """What is wrong with what a user without a token sees."""
        entered = subprocess.run(["setpriv", "--reuid=61002", "--regid=61002", "--clear-groups", "ls", self.beside / USER], cwd="/", capture_output=True, text=True)
        return [f"a user without a token lists the private directory: {entered.stdout[:200]}"] if entered.returncode == 0 else []

    def end(self):
        return self.seen_by_others() + self.cell.checked() + self.cell.stop()
