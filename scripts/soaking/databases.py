"""Databases at work on a mount, while the processes under them are killed."""

import shutil, time

from .cell import Cell, until
from .place import UID, USER, Failed
from .postgres import Postgres
from .sqlite import SQLite

# Who has mounted (root, with passthrough, or an ordinary user), and which process is killed.
PLACES = [(user, victim) for user in ("root", USER) for victim in ("up", "client", "server")]


def run_all(options, chance, scratch):
    faults = []
    print("| mount of | killed | kills | acknowledged: SQLite | PostgreSQL | programs that saw an error | seconds |\n|---|---|---|---|---|---|---|")
    for number, (user, victim) in enumerate(PLACES):
        kills = options.kills * (number + 1) // len(PLACES) - options.kills * number // len(PLACES)
        place = Place(options, scratch / f"{user}-{victim}", user, victim, chance)
        try:
            place.prepare()
            found = place.rounds(kills) or place.afterwards()
        except Failed as failed:
            found = [str(failed)]
        print(f"| {user} | {victim} | {place.kills} | {place.count(0)} | {place.count(1)} | {place.errors} | {place.seconds():.0f} |", flush=True)
        found = [f"{user}, {victim}, kill {place.kills}: {fault}" for fault in found]
        print("".join(f"  {fault}\n" for fault in found), end="", flush=True)
        faults += found
        place.clear()
        if not found:
            shutil.rmtree(place.cell.folder)
    return faults


class Place:
    """A cell of one user with both databases in it."""

    def __init__(self, options, folder, user, victim, chance):
        self.victim, self.chance, self.began = victim, chance, time.monotonic()
        self.kills = self.errors = 0
        self.cell = Cell(options.andrew, folder, user, victim == "up", options.leases)
        self.mount = self.cell.mount_point("up") if victim == "up" else self.cell.mount("client")
        self.cell.login()
        own = self.cell.own_folder(self.mount)
        local = folder / "local"
        local.mkdir()
        shutil.chown(local, UID, UID)
        self.databases = [SQLite(own, local, options.journals, options.leases), Postgres(own, local)]

    def prepare(self):
        for database in self.databases:
            database.prepare()

    def rounds(self, kills):
        """The faults of the first round that has some."""
        for _ in range(kills):
            self.work()
            self.cell.kill(self.victim)
            self.kills += 1
            if self.victim == "server":
                self.cell.again("server")
                self.outlive()
            for database in self.databases:
                database.kill()
            if self.victim != "server":
                self.cell.again(self.victim)
                self.cell.login()
            faults = [f"{database.name}: {fault}" for database in self.databases for fault in database.verify()["faults"]]
            if faults:
                return faults
        return []

    def work(self):
        """Transactions of both, up to some instant."""
        for database in self.databases:
            database.begin(self.chance.randrange(2**31))
        self.more("to begin with")
        time.sleep(self.chance.uniform(0, 2))

    def outlive(self):
        """Who goes on while a server is away either has more acknowledged afterwards or ends with an error."""
        self.more("after a restart of the server")
        self.errors += sum(database.is_over() for database in self.databases)

    def more(self, when):
        goals = [(database, database.acknowledged() + 3) for database in self.databases]
        until(f"transactions {when}", lambda: all(db.is_over() or db.acknowledged() >= goal for db, goal in goals))

    def afterwards(self):
        """What a client with an empty cache sees when everything was stopped in good order and started again."""
        for database in self.databases:
            database.end()
        faults = self.cell.checked() + self.cell.stop()
        server = "up" if self.victim == "up" else "server"
        self.cell.again(server)
        fresh = self.cell.mount("fresh")
        self.cell.login()
        for database in self.databases:
            faults += [f"{database.name}, fresh: {fault}" for fault in database.verify(fresh / USER)["faults"]]
            database.end()
        return faults + self.cell.stop()

    def count(self, number):
        return self.databases[number].acknowledged()

    def seconds(self):
        return time.monotonic() - self.began

    def clear(self):
        """Whatever still runs after a fault."""
        for database in self.databases:
            for process in [getattr(database, "server", None), getattr(database, "writer", None), *getattr(database, "writers", [])]:
                if process and process.poll() is None:
                    process.kill()
        for process in self.cell.processes.values():
            process.stop()
