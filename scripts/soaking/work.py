"""Everyday programs on two mounts of one cell, with and without leases, beside the same programs on the local disk."""

import os, shutil, subprocess, threading, time
from pathlib import Path

from . import inputs, jobs, trees
from .cell import Cell
from .place import UID, USER, Failed, as_user, environment, run, shown

TOOLCHAIN, REGISTRY = Path("/run/toolchain"), Path("/run/cargo")
SCRIPT_SECONDS = 3600


def run_all(options, chance, scratch):
    cell = Cell(options.andrew, scratch / "cell", "root", False)
    # Root's mount has passthrough, and the user's has none: which of them has leases follows from the seed.
    owners = ["root", USER] if chance.random() < 0.5 else [USER, "root"]
    tops = {"leased": cell.mount("leased", owners[0], leases=True), "plain": cell.mount("plain", owners[1], leases=False)}
    cell.login()
    own = cell.own_folder(tops["leased"]).relative_to(tops["leased"])
    print(f"the mount with leases is {owners[0]}'s, the one without {owners[1]}'s", flush=True)
    names = [name for name in options.jobs if is_possible(jobs.ALL[name])]
    inputs.make(options, chance, scratch / "input", names)
    work = Work(options, chance, scratch, {name: top / own for name, top in tops.items()})
    print("| job | step | names | seconds: local disk | with leases | without | outcome |\n|---|---|---|---|---|---|---|")
    faults = [fault for name in names for fault in work.job(jobs.ALL[name])]
    fresh = cell.mount("fresh", "root", leases=False)
    cell.login()
    return faults + work.seen_by("a mount with an empty cache", fresh / own) + cell.checked() + cell.stop()


def is_possible(job):
    missing = [need for need in job.needs if not shutil.which(need)]
    if job is jobs.CARGO and not missing:
        # What is root's own is shown to the user, to read.
        sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
        shown(Path(sysroot.stdout.strip()), TOOLCHAIN)
        shown(Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")), REGISTRY)
    if missing:
        print(f"{job.name} is left out: there is no {' and no '.join(missing)}", flush=True)
    return not missing


class Work:
    """The places in which every step runs: the local disk, a mount with leases, and one without."""

    def __init__(self, options, chance, scratch, mounts):
        self.scratch, self.mounts = scratch, mounts
        self.lister = trees.Lister(scratch)
        self.places = {"local": scratch / "local", **{name: mount / name for name, mount in mounts.items()}}
        for name, folder in self.places.items():
            run("install", "-d", "-o", UID, "-g", UID, scratch / f"beside-{name}")
            if name == "local":
                run("install", "-d", "-o", UID, "-g", UID, folder)
            else:
                run("mkdir", folder, user=USER)
        self.settings = scratch / "input", chance.randrange(2**31), options.transactions, options.crate

    def job(self, job):
        """The faults of the first step that has some."""
        for name, folder in self.places.items():
            run("mkdir", folder / job.name, user=USER)
        for step in job.steps:
            outcomes = self.everywhere(job, step)
            faults = self.compared(job, step, outcomes)
            seconds = " | ".join(f"{outcomes[name].seconds:.1f}" for name in self.places)
            names = len(outcomes["local"].tree or [])
            print(f"| {job.name} | {step.name} | {names} | {seconds} | {'as on the local disk' if not faults else f'{len(faults)} faults'} |", flush=True)
            if faults:
                print("".join(f"  {fault}\n" for fault in faults), end="", flush=True)
                return faults
        return []

    def everywhere(self, job, step):
        """On the local disk first, then in both mounts at the same time."""
        outcomes = {name: Outcome(self, name, job, step) for name in self.places}
        outcomes["local"].go()
        if outcomes["local"].status != 0:
            raise Failed(f"{job.name}, {step.name} fails on the local disk: {outcomes['local'].complaint()}")
        together([outcomes[name].go for name in self.mounts])
        outcomes["local"].look(self.places["local"] / job.name)
        return outcomes

    def compared(self, job, step, outcomes):
        """What differs from the local disk, in what was printed and in what each mount shows of each place."""
        local, faults = outcomes["local"], []
        for name in self.mounts:
            if (outcomes[name].status, outcomes[name].said) != (0, local.said):
                faults.append(f"{job.name}, {step.name}, {name}: {outcomes[name].complaint()}; on the local disk it printed {local.said[-500:]!r}")
        looks = {(viewer, name): Look(self.lister, top / name / job.name) for viewer, top in self.mounts.items() for name in self.mounts}
        together([look.go for look in looks.values()])
        for (viewer, name), look in looks.items():
            what = f"{job.name}, {step.name}: the tree that was made on the mount '{name}', seen on '{viewer}'"
            faults += [f"{what}: {each}" for each in look.faults]
            # What is each run's own is still the same on each mount.
            same = trees.difference(look.tree, looks[name, name].tree)
            faults += [f"{what}, and on '{name}' itself: {each}" for each in same]
            unlike = trees.difference(look.tree, local.tree, step.sets_times, lambda path: path.startswith(job.own))
            faults += [f"{what}: {each}" for each in unlike]
        return faults

    def seen_by(self, who, top):
        """Everything that was left, as a mount shows it that has nothing of it in its cache."""
        faults = []
        for name, mount in self.mounts.items():
            looks = [Look(self.lister, folder / name) for folder in (top, mount)]
            together([look.go for look in looks])
            faults += [f"{who}, of '{name}': {each}" for look in looks for each in look.faults]
            faults += [f"{who}, of '{name}': {each}" for each in trees.difference(looks[0].tree, looks[1].tree)]
            print(f"{who} shows {len(looks[0].tree)} names of what was made on the mount '{name}'", flush=True)
        return faults


class Look:
    """One listing."""

    def __init__(self, lister, folder):
        self.lister, self.folder, self.tree, self.faults = lister, folder, {}, []

    def go(self):
        try:
            self.tree = self.lister.listing(self.folder)
        except Failed as failed:
            self.faults = [str(failed)[-500:]]


class Outcome:
    """One step in one place."""

    def __init__(self, work, place, job, step):
        self.work, self.place, self.step = work, place, step
        self.folder = work.places[place] / job.name
        self.status, self.said, self.error, self.seconds, self.tree = None, "", "", 0.0, None

    def go(self):
        local = self.work.scratch / f"beside-{self.place}"
        folder, seed, transactions, crate = self.work.settings
        words = jobs.around(folder, local, seed, transactions, crate, REGISTRY)
        around = environment(local) | {name: str(value) for name, value in words.items()}
        around["PATH"] = f"{TOOLCHAIN}/bin:{around['PATH']}"
        began = time.monotonic()
        script = as_user(["timeout", "-k", 10, SCRIPT_SECONDS, "bash", "-euo", "pipefail", "-c", f'cd "$0"{self.step.script}', self.folder])
        # Root cannot enter a mount of the user's, so the script itself does.
        done = subprocess.run(script, cwd="/", env=around, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        self.status, self.said, self.error = done.returncode, done.stdout, done.stderr
        self.seconds = time.monotonic() - began

    def look(self, folder):
        self.tree = self.work.lister.listing(folder)

    def complaint(self):
        return f"ended with {self.status}, printed {self.said[-500:]!r} and complained {self.error[-1000:]!r}"


def together(calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
