"""Generator of traces with the published distributions of Gibson et al. 1997 (Tables 2 to 7).

The traces themselves are not at hand. Published are: clients, hours, requests and bytes of each trace, requests by type, and the same of the
busy client-minutes (a client-minute is one client in one minute; it is busy if its work on the server takes more than 0.1 s), with their share
of all. A generated trace has these. Not published, and assumed here:

- requests of a client-minute: exponential around the mean of busy and of other minutes, busy ones from 0.1 s of work on;
- sizes: of NFS full blocks and others evenly distributed, of AFS exponential, with the published means;
- client-minutes, and requests within one, evenly distributed over the hours and over the minute;
- files: none. Requests do not name them, so opens cannot be generated; a replay spreads them over the requests.

The same seed gives the same trace. A trace is made minute by minute; none is held in memory.
"""

import math

from papers.model import READS, WRITES, line, total
from papers.sheets import Sheet, rounded

# Largest size of a request, as Table 4(b) has it, and largest NFS transfer.
BYTES_MAX, BLOCK = 1_048_576.0, 8192.0
# Distance of the classes from the limit between them, so that requests of many costs stay on their side of it.
MARGIN = 1.15
# Clock of the machine whose costs Tables 3 and 4 give, in cycles a second.
CLOCKS = {"nfs": 133e6, "afs": 150e6}
# Limits of the distribution of work, in seconds of the server's processor.
LIMITS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
MASK = (1 << 64) - 1


def numbers(seed):
    """A function that gives the next number from 0 to 1: SplitMix64 (Steele, Lea, Flood 2014)."""
    state = seed & MASK

    def unit():
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & MASK
        return ((mixed ^ mixed >> 31) >> 11) / 9007199254740992.0

    return unit


def exponential(unit, mean):
    return -mean * math.log(1.0 - unit())


class Class:
    """Busy client-minutes, or the others: mean requests of one; probability, and kind and number of the size of each type of request."""

    def __init__(self, inputs, trace, names, counts, minutes, is_busy):
        whole = total(counts)
        self.requests = whole / minutes * 1e3
        self.types = [(count / whole, *size(inputs, trace, name, count, is_busy)) for name, count in zip(names, counts)]


def size(inputs, trace, name, count_k, is_busy):
    """Distribution of a type's size, whose mean is bytes by requests."""
    if name not in READS + WRITES:
        return None, 0.0
    what = "read data, GB" if name in READS else "write data, GB"
    busy = inputs.number("table5", what, trace)
    mean = (busy if is_busy else inputs.number("table2", what, trace) - busy) * 1e6 / count_k
    # Half a block is the mean of sizes that are evenly distributed.
    return ("block", min(max(2.0 * mean / BLOCK - 1.0, 0.0), 1.0)) if trace == "nfs" else ("exponential", mean)


class Shape:
    """Distributions of a trace, from Tables 2, 3(a), 4(a), 5 and 7."""

    def __init__(self, inputs, trace):
        table = f"table7-{trace}"
        self.trace, self.names = trace, [name for name in inputs.operations(table) if name != "Open"]
        busy = [inputs.number(table, name, "count_k") for name in self.names]
        others = [max(whole_k(inputs, trace, name) - one, 0.0) for name, one in zip(self.names, busy)]
        minutes = inputs.number("table5", "busy client-minutes", trace)
        self.busy_share = inputs.number("table5", "busy client-minutes", f"{trace}_pct_of_trace") / 100.0
        clients, lasts = inputs.number("table2", "client machines", trace), inputs.number("table2", "hours", trace) * 60.0
        self.clients, self.minutes, everyone = int(clients), int(lasts), minutes / self.busy_share
        # Probability that a client makes requests in a minute.
        self.active = everyone / (clients * lasts)
        # Thousand cycles of the mean request at a server with disks.
        request = inputs.number(table, "total", "SAD") * 1e3 / total(busy)
        # Fewest requests of a busy client-minute: 0.1 s of work of the mean request.
        self.busy_min = 0.1 * CLOCKS[trace] / 1e3 / request
        self.busy = Class(inputs, trace, self.names, busy, minutes, True)
        self.other = Class(inputs, trace, self.names, others, everyone - minutes, False)


def whole_k(inputs, trace, name):
    """Thousands of requests of a type in the whole trace."""
    if trace == "afs":
        return inputs.number("table4a", name, "quantity_k")
    return inputs.number("table3a", "DirReadWrite" if name == "DirRW" else name, "quantity_m") * 1e3


def requests(shape, unit, is_busy):
    """Requests of one client-minute: millisecond, type and bytes, in order of time."""
    kind = shape.busy if is_busy else shape.other
    least = shape.busy_min * MARGIN if is_busy else 0.0
    # Rounding up adds half a request.
    drawn = max(float(math.ceil(least + exponential(unit, max(kind.requests - least - 0.5, 0.1)))), 1.0)
    count, types, found, log = int(drawn if is_busy else min(drawn, max(shape.busy_min / MARGIN, 1.0))), kind.types, [], math.log
    for _ in range(count):
        millisecond, left = int(unit() * 60_000.0), unit()
        for at, (probability, form, number) in enumerate(types):
            left -= probability
            if left < 0.0:
                break
        if form is None:
            length = 0
        elif form == "exponential":
            length = int(min(max(-number * log(1.0 - unit()), 1.0), BYTES_MAX))
        else:
            length = int(BLOCK if unit() < number else 1.0 + unit() * (BLOCK - 1.0))
        found.append((millisecond, at, length))
    found.sort(key=lambda one: one[0])
    return found


def client_minutes(shape, seed, minutes):
    """The client-minutes of the first minutes of a trace: minute, client and requests, one at least. Fewer minutes give the beginning."""
    unit, slots = numbers(seed), min(minutes, shape.minutes) * shape.clients
    idle = math.log(max(1.0 - shape.active, 2.2250738585072014e-308))
    # Clients and minutes without requests until the next with some.
    skipped = lambda: int(math.log(1.0 - unit()) / idle)
    slot = skipped()
    while slot < slots:
        is_busy = unit() < shape.busy_share
        yield *divmod(slot, shape.clients), requests(shape, unit, is_busy)
        slot += 1 + skipped()


class Prices:
    """Estimated work of requests at a server with disks: Tables 3 and 4, by type and size."""

    def __init__(self, inputs, shape):
        self.clock, self.prices = CLOCKS[shape.trace], []
        for name in shape.names:
            rule = inputs.charged(shape.trace, name)[0]
            if shape.trace == "nfs" and name in READS + WRITES:
                self.prices.append(inputs.sheet("table3b").points("bytes", "read" if name in READS else "write"))
            elif shape.trace == "afs" and name in READS + WRITES:
                self.prices.append(inputs.sheet("table4b").points("bytes", name))
            else:
                self.prices.append(0.0 if rule is None else inputs.cost(rule, 0.0))

    def seconds(self, kind, length):
        price = self.prices[kind]
        return (price if isinstance(price, float) else line(price, float(length))) * 1e3 / self.clock


class Statistics:
    """What the first minutes of a trace are like. Counts are of them; `factor` makes them those of the whole trace."""

    def __init__(self, inputs, trace, seed, part=1):
        shape = Shape(inputs, trace)
        prices, minutes = Prices(inputs, shape), shape.minutes // part
        self.factor = shape.minutes / min(max(minutes, 1), shape.minutes)
        self.client_minutes, counts, moved, within, clients = 0, [0] * len(shape.names), [0] * len(shape.names), [0] * len(LIMITS), set()
        for _, client, made in client_minutes(shape, seed, minutes):
            clients.add(client)
            self.client_minutes += 1
            work = 0.0
            for _, kind, length in made:
                work += prices.seconds(kind, length)
                counts[kind] += 1
                moved[kind] += length
            for at, limit in enumerate(LIMITS):
                within[at] += work <= limit
        self.clients, self.requests, self.within = len(clients), dict(zip(shape.names, counts)), within
        self.read = sum(length for name, length in zip(shape.names, moved) if name in READS)
        self.written = sum(moved) - self.read

    def all(self):
        return sum(self.requests.values())

    def percent(self, name):
        """Percent of the requests that are of a type; None of another trace's."""
        return 100.0 * self.requests[name] / self.all() if name in self.requests else None

    def percent_within(self, limit):
        """Percent of the client-minutes whose work is at most a limit."""
        return 100.0 * self.within[limit] / self.client_minutes


def table2(nfs, afs):
    """Table 2 of generated traces, with the share of each request type (Tables 3(a), 4(a)). Counts are those of the whole trace."""
    rows = [("client machines", lambda seen: float(seen.clients)),
            ("requests", lambda seen: rounded(seen.all() * seen.factor, 0)),
            ("read data, GB", lambda seen: rounded(seen.read * seen.factor / 1e9, 1)),
            ("write data, GB", lambda seen: rounded(seen.written * seen.factor / 1e9, 1)),
            ("client-minutes", lambda seen: rounded(seen.client_minutes * seen.factor, 0)),
            ("busy client-minutes, %", lambda seen: rounded(100.0 - seen.percent_within(4), 1))]
    rows += [(f"{name}, % of requests", lambda seen, name=name: rounded(seen.percent(name), 1)) for name in [*nfs.requests, *afs.requests]]
    sheet = Sheet.of(["what", "nfs", "afs"])
    sheet.rows = [[what, of(nfs), of(afs)] for what, of in rows]
    return sheet


def figure4(nfs, afs):
    """Figure 4 of generated traces: percent of the client-minutes whose work is at most a number of seconds."""
    sheet = Sheet.of(["seconds: s", "nfs: %", "afs: %"])
    sheet.rows = [[limit, *(rounded(seen.percent_within(at), 1) for seen in [nfs, afs])] for at, limit in enumerate(LIMITS)]
    return sheet
