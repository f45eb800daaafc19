"""Three machines of one user in one private directory: names that are replaced by rename while they are read, a log that is appended to under a lock."""

import json, os, shutil, subprocess
from pathlib import Path

from .cell import Cell
from .place import UID, USER, as_user, environment, run

PYTHON = "/usr/bin/python3"
KINDS = ["replace", "read", "append"]


def run_all(options, chance, scratch):
    cell = Cell(options.andrew, scratch / "cell", "root", False, options.leases)
    tops = [cell.mount(name, user) for name, user in [("a", "root"), ("b", USER), ("c", USER)]]
    cell.login()
    folder = cell.own_folder(tops[0])
    run(options.andrew, "fs", "setacl", folder, "system:anyuser", "none", user=USER, home=cell.home)
    tools = scratch / "tools"
    tools.mkdir()
    shutil.copy(Path(__file__).with_name("replacer.py"), tools)
    folders = [top / USER for top in tops]
    run(PYTHON, tools / "replacer.py", "replace", 0.1, folders[0], 0, user=USER)
    said = together(tools, folders, int(options.minutes * 60))
    faults = [f"{kind} on {folder}: {wrong}" for (kind, folder), one in said.items() for wrong in [one["wrong"]] if wrong]
    for kind in KINDS:
        print(f"{kind}: {sum(one['count'] for (of, _), one in said.items() if of == kind)}", flush=True)
    faults += lines_lost(folders, sum(one["count"] for (kind, _), one in said.items() if kind == "append"))
    cut = [json.loads(run(options.andrew, "fs", "property", "afs.counters", top))["kernel_waits_cut"] for top in tops[:1]]
    faults += [f"waits for the kernel that their time limit ended: {cut}"] if any(cut) else []
    return faults + cell.checked() + cell.stop()


def together(tools, folders, seconds):
    """Each kind of program on each machine, all at the same time; what they say."""
    started = {}
    for number, folder in enumerate(folders):
        for kind in KINDS:
            words = as_user([PYTHON, tools / "replacer.py", kind, seconds, folder, number])
            started[kind, folder] = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(tools), cwd="/")
    return {which: json.loads(process.communicate()[0] or '{"count": 0, "wrong": {"it": "died"}}') for which, process in started.items()}


def lines_lost(folders, wanted):
    lines = [int(run("wc", "-l", folder / "log", user=USER).split()[0]) for folder in folders]
    return [f"{wanted} lines were appended, {lines} are there"] if set(lines) != {wanted} else []
