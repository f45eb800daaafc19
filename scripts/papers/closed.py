"""Many clients of one server: a closed queueing network, for the loads of Howard et al. 1988 (sections 4.1 and 5.3) and beyond.

Each client runs the benchmark again and again: it works by itself for a time, and asks the server for the rest. The server has a processor and
a disk, each with a queue. What a run needs of them is measured at load 1, in the paper or here; all other loads follow. So the model knows
neither a server that needs more for each run when it is busy, nor a network, nor clients that begin together and wait for the last. Nothing is
simulated but the waiting.
"""

from papers.sheets import Sheet, rounded

# Loads of the paper, and beyond.
LOADS = [1, 2, 5, 8, 10, 15, 20, 50, 100, 200, 300, 500]
# What each of the comparisons of section 5.3 tells, with the paper's columns.
OVERALL = {"nfs": "nfs", "andrew_cold": "cold", "andrew_warm": "warm"}
SERVER = {"nfs_cpu": "nfs", "nfs_disk1": "nfs", "andrew_cold_cpu": "cold", "andrew_cold_disk": "cold", "andrew_warm_cpu": "warm"}
DISK = {"nfs_disk1": "nfs", "andrew_cold": "cold"}


class Demands:
    """What a run of one client needs, in seconds, when it is alone: from beginning to end, of the server's processor, and of its disk (0 if that
    is not known)."""

    def __init__(self, elapsed, processor, disk=0.0):
        self.elapsed, self.needed = elapsed, (processor, disk)

    def at_load(self, clients):
        """Seconds of a run, and the parts of the time that processor and disk work: exact mean value analysis (Reiser and Lavenberg, JACM 27(2),
        1980)."""
        processor, disk = self.needed
        alone = max(self.elapsed - processor - disk, 0.0)
        waiting, elapsed, rate = (0.0, 0.0), 0.0, 0.0
        for count in range(1, clients + 1):
            # Who arrives sees the queues of a network with one client less.
            stays = processor * (1.0 + waiting[0]), disk * (1.0 + waiting[1])
            elapsed = alone + stays[0] + stays[1]
            # Runs that end in a second.
            rate = count / elapsed if elapsed > 0.0 else 0.0
            waiting = rate * stays[0], rate * stays[1]
        return elapsed, rate * processor, rate * disk


def crossing(one, other):
    """The smallest load at which a run on one system takes longer than on another one, or None up to the largest of LOADS."""
    return next((load for load in range(1, max(LOADS) + 1) if one.at_load(load)[0] > other.at_load(load)[0]), None)


class Printed:
    """What runs needed in the paper, alone."""

    def __init__(self, papers):
        paper = next(paper for paper in papers if paper.id == "howard88")
        self.at_one = lambda name, column: next(y for x, y in paper.sheet(name).points("load_units", column) if x == 1.0)

    def of(self, times, time, used, processor, disk):
        elapsed = self.at_one(times, time)
        return Demands(elapsed, *(self.at_one(used, column) / 100.0 * elapsed for column in [processor, disk]))

    def revised(self):
        """Tables VI and VII."""
        return self.of("table6", "overall", "table7", "cpu", "disk")

    def compared(self):
        """On NFS, on Andrew with a cold cache and with a warm one (Figure 3, Table XII). Of the disk with a warm cache the text says only that it is
        used slightly less than with a cold one."""
        of = lambda time, processor, disk: self.of("fig3", time, "table12", processor, disk)
        return {"nfs": of("nfs", "nfs_cpu", "nfs_disk1"), "cold": of("andrew_cold", "andrew_cold_cpu", "andrew_cold_disk"),
                "warm": of("andrew_warm", "andrew_warm_cpu", "andrew_cold_disk")}


def percent(part):
    return rounded(100.0 * part, 1)


def loads():
    sheet = Sheet.of(["load_units: load units"])
    sheet.rows = [[float(load)] for load in LOADS]
    return sheet


def table7(papers, here):
    """Table VII and Figure 2, with the time of a run: from what the paper measured at load 1, and from what was measured here."""
    sheet, paper = loads(), [Printed(papers).revised().at_load(load) for load in LOADS]
    for name, unit, of in [("cpu", "%", lambda at: percent(at[1])), ("disk", "%", lambda at: percent(at[2])), ("overall", "s", lambda at: rounded(at[0], 0))]:
        sheet.add(name, unit, map(of, paper))
    if "andrew" in here:
        found = [here["andrew"].at_load(load) for load in LOADS]
        sheet.add("measured_cpu", "%", [percent(at[1]) for at in found])
        sheet.add("measured_overall", "s", [rounded(at[0], 3) for at in found])
    return sheet


def figure1(papers, here):
    """Figure 1: time of a run in percent of that at load 1. The prototype's server cannot be modelled so (it is run): what a run needed of it is not
    printed, and grew with the load."""
    sheet = loads()
    sheet.add("prototype", "%", [None] * len(LOADS))
    for name, demands in [("revised", Printed(papers).revised()), ("measured", here.get("andrew"))]:
        if demands:
            sheet.add(name, "%", [percent(demands.at_load(load)[0] / demands.elapsed) for load in LOADS])
    return sheet


def compared(papers, told, here):
    """Table XII (`told` is SERVER) or one of Figures 3 to 5 (`overall`, `processor`, `disk`), from what the paper measured at load 1, and from what
    was measured here: columns `measured_NAME`."""
    sheet, paper = loads(), Printed(papers).compared()
    columns = {"overall": OVERALL, "processor": OVERALL, "disk": DISK, "server": SERVER}[told]
    for name, system in columns.items():
        found = [paper[system].at_load(load) for load in LOADS]
        is_disk = told == "disk" or "disk" in name
        sheet.add(name, *("s", [rounded(at[0], 0) for at in found]) if told == "overall" else ("%", [percent(at[2 if is_disk else 1]) for at in found]))
    # The disk is not measured.
    for name, demands in here.items() if told != "disk" else []:
        found = [demands.at_load(load) for load in LOADS]
        sheet.add(f"measured_{name}", *("s", [rounded(at[0], 3) for at in found]) if told == "overall" else ("%", [percent(at[1]) for at in found]))
    return sheet


def more_loads(sheet, here):
    """Adds the loads above 1 to a sheet with the columns `load_units` and `overall`, from what was measured at load 1."""
    for load in LOADS[1:]:
        row = {"load_units": float(load), "overall": rounded(here.at_load(load)[0], 4)}
        sheet.rows.append([row.get(column) for column in sheet.columns])
