"""PostgreSQL on a mount: pgbench, and beside it a ledger of what it has acknowledged."""

import shutil, subprocess
from pathlib import Path

from .cell import until
from .place import UID, USER, Failed, as_user, environment, kill_tree, run

SUMS = """select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers),
  (select sum(bbalance) from pgbench_branches), (select coalesce(sum(delta), 0) from pgbench_history),
  (select count(*) from pgbench_history), (select count(*) from ledger), (select coalesce(max(n), 0) from ledger)"""


class Postgres:
    """One database cluster below a folder of the mount; sockets, logs and ledger are in `local`, outside of it."""

    name = "postgres"

    def __init__(self, folder, local):
        self.data, self.local, self.ledger = folder / "postgres", local, local / "postgres.ledger"
        self.bin = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        self.server, self.writers, self.starts = None, [], 0

    def prepare(self):
        self.ledger.touch()
        shutil.chown(self.ledger, UID)
        self.tool("initdb", "-D", self.data, "-U", USER, "-A", "trust", "--locale=C", "-E", "UTF8", "--data-checksums")
        self.up()
        self.tool("createdb", "-h", self.local, "bench")
        self.tool("pgbench", "-h", self.local, "-i", "-q", "-s", "1", "bench")
        self.query("create table ledger (n bigint primary key, body text); create extension amcheck")
        self.end()

    def up(self):
        words = [self.bin / "postgres", "-D", self.data, "-c", f"unix_socket_directories={self.local}", "-c", "listen_addresses="]
        self.server = self.spawn(words, "postgres.log")
        until("PostgreSQL to start", self.ready)

    def ready(self):
        if self.server.poll() is not None:
            raise Failed(f"PostgreSQL does not start; {self.local / 'postgres.log'} ends with: {self.last_words()}")
        return self.tool("pg_isready", "-h", self.local, check=False).returncode == 0

    def last_words(self):
        return "\n".join((self.local / "postgres.log").read_text(errors="replace").splitlines()[-5:])

    def begin(self, seed):
        if self.server is None:
            self.up()
        self.starts += 1
        prefix = self.local / f"pgbench.{self.starts}"
        bench = [self.bin / "pgbench", "-h", self.local, "-n", "-c", "3", "-T", "86400", "--random-seed", seed,
                 "-l", f"--log-prefix={prefix}", "bench"]
        ledger = ["/usr/bin/python3", self.local / "ledger.py", "postgres", self.local, self.ledger]
        self.writers = [self.spawn(words, "writers.log") for words in (bench, ledger)]

    def spawn(self, words, log):
        with (self.local / log).open("ab") as file:
            return subprocess.Popen(as_user(words), env=environment(self.local), stdin=subprocess.DEVNULL,
                                    stdout=file, stderr=file, cwd="/")

    def acknowledged(self):
        return self.ledger.read_bytes().count(b"\n")

    def is_over(self):
        return any(writer.poll() is not None for writer in self.writers)

    def kill(self):
        kill_tree(self.server)
        self.server = None
        # pgbench ends by itself then, and writes down the rest of what it has seen acknowledged.
        try:
            self.writers[0].wait(20)
        except subprocess.TimeoutExpired:
            pass
        for writer in self.writers:
            kill_tree(writer)

    def verify(self, folder=None):
        """Starts it again, as after a crash, and leaves it running."""
        if folder:
            self.data = folder / self.data.name
        try:
            self.up()
            faults = self.amcheck()
            *sums, history, rows, last = (int(word) for word in self.query(SUMS).strip().split("|"))
            missing = self.missing()
        except Failed as failed:
            return {"rows": 0, "acknowledged": self.acknowledged(), "faults": [str(failed)]}
        logged = sum(log.read_bytes().count(b"\n") for log in self.local.glob("pgbench.*"))
        if len(set(sums)) != 1:
            faults.append(f"accounts, tellers, branches and history have other sums: {sums}")
        if history < logged:
            faults.append(f"pgbench saw {logged} transactions acknowledged and the history has {history}")
        if missing:
            faults.append(f"{len(missing)} inserts were acknowledged and are lost, the first is {min(missing)}")
        if rows != last:
            faults.append(f"there are gaps in the ledger: {rows} rows up to {last}")
        return {"rows": history + rows, "acknowledged": logged + self.acknowledged(), "faults": faults}

    def amcheck(self):
        done = self.tool("pg_amcheck", "-h", self.local, "--heapallindexed", "bench", check=False)
        return [] if done.returncode == 0 else [f"pg_amcheck: {(done.stdout + done.stderr).strip()}"]

    def missing(self):
        there = set(self.query("select n from ledger").split())
        whole = self.ledger.read_text().rpartition("\n")[0]
        return [int(n) for n in whole.split() if n not in there]

    def query(self, words):
        return self.tool("psql", "-h", self.local, "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", words, "bench")

    def tool(self, name, *words, check=True):
        return run(self.bin / name, *words, user=USER, home=self.local, check=check)

    def end(self):
        """In good order."""
        if self.server is not None:
            self.tool("pg_ctl", "-D", self.data, "-m", "fast", "-w", "stop")
            self.server.wait()
            self.server = None
