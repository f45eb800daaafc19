"""git's own tests in a mount of a user who has logged in, beside the same scripts on a local directory."""

import concurrent.futures, re, subprocess, time
from pathlib import Path

from . import sources
from .cell import Cell
from .place import UID, USER, as_user, environment, run

# Where the tree is that is fetched and built.
TREE = Path("/var/tmp/andrew-soak-git")
SOURCE = "https://deb.debian.org/debian/pool/main/g/git/git_2.39.5.orig.tar.xz"
PRODUCT = "t/helper/test-tool"
# What git does with files, references, the index, packs, worktrees and merges.
SCRIPTS = ["t0*.sh", "t1*.sh", "t3*.sh", "t5[3-6]*.sh", "t7*.sh"]
TEST_SECONDS = 900
# Tests that want what a mount does not have, by script: docs/semantics.md says so of each.
SET_GROUP_ID = "only an administrator sets the bit by which a directory's group is inherited"
LOCAL_CLONE = "`git clone --local` insists on hard links from one directory to another"
SOCKET = "AFS has no Unix sockets"
KNOWN = {
    "t0001-init.sh": {20: SET_GROUP_ID, 21: SET_GROUP_ID, 28: SET_GROUP_ID},
    "t0033-safe-directory.sh": {14: LOCAL_CLONE},
    "t0052-simple-ipc.sh": dict.fromkeys(range(1, 10), SOCKET),
    "t0301-credential-cache.sh": dict.fromkeys([2, 3, 7, 9, 11, 12, 13, 15, 16, 20, 22, 24, 25, 26, 27, 28, 29, 30, 31], SOCKET),
    "t1060-object-corruption.sh": {12: LOCAL_CLONE},
    "t1301-shared-repo.sh": dict.fromkeys([*range(2, 19), *range(20, 23)], SET_GROUP_ID),
    "t1700-split-index.sh": {26: SET_GROUP_ID},
    "t5324-split-commit-graph.sh": {28: SET_GROUP_ID},
    "t5604-clone-reference.sh": dict.fromkeys([29, 31], LOCAL_CLONE),
    "t5605-clone-local.sh": {7: LOCAL_CLONE},
    "t7300-clean.sh": {34: LOCAL_CLONE},
}


def run_all(options, chance, scratch):
    scratch.mkdir()
    tree = options.git.resolve()
    cell = Cell(options.andrew, scratch / "cell", "root", False, options.leases)
    mount = cell.mount("client", "root")
    cell.login()
    own = cell.own_folder(mount)
    local = scratch / "local"
    run("install", "-d", "-o", UID, "-g", UID, local)
    names = scripts(options.git_scripts, tree)
    chance.shuffle(names)
    tests = Tests(tree, {"mount": own, "local": local}, scratch, time.monotonic() + options.minutes * 60)
    faults = tests.run(names) + cell.checked() + cell.stop()
    print(f"{tests.scripts} of {len(names)} scripts, {tests.passed} tests passed in the mount and {tests.passed_locally} beside it; {tests.seconds:.0f} s and "
          f"{tests.seconds_locally:.0f} s; failed in both: {tests.both}; known: {tests.known}", flush=True)
    return faults


def prepare(tree):
    """The source that Debian 12 has, without what needs other libraries; fetched and built once."""
    sources.built(tree, PRODUCT, SOURCE, "make -j2 NO_TCLTK=1 NO_GETTEXT=1 NO_CURL=1 CFLAGS=-O0")


def scripts(patterns, tree=TREE):
    return sorted({script.name for pattern in patterns for script in (tree / "t").glob(pattern)})


def command(script, root, results):
    """The words that run a script in the tree's directory `t`, with its files below `root`, and what they have around them."""
    return ["bash", f"./{script}", f"--root={root}"], {"TEST_OUTPUT_DIRECTORY": str(results), "GIT_TEST_OPTS": ""}


class Tests:
    """Runs of scripts in both places, and what failed in the mount only."""

    def __init__(self, tree, places, scratch, deadline):
        self.tree, self.places, self.scratch, self.deadline = tree, places, scratch, deadline
        self.scripts = self.passed = self.passed_locally = self.both = self.known = 0
        self.seconds = self.seconds_locally = 0.0

    def run(self, scripts):
        for place in self.places:
            run("install", "-d", "-o", UID, "-g", UID, self.scratch / f"results-{place}")
        faults = []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for ran in filter(None, pool.map(self.both_places, scripts)):
                faults += self.compared(*ran)
        return faults

    def both_places(self, script):
        """`None` if there is no time left for it."""
        if time.monotonic() > self.deadline:
            return None
        return script, self.one("mount", script), self.one("local", script)

    def one(self, place, script):
        """The numbers of the tests that passed and failed, and the seconds; a script that does not end has failed as number 0."""
        results = self.scratch / f"results-{place}"
        words, around = command(script, self.places[place] / "trash", results)
        words = ["timeout", "-k", 10, TEST_SECONDS, *words]
        began = time.monotonic()
        done = subprocess.run(as_user(words), cwd=self.tree / "t", env=environment(results) | around, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        (results / f"{script}.out").write_text(done.stdout)
        passed = re.findall(r"^ok (\d+)", done.stdout, re.M)
        failed = dict(re.findall(r"^not ok (\d+) - ((?!.*# TODO known breakage).*)", done.stdout, re.M))
        if done.returncode > 1 or (done.returncode == 1 and not failed):
            failed["0"] = f"ended with {done.returncode}: {done.stdout[-300:]}"
        return len(passed), failed, time.monotonic() - began

    def compared(self, script, mounted, beside):
        self.scripts += 1
        self.passed, self.seconds = self.passed + mounted[0], self.seconds + mounted[2]
        self.passed_locally, self.seconds_locally = self.passed_locally + beside[0], self.seconds_locally + beside[2]
        self.both += len(mounted[1].keys() & beside[1].keys())
        ours = {number: title for number, title in mounted[1].items() if number not in beside[1]}
        known = [number for number in ours if int(number) in KNOWN.get(script, {})]
        self.known += len(known)
        faults = [f"{script} {number} - {title}" for number, title in ours.items() if number not in known]
        for fault in faults:
            print(f"failed in the mount only: {fault}", flush=True)
        return faults
