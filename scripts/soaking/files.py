"""Files that are written, replaced and removed while servers and mounts are killed: what was acknowledged is there."""

import json, shutil, subprocess, time
from pathlib import Path

from .cell import Cell, until
from .place import UID, USER, Failed, as_user, environment, run

PYTHON = "/usr/bin/python3"
# Who has mounted (root, with passthrough, or an ordinary user), and which processes are killed.
PLACES = [(user, victims) for user in ("root", USER) for victims in (["client"], ["server"], ["client", "server"])]


def run_all(options, chance, scratch):
    faults = []
    print("| mount of | killed | kills | acknowledged | seconds |\n|---|---|---|---|---|")
    for number, (user, victims) in enumerate(PLACES):
        kills = options.kills * (number + 1) // len(PLACES) - options.kills * number // len(PLACES)
        place = Place(options, scratch / f"{user}-{'-'.join(victims)}", user, victims, chance)
        try:
            found = place.rounds(kills) or place.afterwards()
        except Failed as failed:
            found = [str(failed)]
        print(f"| {user} | {' and '.join(victims)} | {place.kills} | {place.acknowledged} | {time.monotonic() - place.began:.0f} |", flush=True)
        faults += [f"{user}, {victims}, kill {place.kills}: {fault}" for fault in found]
        place.end()
        for process in place.cell.processes.values():
            process.stop()
        if not found:
            shutil.rmtree(place.cell.folder)
    return faults


class Place:
    """A cell with a mount that is killed and one beside it, and programs on the first."""

    def __init__(self, options, folder, user, victims, chance):
        self.victims, self.chance, self.began = victims, chance, time.monotonic()
        self.kills = self.acknowledged = 0
        self.cell = Cell(options.andrew, folder, "root", False, options.leases)
        self.mount, self.beside = self.cell.mount("client", user), self.cell.mount("beside", USER, False)
        self.cell.login()
        own = self.cell.own_folder(self.mount)
        run(options.andrew, "fs", "setacl", own, "system:anyuser", "none", user=USER, home=self.cell.home)
        self.local, self.writers = folder / "local", []
        self.local.mkdir()
        shutil.copy(Path(__file__).with_name("keeper.py"), self.local)
        shutil.chown(self.local, UID, UID)
        # Under a lease a close alone is kept by this machine: its mount must live.
        self.words = ["fsync", "sync"] if options.leases and "client" in victims else ["close", "fsync", "sync"]

    def rounds(self, kills):
        """The faults of the first round that has some."""
        for _ in range(kills):
            self.begin()
            before = self.lines()
            until("changes", lambda: self.lines() > before + 10 * len(self.words))
            time.sleep(self.chance.uniform(0, 1))
            for victim in self.victims:
                self.cell.kill(victim)
            self.kills += 1
            for victim in sorted(self.victims, reverse=True):
                self.cell.again(victim)
            if "client" in self.victims:
                self.cell.login()
            else:
                before = self.lines()
                until("changes after the restart", lambda: self.lines() > before + 10 * len(self.words))
            self.end()
            faults = self.verify(self.beside) + self.verify(self.mount)
            if faults:
                return faults
        return []

    def begin(self):
        for word in self.words:
            words = [PYTHON, self.local / "keeper.py", "write", self.mount / USER, self.ledger(word), word, self.chance.randrange(2**31)]
            self.writers.append(subprocess.Popen(as_user(words), env=environment(self.local), cwd="/"))

    def end(self):
        for writer in self.writers:
            writer.kill()
            writer.wait()
        self.writers = []

    def ledger(self, word):
        return self.local / word

    def lines(self):
        """Acknowledged changes so far, and what else is in the ledgers."""
        return sum(self.ledger(word).read_bytes().count(b"\n") for word in self.words if self.ledger(word).exists())

    def verify(self, mount):
        ledgers = [self.ledger(word) for word in self.words]
        said = json.loads(run(PYTHON, self.local / "keeper.py", "verify", mount / USER, *ledgers, user=USER))
        self.acknowledged = said["acknowledged"]
        return [f"{mount.name}: {fault}" for fault in said["faults"]]

    def afterwards(self):
        """What a client with an empty cache sees when everything was stopped in good order and started again."""
        faults = self.cell.checked() + self.cell.stop()
        self.cell.again("server")
        fresh = self.cell.mount("fresh", USER)
        self.cell.login()
        return faults + self.verify(fresh) + self.cell.stop()
