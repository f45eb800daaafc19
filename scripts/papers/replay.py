"""Replay of busy client-minutes at the file manager (Gibson et al. 1997, section 6: Figures 6 and 7), and Table 7's work at measured costs.

As in the paper, `m` busy client-minutes are drawn, five times for each `m`, merged by time stamp, translated by the rules of Table 6 for each
system, and served: mean and 90 % interval over the draws. Two things are unlike the paper:

- client-minutes are generated (traces.py), and their opens are spread evenly over their requests, because generated requests name no files; the
  mean number of opens is that of Table 7;
- the file manager is a queue in order of arrival at one processor, with the paper's costs at the clock of its replay, or with costs measured
  here. It has neither disks nor a limit of threads: the paper tells no times of disks, and its AFS server overran for lack of threads. So it
  overruns later than the paper's.

Two systems have numbers only with measured costs. Server-integrated disks (SID), which the paper takes for disks behind a server (SAD) at a
lower price, are a server whose bytes leave by its own data path. NASD with groups has as many calls for capabilities as a client was counted to
make, where the paper counts one for each file and day; beside it stands the same with writes by the paper's rule for them.
"""

import functools

from papers import model
from papers.costs import PATH_READ, PATH_STORE, NotMeasured, at
from papers.model import CLOCK, SIZED, SYSTEMS, TRACES, WRITES, total
from papers.sheets import Sheet, rounded
from papers.traces import MASK, Shape, numbers, requests

# Draws of each number of client-minutes, as in the paper, and the numbers that the text of section 6 and Figure 6 name; those of AFS go further.
DRAWS, MINUTES, AFS_MOST = 5, [10, 20, 25, 40, 50, 60, 80, 90, 100], 120
# A replay overruns its minute if it takes longer: the last request is always sent shortly before the end.
OVERRUN = 60.6
# Upper 5 % point of Student's t with 4 degrees of freedom, for 5 draws.
STUDENT = 2.132
# Which of the paper's systems has the same rules (Table 6), but for bytes and opens.
RULES = {"SAD": 0, "SID": 0, "NetSCSI": 1, "NASD": 2, "NASD_groups": 2, "NASD_groups_by_rule": 2}


def systems(costs):
    """Those that the costs give, with disks behind a server first. Without measured costs those of the paper."""
    warm = costs is not None and costs.warm_seconds() is not None
    has = {"SID": costs is not None and PATH_READ in costs.calls and PATH_STORE in costs.calls, "NASD_groups": warm,
           "NASD_groups_by_rule": warm and costs.drive_write() is not None}
    return [name for name in RULES if has.get(name, True)]


def points(inputs, trace, system, operation, costs):
    """Seconds of an operation of Table 7 by its bytes; None if nothing reaches the file manager."""
    if operation == "Open":
        return points_of_open(inputs, trace, system, costs)
    # The paper charges such writes nothing (NFS) or a FetchStatus (AFS). A client of ours asks for a room and commits.
    if system in ["NASD", "NASD_groups"] and operation in WRITES and costs and costs.drive_write():
        return costs.drive_write()
    rule = inputs.charged(trace, operation)[RULES[system]]
    if system == "SID" and rule in SIZED:
        rule = PATH_READ if rule in ["FetchData", "read"] else PATH_STORE
    return None if rule is None else cost(inputs, rule, costs)


def points_of_open(inputs, trace, system, costs):
    """Table 7 counts opens for capabilities only."""
    counted = costs and costs.warm_seconds()
    if system in ["SAD", "NetSCSI"]:
        return None
    if system != "NASD" and counted is not None:
        opens = inputs.number(f"table7-{trace}", "Open", "count_k") * 1e3
        return [(0.0, counted * inputs.number("table5", "busy client-minutes", trace) / opens)]
    if costs and "GetCapability" in costs.calls:
        return cost(inputs, "GetCapability", costs)
    rule = inputs.charged(trace, "Open")[2]
    return None if rule is None else cost(inputs, rule, costs)


def cost(inputs, rule, costs):
    if costs:
        found = costs.points(rule)
        if found is None:
            raise NotMeasured(f"the measured costs have no {rule}")
        return found
    table = {"read": "table3b", "write": "table3b", "FetchData": "table4b", "StoreData": "table4b"}.get(rule)
    found = inputs.sheet(table).points("bytes", rule) if table else [(0.0, inputs.cost(rule, 0.0))]
    return [(size, kcycles * (1e3 / CLOCK)) for size, kcycles in found]


def draw(inputs, shape, minutes, seed):
    """The requests of so many busy client-minutes in order of time: millisecond, type (-1: an open) and bytes."""
    count = lambda name: inputs.number(f"table7-{shape.trace}", name, "count_k")
    opens = count("Open") / total(count(name) for name in shape.names)
    # Opens have numbers of their own, so that the requests are the same without them.
    unit, own, sent = numbers(seed), numbers(~seed & MASK), []
    for _ in range(minutes):
        for one in requests(shape, unit, True):
            if own() < opens:
                sent.append((one[0], -1, 0))
            sent.append(one)
    sent.sort(key=lambda one: one[0])
    return sent


def serve(sent, charges):
    """Requests in order of arrival at one processor: seconds that it worked, seconds to the end of the last one, and mean time from arrival
    to end."""
    busy = elapsed = response = 0.0
    count = 0
    for millisecond, kind, size in sent:
        charge = charges[kind]
        if charge is None:
            continue
        arrival, work = millisecond / 1e3, charge[0][1] if len(charge) == 1 else at(charge, float(size))
        busy += work
        elapsed = max(elapsed, arrival) + work
        response += elapsed - arrival
        count += 1
    return busy, elapsed, response / max(count, 1)


class Point:
    """The draws of one number of client-minutes, served in each system."""

    def __init__(self, minutes, draws, charges):
        self.minutes, self.served = float(minutes), {system: [serve(sent, each) for sent in draws] for system, each in charges.items()}

    def interval(self, system, what):
        """Mean over the draws, and half of its 90 % interval."""
        values = [served[what] for served in self.served[system]]
        mean = total(values) / len(values)
        squares = total((value - mean) * (value - mean) for value in values)
        return mean, STUDENT * (squares / (len(values) - 1.0) / len(values)) ** 0.5

    def busy(self, system):
        return self.interval(system, 0)[0]


@functools.cache
def all_points(inputs, trace, costs):
    shape = Shape(inputs, trace)
    charges = {system: [points(inputs, trace, system, name, costs) for name in [*shape.names, "Open"]] for system in systems(costs)}
    found = []
    for minutes in MINUTES + [AFS_MOST] * (trace == "afs"):
        draws = [draw(inputs, shape, minutes, minutes * 100 + number * 2 + (trace == "afs")) for number in range(DRAWS)]
        found.append(Point(minutes, draws, charges))
    return found


def figure6(inputs):
    """The means that follow from Tables 5 and 7, and mean and 90 % interval of draws out of a generated trace."""
    sheet = model.figure6(inputs)
    for trace, _ in TRACES:
        found = {point.minutes: point for point in all_points(inputs, trace, None)}
        for system in SYSTEMS:
            cells = [thousandths(found[row[0]].interval(system, 0)) if row[0] in found else [None, None] for row in sheet.rows]
            for end, at_ in [("", 0), ("_ci90", 1)]:
                sheet.add(f"{trace}_{system}_drawn{end}", "s", [pair[at_] for pair in cells])
    return sheet


def figure7(inputs, costs):
    """What the paper's text says of it, obtained here, and the points of the curves. A trace is left out if the measured costs lack one of its
    operations; NotMeasured if they are of neither."""
    sheet, lacking = Sheet.of(["trace", "client_minutes", "what", "value", "value_ci90"]), None
    for trace, name in TRACES:
        try:
            found = all_points(inputs, trace, costs)
        except NotMeasured as error:
            lacking = error
            continue
        sheet.rows += said(name, systems(costs), found)
        sheet.rows += [row for point in found for row in curve(name, systems(costs), point)]
    if lacking and not sheet.rows:
        raise lacking
    return sheet


def said(trace, names, found):
    """What the text says: savings at 90 client-minutes, overruns, and the largest ratios."""
    at90 = next(point for point in found if point.minutes == 90)
    for name in names[1:]:
        yield [trace, 90.0, f"{name} less than SAD by, %", rounded(100.0 * (1.0 - at90.busy(name) / at90.busy("SAD")), 1), ""]
    for name in names:
        first = next((point.minutes for point in found if point.interval(name, 1)[0] > OVERRUN), "none")
        yield [trace, "", f"first overrun, {name}", first, ""]
    for name in names[1:]:
        yield [trace, "", f"largest SAD / {name}", rounded(max(point.busy("SAD") / point.busy(name) for point in found), 1), ""]


def curve(trace, names, point):
    for name in names:
        for at_, what in enumerate(["processor, s", "elapsed, s", "mean response, ms"]):
            mean, half = point.interval(name, at_)
            scale = 1e3 if at_ == 2 else 1.0
            yield [trace, point.minutes, f"{name}, {what}", *thousandths([mean * scale, half * scale])]


def thousandths(numbers_):
    return [rounded(number, 3) for number in numbers_]


def add_work(sheet, inputs, trace, costs):
    """Adds to Table 7 the seconds of the server for the same requests at its own costs, and their shares of those with disks behind it."""
    names, rows = systems(costs), []
    for one in model.work(inputs, trace):
        each = [points(inputs, trace, name, one.operation, costs) for name in names]
        rows.append([one.count_k * 1e3 * (0.0 if found is None else at(found, one.bytes)) for found in each])
    rows.append([total(row[at_] for row in rows) for at_ in range(len(names))])
    for at_, name in enumerate(names):
        sheet.add(f"{name}_here", "s", [rounded(row[at_], 1) for row in rows])
        sheet.add(f"{name}_here_pct", "%", [rounded(100.0 * row[at_] / rows[-1][0], 1) for row in rows])
