"""Exercisers on two mounts of one cell: one of root's, with passthrough, and one of an ordinary user's."""

import shutil, subprocess
from pathlib import Path

from . import trees
from .cell import Cell
from .place import UID, USER, as_user, environment, run

PYTHON = "/usr/bin/python3"
STRESSORS = ["dir", "rename", "link", "symlink", "utime", "chmod", "touch", "filename"]


def run_all(options, chance, scratch):
    cell = Cell(options.andrew, scratch / "cell", "root", False, options.leases)
    tops = [cell.mount("a", "root"), cell.mount("b", USER)]
    cell.login()
    cell.own_folder(tops[0])
    tools = scratch / "tools"
    tools.mkdir()
    shutil.copy(Path(__file__).with_name("exerciser.py"), tools)
    work = Work(options, chance, tools, [top / USER for top in tops])
    faults = work.run()
    fresh = cell.mount("fresh", "root")
    cell.login()
    lister = trees.Lister(tools)
    seen = [lister.listing(top / USER) for top in [*tops, fresh]]
    for name, other in zip(("the user's mount", "a fresh mount"), seen[1:]):
        differences = trees.difference(other, seen[0])
        faults += [f"{name} shows another tree than root's: {differences}"] if differences else []
    print(f"left in the tree: {len(seen[0])} names, the same in three mounts: {seen[0] == seen[1] == seen[2]}", flush=True)
    return faults + cell.checked() + cell.stop()


class Work:
    """All exercisers at the same time, and what they ended with."""

    def __init__(self, options, chance, tools, mounts):
        self.chance, self.tools, self.mounts = chance, tools, mounts
        self.seconds = int(options.minutes * 60)
        self.programs, self.options = {}, options

    def run(self):
        a, b = self.mounts
        for name in ("shared", "stress-a", "stress-b", "tree-a", "tree-b", "held"):
            run("mkdir", a / name, user=USER)
        self.exercise("file on a", "file", a / "own-a")
        self.exercise("file on b", "file", b / "own-b")
        self.exercise("file on a and b in turn", "file", a / "both", b / "both")
        self.exercise("held on a", "hold", a / "held", b / "held")
        self.exercise("tree on a", "tree", a / "tree-a")
        self.exercise("tree on b", "tree", b / "tree-b")
        self.exercise("shared tree on a", "tree", a / "shared")
        self.exercise("shared tree on b", "tree", b / "shared")
        for name, mount in (("a", a), ("b", b)):
            self.stress(name, mount)
            self.foreign(name, mount)
        return self.outcomes()

    def exercise(self, name, kind, *paths):
        self.start(name, [PYTHON, self.tools / "exerciser.py", kind, self.seed(), self.seconds, *paths])

    def stress(self, name, mount):
        stressors = [word for stressor in STRESSORS for word in (f"--{stressor}", "1")]
        self.start(f"stress-ng on {name}", ["stress-ng", "--temp-path", mount / f"stress-{name}", "--verify", "--metrics-brief",
                                            "--timeout", f"{self.seconds}s", *stressors])

    def foreign(self, name, mount):
        """Programs of others that were given, for as long as the rest runs."""
        if self.options.fsx:
            words = [self.options.fsx, "-N", 10**9, "-S", self.seed(), "-P", self.tools, mount / f"fsx-{name}"]
            self.start(f"fsx on {name}", ["timeout", self.seconds, *words])
        if self.options.fsstress:
            folder = mount / f"fsstress-{name}"
            run("mkdir", folder, user=USER)
            words = [self.options.fsstress, "-d", folder, "-n", 10**9, "-p", 2, "-s", self.seed()]
            self.start(f"fsstress on {name}", ["timeout", self.seconds, *words])

    def seed(self):
        return self.chance.randrange(2**31)

    def start(self, name, words):
        log = self.tools / f"{name.replace(' ', '-')}.log"
        shutil.chown(self.tools, UID)
        with log.open("wb") as file:
            self.programs[name] = subprocess.Popen(as_user(words), stdout=file, stderr=file, stdin=subprocess.DEVNULL,
                                                   env=environment(self.tools), cwd=self.tools), log

    def outcomes(self):
        faults = []
        print("| program | outcome |\n|---|---|")
        for name, (process, log) in self.programs.items():
            try:
                status = process.wait(self.seconds + 600)
            except subprocess.TimeoutExpired:
                process.kill()
                status = "no end ten minutes after its time"
            said = log.read_text(errors="replace").strip()
            # `timeout` ends with 124 what would not end by itself.
            good = status == 0 or (status == 124 and name.startswith("fs"))
            if not good:
                faults.append(f"{name} ended with {status}: {said[-1500:]}")
            print(f"| {name} | {'ended with ' + str(status) if not good else counted(said) if status == 0 else 'no complaint'} |", flush=True)
        return faults


def counted(said):
    """How much was done: the number that ours say, or the sum of the column "bogo ops" of stress-ng."""
    if said.isdigit():
        return f"{said} operations"
    rows = [line.split() for line in said.splitlines() if line.startswith("stress-ng: info")]
    done = [int(row[4]) for row in rows if len(row) > 8 and row[3] in STRESSORS and row[4].isdigit()]
    return f"{sum(done)} operations" if done else "no complaint"
