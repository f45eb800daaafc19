"""Results in a folder, `ID.json` for each entry: those of `andrew-lab run`, and those that follow from the papers' numbers and measured costs,
which are written beside them."""

import datetime, json, os, time

from papers import closed, costs as measured, model, replay, traces
from papers.closed import Demands
from papers.sheets import Sheet

# Number of the form of results.
FORMAT = 1
BYTES_MAX = 4 << 20
# What a result of andrew-lab says of its machine.
ENVIRONMENT = {"version", "kernel", "processor", "cores", "memory_bytes", "peers"}
# Seed of the traces of a report; a quick run generates this part of a trace.
SEED, QUICK_PART = 1, 20

PAPERS_COSTS = "those of Tables 3 and 4 at 150 MHz"
MICROSECONDS = ("Microseconds of the server's process, user and system, for a call with warm caches; the paper counted cycles from the arrival of a "
                "request to its reply. NFS requests have the costs of the AFS calls that come nearest to them.")
DRAWN = ("Mean and 90 % interval of 5 draws of busy client-minutes, generated with the published means; opens are spread evenly over the requests, and "
         "cost what Table 6 says (the NFS opens of Table 7 are charged more, against that rule).")
NO_DISKS = ("Neither disks, cold caches nor a limit of threads: the paper tells no times of disks, and its AFS server overran for lack of threads. So "
            "processor times are to be compared, overruns only in their order.")
GENERATED = (f"Traces generated from seed {SEED} with the published means and shares; the forms of the distributions between them are assumptions "
             "(exponential requests of a client-minute and AFS sizes).")
QUICK = f"The first {QUICK_PART}th part of each trace; counts are multiplied by {QUICK_PART}."
MODELLED = ("Not measured: a model of a server with one processor and one disk, each with a queue, from what the paper measured at load 1 (time, "
            "processor, disk). The paper's other loads are a check of it; it knows neither the network nor clients that begin together.")
MEASURED = ("Other loads than 1 follow by the same model from the time and the server's processor time of a run measured here at load 1; the disk is not "
            "measured. That time is of the whole process: with `andrew up` the mount is in it too, so the server's is smaller, and larger loads are "
            "faster than told.")
NO_MOUNT = "With --mount also from a run measured here."
NO_OTHER = ("Not at hand: a run measured here, which needs another file system, such as NFS, and the process of its server (--beside nfs=DIR "
            "--beside-server nfs=PID).")
# The entries that are computed from the papers alone.
COMPUTED = {"table3a": model.table3a, "table4a": model.table4a, "table5": model.table5, "fig6": replay.figure6,
            "derived-costs": model.derived_costs, "derived-nfs-nasd": model.derived_opens,
            "table6-nfs": lambda inputs: model.table6(inputs, "nfs"), "table6-afs": lambda inputs: model.table6(inputs, "afs")}
# Those in which measured costs stand, if there are any.
USES_COSTS = [f"gibson97.{name}" for name in ["table7-nfs", "table7-afs", "fig7", *measured.BY_SIZE, *measured.FIXED]]
# What the entries of section 5.3 tell.
TOLD = {"howard88.table12": "server", "howard88.fig3": "overall", "howard88.fig4": "processor", "howard88.fig5": "disk"}


class Result:
    """What came of an entry: `ran`, `refused`, `failed` or `description`, with a sheet and notes, or the reason that there are none."""

    def __init__(self, outcome, sheet=None, notes=(), reason=None, said=None):
        self.outcome, self.sheet, self.notes, self.reason, self.said = outcome, sheet, list(notes), reason, said or {}
        self.demands = {name: Demands(one["elapsed"], one["processor"]) for name, one in self.said.get("demands", [])}


def read(folder, name):
    """The result of an entry; None if there is none, or one that cannot be read."""
    try:
        with open(folder / f"{name}.json") as file:
            said = json.loads(file.read(BYTES_MAX))
        if said["id"] != name or said["format"] != FORMAT or not ENVIRONMENT <= set(said.get("environment", ENVIRONMENT)):
            return None
        said = {**said, "began": str(said["began"]), "seconds": float(said["seconds"])}
        if said["outcome"] == "ran":
            return Result("ran", Sheet.read(said["sheet"]), said["notes"], said=said)
        return Result(said["outcome"], reason=said.get("lacks") or said.get("error"), said=said)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def replace(folder, name, text):
    """Writes a file whole: a reader finds the old or the new one."""
    part = folder / f"{name}.part"
    part.write_text(text)
    os.replace(part, folder / name)


class Computer:
    """Computes entries of Gibson et al. 1997. What has a result, with the costs if they are given, is left as it is, unless
    `again`."""

    def __init__(self, papers, folder, quick=False, costs=None, again=False):
        self.inputs, self.folder, self.quick, self.costs, self.again = model.Inputs(papers), folder, quick, costs, again
        self.statistics = None

    def compute(self, entry):
        """Whether it was computed now, and has numbers."""
        found = None if self.again else read(self.folder, entry.id)
        if found and found.outcome == "ran" and (not self.costs or entry.id not in USES_COSTS or self.costs_note() in found.notes):
            return False
        began, now = datetime.datetime.now(datetime.timezone.utc), time.monotonic()
        try:
            sheet, notes = self.of(entry.id.removeprefix("gibson97."))
            outcome = {"outcome": "ran", "sheet": sheet.written(), "notes": notes} if sheet else {"outcome": "refused", "lacks": notes}
        except measured.NotMeasured as error:
            outcome = {"outcome": "failed", "error": str(error)}
        result = {"format": FORMAT, "id": entry.id, "began": began.isoformat().replace("+00:00", "Z"), "seconds": time.monotonic() - now,
                  "quick": self.quick, **outcome}
        replace(self.folder, f"{entry.id}.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n")
        return outcome["outcome"] == "ran"

    def of(self, name):
        """Sheet and notes, or None and what it lacks."""
        if name in ["table2", "fig4"]:
            return (traces.table2 if name == "table2" else traces.figure4)(*self.generated()), [GENERATED] + [QUICK] * self.quick
        if name == "fig7":
            notes = [f"{DRAWN} Served in order of arrival by one processor.", self.costs_note(), NO_DISKS, systems_note(self.costs)]
            return replay.figure7(self.inputs, self.costs), notes
        if name in ["table7-nfs", "table7-afs"]:
            return self.work(name.removeprefix("table7-"))
        if name in COMPUTED:
            return COMPUTED[name](self.inputs), ["Computed from the paper's own inputs."] + [f"Columns with 'drawn': {DRAWN}"] * (name == "fig6")
        if self.costs is None:
            return None, "costs measured on a server (--costs FILE, which `andrew-lab costs` writes)"
        sheet = measured.table(name, self.costs)
        return (sheet, [self.costs_note(), MICROSECONDS]) if sheet else (None, "these calls in the measured costs")

    def generated(self):
        part = QUICK_PART if self.quick else 1
        self.statistics = self.statistics or [traces.Statistics(self.inputs, trace, SEED, part) for trace, _ in model.TRACES]
        return self.statistics

    def work(self, trace):
        sheet, notes = model.table7(self.inputs, trace), ["Computed from the paper's own inputs.", self.costs_note()]
        if self.costs:
            notes += [f"Columns with 'here' are of the same requests at these costs. {MICROSECONDS}", systems_note(self.costs)]
            try:
                replay.add_work(sheet, self.inputs, trace, self.costs)
            except measured.NotMeasured:
                # A trace of which a call was not measured has the paper's costs alone.
                pass
        return sheet, notes

    def costs_note(self):
        return f"Costs: {self.costs.what if self.costs else PAPERS_COSTS}."


def systems_note(costs):
    """What is known of the systems that the paper does not charge."""
    if costs is None:
        return "Server-integrated disks (SID) and NASD with groups have lines with measured costs alone (--costs): the paper gives them none."
    writes = "Writes of NASD are charged by the paper's rule: calls for rooms at drives were not measured."
    if costs.drive_write():
        writes = ("Each write of NASD is charged a GetRoom and a Commit of its size, an NFS write as a store of its own; the paper charges nothing "
                  "(NFS) or a FetchStatus (AFS). A mount stores less than 64 KiB by calls.")
    sid = ("SID: bytes leave a server by its own data path; the calls are those of SAD. NASD charges each open a GetCapability, if that was measured. "
           + writes)
    if not costs.warm:
        return f"{sid} NASD with groups has no line: the calls of a client were not counted (`andrew-lab costs --mount`)."
    calls = ", ".join(f"{call} {count:.2f}" for call, count in sorted(costs.warm["calls_per_minute"].items())) or "none"
    warm = costs.warm
    return (f"{sid} NASD_groups, and opens of SID: calls for capabilities and layouts that a client made in a minute in which it opened "
            f"{warm['opens_per_minute']} files in {warm['directories']} directories, counted for {warm['minutes']} minutes after a first one: {calls}. "
            "Each busy client-minute is charged with these in the place of its opens.")


def found(papers, entry, folder):
    """The result of an entry with the loads that follow from load 1; None if there is none."""
    result = read(folder, entry.id)
    if entry.how in ["description", "lacks"]:
        return Result("description" if entry.how == "description" else "refused", reason=entry.lacks)
    if entry.how != "modelled" or (result and result.outcome == "failed"):
        return result
    if entry.id == "howard88.table6":
        if result and result.demands:
            closed.more_loads(result.sheet, result.demands["andrew"])
            result.notes.append(MEASURED)
        return result
    if not result or result.outcome != "ran":
        result = Result("ran", said=result and result.said)
    here = {name: one for name, one in result.demands.items() if name != "ran"}
    notes = [MODELLED]
    if entry.id in TOLD:
        sheet = closed.compared(papers, TOLD[entry.id], here)
        notes += [printed_crossings(papers), MEASURED if here else NO_OTHER, *crossings(here)]
    else:
        sheet = (closed.figure1 if entry.id == "howard88.fig1" else closed.table7)(papers, here)
        notes.append(MEASURED if here else NO_MOUNT)
        if result.sheet:
            add_ran(sheet, result.sheet, result.demands.get("ran"))
    result.sheet, result.notes = sheet, notes + result.notes
    return result


def add_ran(sheet, ran, demands):
    """Adds what was run, by load, and what the model says of the same clients."""
    by_load = {row[0]: row for row in ran.rows}
    for column, unit in zip(ran.columns[1:], ran.units[1:]):
        sheet.add(column, unit, [ran.cell(by_load[row[0]], column) if row[0] in by_load else None for row in sheet.rows])
    if demands and "ran_cpu" in ran.columns:
        at = [demands.at_load(int(row[0])) if row[0] in by_load else None for row in sheet.rows]
        sheet.add("ran_model_cpu", "%", [one and closed.percent(one[1]) for one in at])
        sheet.add("ran_model_overall", "s", [one and closed.rounded(one[0], 3) for one in at])


def crossed(load):
    return f"load {load}" if load else f"no load up to {max(closed.LOADS)}"


def printed_crossings(papers):
    paper = closed.Printed(papers).compared()
    warm, cold = (crossed(closed.crossing(paper["nfs"], paper[cache])) for cache in ["warm", "cold"])
    return (f"By the model a run on NFS takes longer than on Andrew with a warm cache from {warm}, with a cold one from {cold}; section 5.3 says about 3 "
            "and about 4.")


def crossings(here):
    for name, demands in here.items() if "andrew" in here else []:
        if name != "andrew":
            yield f"By it a run on {name} takes longer than on Andrew from {crossed(closed.crossing(demands, here['andrew']))}."
