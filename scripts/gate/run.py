"""One run of the gate: each suite in each place, the comparison, and the verdict."""

import concurrent.futures, time

from soaking import trees
from soaking.place import Failed

from . import copies, cpython, fsstress, fsx, git, known, ltp, machines, pjdfstest, postgres, programs, work
from .places import KINDS, Places
from .results import FAIL, PASS, Result, differences, say

SUITES = {"copies": copies, "cpython": cpython, "work": work, "machines": machines, "pjdfstest": pjdfstest, "fsx": fsx, "ltp": ltp, "fsstress": fsstress, "git": git,
          "postgres": postgres}
BRIEF = ["copies", "cpython", "work", "machines"]
# The machine that this was made for has two processors, and most of a suite waits.
AT_A_TIME = 3


def fetch(names, root):
    """What is built from its source, while there is a network still. Without it the suite is left out later."""
    for name in names:
        try:
            getattr(SUITES[name], "fetch", lambda _: None)(root)
        except Failed as failed:
            say(f"{name}: {failed}")


class Gate:
    """What the suites need to know."""

    def __init__(self, options, root):
        self.brief, self.scratch, self.root, self.options = options.brief, options.scratch, root, options
        self.places = Places(options.andrew, options.scratch, options.mounts)
        self.tools = set()
        programs.show(root)

    def tool(self, program):
        """A program of ours where every user can read it."""
        at = self.scratch / program.name
        if at not in self.tools:
            at.write_text(program.read_text())
            self.tools.add(at)
        return at

    def suite(self, name):
        """The results of a suite by place; empty if it is left out. Some are not for root."""
        suite = SUITES[name]
        missing = suite.is_possible() if hasattr(suite, "is_possible") else None
        if missing:
            say(f"{name} is left out: {missing}")
            return {}
        if hasattr(suite, "prepare"):
            suite.prepare(self)
        places = [place for place in self.places.all if place.user != "root" or not hasattr(suite, "NOT_ROOT")]
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            ran = pool.map(lambda place: self.in_place(name, suite, place), places)
            return {place.name: results for place, results in zip(places, ran)}

    def in_place(self, name, suite, place):
        began = time.monotonic()
        place.make(name)
        results = suite.run(place, self)
        results |= self.left(name, place)
        counts = {outcome: sum(one.outcome == outcome for one in results.values()) for outcome in ("pass", "fail", "skip")}
        say(f"{name}, {place.name}: {', '.join(f'{count} {outcome}' for outcome, count in counts.items())} in {time.monotonic() - began:.0f} s")
        return results

    def left(self, name, place):
        """Whether another machine shows the tree that a suite left, and whether it can be removed."""
        wrong = []
        if place.beside:
            try:
                # What a lease has decided has the server's times when another machine has asked for it.
                there, here = (self.places.listing(place, top / name) for top in (place.beside, place.top))
                wrong = trees.difference(there, here)
            except Failed as failed:
                wrong = [str(failed)]
        status, _, complaint = place.run(["rm", "-rf", place.folder(name)], 600)
        return {"the tree from another machine": outcome("; ".join(wrong)), "the tree's removal": outcome(complaint if status != 0 else "")}


def outcome(wrong):
    return Result(FAIL, wrong) if wrong else Result(PASS)


def judge(gate, results):
    """Lines of the table, and what is wrong: differences that are not in the list, and lines of the list that no longer differ."""
    listed, rows, wrong = known.lines(gate.options.list, KINDS), [], []
    for suite, by_place in results.items():
        for place in [place for place in gate.places.all if place.beside and place.name in by_place]:
            base, mount = by_place[place.base], by_place[place.name]
            found = differences(suite, place.name, base, mount)
            unknown = known.judged(listed, found)
            gone = [(line, pattern) for line in listed for pattern in line.gone(suite, place.name, base.keys() | mount.keys())]
            rows.append({"suite": suite, "mount": place.name, "cases": len(base), "passed_on_disk": count(base), "passed": count(mount),
                         "differ": len(found), "unknown": len(unknown)})
            wrong += [f"{suite}, {place.name}: {one.case}: {one.words()}" for one in unknown]
            wrong += [f"{suite}, {place.name}: {pattern} no longer differs: shorten the list ({line.reason})" for line, pattern in gone]
    return rows, wrong


def count(results):
    return sum(one.outcome == PASS for one in results.values())
