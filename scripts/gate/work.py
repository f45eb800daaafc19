"""Everyday programs, the jobs of the long runs: each step is a case, by what it prints and by the tree that it leaves."""

import os, random, shutil, subprocess
from argparse import Namespace
from pathlib import Path

from soaking import inputs, jobs
from soaking.place import Failed, shown

from .results import FAIL, Result, of_command, say

SECONDS = 1200
BRIEF = ["pip"]
TOOLCHAIN, REGISTRY, GO = Path("/run/toolchain"), Path("/run/cargo"), Path("/run/go")
SIZES = {"transactions": 100, "crate": "afs-wire", "files": 1000, "commits": 2}


def prepare(gate):
    """The jobs whose programs are there, with what they work on."""
    wanted = [jobs.ALL[name] for name in (BRIEF if gate.brief else jobs.ALL)]
    missing = {job.name: [need for need in job.needs if not shutil.which(need)] for job in wanted}
    for name, needs in missing.items():
        if needs:
            say(f"work: {name} is left out: there is no {' and no '.join(needs)}")
    gate.jobs = [job for job in wanted if not missing[job.name]]
    names = [job.name for job in gate.jobs]
    show_toolchains(names)
    inputs.make(Namespace(repository=gate.root, **SIZES), random.Random(1), gate.scratch / "input", names)


def show_toolchains(names):
    """What is root's own is shown to the user, to read."""
    if "cargo" in names:
        sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
        shown(Path(sysroot.stdout.strip()), TOOLCHAIN)
        shown(Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")), REGISTRY)
    if "go" in names:
        root = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True)
        shown(Path(root.stdout.strip()), GO)


def run(place, gate):
    found = {}
    for job in gate.jobs:
        folder = place.folder("work") / job.name
        place.run(["mkdir", folder], 60)
        for step in job.steps:
            found[f"{job.name} {step.name}"] = one(place, gate, folder, job, step)
    return found


def one(place, gate, folder, job, step):
    words = jobs.around(gate.scratch / "input", place.local, 1, SIZES["transactions"], SIZES["crate"], REGISTRY)
    path = f"{TOOLCHAIN}/bin:{GO}/bin:/usr/local/bin:/usr/bin:/bin"
    result = of_command(place.run(["bash", "-euo", "pipefail", "-c", step.script], SECONDS, folder, PATH=path, **words))
    try:
        tree = gate.places.listing(place, folder)
    except Failed as failed:
        return Result(FAIL, f"the tree cannot be listed: {failed}", result.printed)
    # The time is a line's fourth word, after the path.
    kept = {name: line if step.sets_times else [*line[:3], *line[4:]] for name, line in tree.items() if not name.startswith(job.own)}
    return Result(result.outcome, result.why, (*result.printed, *(f"{name} {line}" for name, line in sorted(kept.items()))))
