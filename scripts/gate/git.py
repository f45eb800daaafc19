"""git's own tests of what it does with files: each test of each script is a case."""

import re, time

from soaking import gits

from . import programs
from .results import FAIL, PASS, SKIP, Result

# Those by which mounts have differed or could: new repositories, modes, links, filters, the index and its times, packs, clones and cleaning.
SCRIPTS = ["t0001-*.sh", "t0002-*.sh", "t0004-*.sh", "t0021-*.sh", "t0024-*.sh", "t0052-*.sh", "t1060-*.sh", "t1301-*.sh", "t1304-*.sh", "t1501-*.sh", "t2005-*.sh",
           "t2007-*.sh", "t2102-*.sh", "t2108-*.sh", "t2201-*.sh", "t3000-*.sh", "t4100-*.sh", "t5300-*.sh", "t5304-*.sh", "t5604-*.sh", "t5605-*.sh", "t7001-*.sh", "t7300-*.sh"]
# Of all scripts, and of one.
SECONDS, SCRIPT_SECONDS = 7200, 900
LINE = re.compile(r"^(ok|not ok) (\d+)( # skip)?(?: - )?(.*)$", re.M)


def fetch(_root):
    gits.prepare(gits.TREE)


def is_possible():
    return programs.unbuilt("git", gits.TREE / gits.PRODUCT)


def run(place, gate):
    found, deadline = {}, time.monotonic() + SECONDS
    place.run(["mkdir", "git"], 60, place.local)
    for script in gits.scripts(gate.options.scripts):
        words, around = gits.command(script, place.folder("git") / "trash", place.local / "git")
        status, said, complaint = place.run(words, min(SCRIPT_SECONDS, deadline - time.monotonic()), gits.TREE / "t", **around)
        found |= {f"{script} {number}": result(*line) for line in LINE.findall(said) for number in [line[1]]}
        # A test that fails is in its line.
        found[script] = Result(PASS if status in (0, 1) else FAIL, f"ended with {status}: {(said + complaint)[-500:]}")
    return found


def result(word, _number, skipped, title):
    if word == "not ok" and "# TODO known breakage" not in title:
        return Result(FAIL, title)
    return Result(SKIP if skipped else PASS, title)
