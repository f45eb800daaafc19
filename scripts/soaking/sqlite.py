"""SQLite on a mount, with a ledger of what it has acknowledged."""

import json, shutil, subprocess
from pathlib import Path

from .place import USER, UID, as_user, environment, kill_tree, run

MODES = ["delete", "wal", "truncate", "persist"]
PYTHON = "/usr/bin/python3"


class SQLite:
    """One database below a folder of the mount; everything else is in `local`, outside of it."""

    name = "sqlite"

    def __init__(self, folder, local, modes, leases):
        self.database, self.local, self.ledger = folder / "soak.sqlite", local, local / "sqlite.ledger"
        self.program = local / "ledger.py"
        shutil.copy(Path(__file__).with_name("ledger.py"), self.program)
        self.writer, self.starts, self.modes = None, 0, modes
        # A commit in `delete` is the removal of the journal, which only `extra` syncs: with leases that is up to a second later otherwise.
        self.synchronous = "extra" if leases else "full"

    def prepare(self):
        self.ledger.touch()
        shutil.chown(self.ledger, UID)

    def begin(self, seed):
        mode = self.modes[self.starts % len(self.modes)]
        self.starts += 1
        with (self.local / "sqlite.errors").open("ab") as errors:
            words = [PYTHON, self.program, "sqlite", self.database, self.ledger, mode, self.synchronous, str(seed)]
            self.writer = subprocess.Popen(as_user(words), env=environment(self.local), stdin=subprocess.DEVNULL,
                                           stderr=errors, stdout=errors, cwd="/")

    def acknowledged(self):
        return self.ledger.read_bytes().count(b"\n")

    def is_over(self):
        return self.writer.poll() is not None

    def kill(self):
        kill_tree(self.writer)

    def verify(self, folder=None):
        database = folder / self.database.name if folder else self.database
        if not self.starts:
            return {"rows": 0, "acknowledged": 0, "faults": []}
        done = run(PYTHON, self.program, "verify", database, self.ledger, user=USER, home=self.local, check=False)
        if done.returncode != 0:
            return {"rows": 0, "acknowledged": self.acknowledged(), "faults": [done.stderr.strip()]}
        return json.loads(done.stdout)

    def end(self):
        """Nothing runs between a kill and the next beginning."""
