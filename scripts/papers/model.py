"""Analytic model of Gibson et al. 1997: work of the file manager = sum over operations of count times cost.

Counts, costs and rules are those of the paper's Tables 2 to 7. What Table 6 charges an operation with decides its cost in each of three
systems: disks behind the server (SAD), disks on the network that obey the server (NetSCSI), and disks that serve clients by capability (NASD).
"""

from papers.sheets import Sheet, is_number, rounded

SYSTEMS = ["SAD", "NetSCSI", "NASD"]
TRACES = [("nfs", "NFS"), ("afs", "AFS")]
# Clock of the file manager in the paper's replay, in cycles a second.
CLOCK = 150e6
# Thousand cycles of NFS getattr and lookup, with more digits than Table 3(c) prints (33 and 50): these give all of Table 7's cells.
FITTED = {"getattr": 33.33, "lookup": 50.15}
# Directory entries of a BulkStatus. The paper does not tell them; these give Table 7's cell.
BULK_ENTRIES = 13.03
SIZED = ["read", "write", "FetchData", "StoreData"]
READS, WRITES = ["BlockRead", "FetchData"], ["BlockWrite", "StoreData"]
# Most that the work of reads and writes may differ from the printed: their mean sizes are known to two digits only.
NEAR = 0.05


def line(points, x):
    """Value at `x` of the straight lines between points in order of x; the first and last line are prolonged."""
    if len(points) < 2:
        return None
    after = next((at for at, point in enumerate(points[1:]) if x <= point[0]), len(points) - 2)
    (x0, y0), (x1, y1) = points[after], points[after + 1]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def total(numbers):
    """The sum in order."""
    found = 0.0
    for number in numbers:
        found += number
    return found


class Inputs:
    """The tables of the paper."""

    def __init__(self, papers):
        self.paper = next(paper for paper in papers if paper.id == "gibson97")

    def sheet(self, table):
        return self.paper.sheet(table)

    def number(self, table, row, column):
        return self.sheet(table).number(row, column)

    def operations(self, table):
        """Names of the rows, in order, without the total."""
        return [row[0] for row in self.sheet(table).rows if isinstance(row[0], str) and row[0] != "total"]

    def cost(self, rule, size):
        """Thousand cycles of an operation as Table 6 names it; `size` is that of a read or write."""
        if rule in FITTED:
            return FITTED[rule]
        if rule in ["setattr", "create", "remove"]:
            table = "table3c" if rule == "setattr" else "table3d"
            return self.number(table, "unlink (last link)" if rule == "remove" else rule, "kcycles")
        if rule in ["read", "write"]:
            return line(self.sheet("table3b").points("bytes", rule), size)
        if rule in ["FetchData", "StoreData"]:
            # Below 1 KB the costs are not in the order of the sizes.
            return line([point for point in self.sheet("table4b").points("bytes", rule) if point[0] >= 1024.0], size)
        if rule == "BulkStatus":
            return line(self.sheet("table4c").points("entries", "kcycles"), BULK_ENTRIES)
        if rule == "RemoveFile":
            # Table 7 charges all removals as that of the smallest file.
            return line(self.sheet("table4b").points("bytes", rule), 1.0)
        return self.number("table4d", rule, "kcycles")

    def charged(self, trace, operation):
        """What an operation is charged with in each system (Table 6); None if nothing reaches the file manager."""
        rules = self.sheet(f"table6-{trace}")
        row = rules.row("NasdOpen" if operation == "Open" else operation)
        if row is None:
            # Table 6 leaves out what is the same in all systems.
            return [operation] * 3
        return [str(rules.cell(row, system) or "").split("(")[0] or None for system in SYSTEMS]

    def mean_bytes(self, trace, operation):
        """Mean bytes of a data operation in the busy client-minutes: Table 5's bytes by Table 7's count."""
        if operation not in READS + WRITES:
            return 0.0
        what = "read data, GB" if operation in READS else "write data, GB"
        return self.number("table5", what, trace) * 1e6 / self.number(f"table7-{trace}", operation, "count_k")


class Work:
    """One operation of a trace: its cost and work (10⁹ cycles) in each system, and the printed work."""

    def __init__(self, inputs, trace, operation):
        table = f"table7-{trace}"
        self.operation, self.count_k = operation, inputs.number(table, operation, "count_k")
        self.bytes, rules = inputs.mean_bytes(trace, operation), inputs.charged(trace, operation)
        self.kcycles = [0.0 if rule is None else inputs.cost(rule, self.bytes) for rule in rules]
        self.gcycles = [cost * self.count_k / 1e3 for cost in self.kcycles]
        self.printed = [inputs.number(table, operation, system) for system in SYSTEMS]
        self.is_sized = [rule in SIZED for rule in rules]

    def agreement(self, system):
        """Whether the work in a system is as printed: `digits`, `near` (its inputs have no more digits) or `no`."""
        got, want = self.gcycles[system], self.printed[system]
        if rounded(got, 1) == rounded(want, 1):
            return "digits"
        return "near" if self.is_sized[system] and abs(got / want - 1.0) < NEAR else "no"

    def agreements(self):
        said = [self.agreement(system) for system in range(3)]
        wrong = [name for name, one in zip(SYSTEMS, said) if one == "no"]
        return f"no ({', '.join(wrong)})" if wrong else "within 5 %" if "near" in said else "to the digit"


def work(inputs, trace):
    return [Work(inputs, trace, operation) for operation in inputs.operations(f"table7-{trace}")]


def table7(inputs, trace):
    """Table 7, computed, with totals and shares of the SAD total."""
    rows = work(inputs, trace)
    totals = [total(one.gcycles[system] for one in rows) for system in range(3)]
    sheet = Sheet.of(["operation", "count_k: 10^3", *(f"{name}{end}" for name in SYSTEMS for end in [": Gcycles", "_pct: %"]), "as_printed"])
    lines = [(one.operation, one.count_k, one.gcycles, one.agreements()) for one in rows]
    for name, count_k, gcycles, agrees in [*lines, ("total", total(one.count_k for one in rows), totals, "")]:
        cells = [rounded(value, 1) for one in gcycles for value in [one, 100.0 * one / totals[0]]]
        sheet.rows.append([name, rounded(count_k, 1), *cells, agrees])
    return sheet


def table6(inputs, trace):
    """Costs that Table 6's rules give each operation."""
    sheet = Sheet.of(["trace_operation", *(f"{name}: kcycles" for name in SYSTEMS)])
    sheet.rows = [[one.operation, *(rounded(cost, 1) for cost in one.kcycles)] for one in work(inputs, trace)]
    return sheet


# Names of Table 3(a) with what each is charged with.
RECORDS = {"AttrRead": "getattr", "AttrWrite": "setattr", "BlockRead": "read", "BlockWrite": "write", "DirRead": "lookup",
           "DirReadWrite": "create", "DeleteWrite": "remove"}


def table3a(inputs):
    """Share of cycles of each record type of the NFS trace, from the table's own quantities."""
    found = []
    for record, rule in RECORDS.items():
        millions = inputs.number("table3a", record, "quantity_m")
        mean = inputs.number("table2", f"{rule} data, GB", "nfs") * 1e3 / millions if rule in ["read", "write"] else 0.0
        found.append((record, millions, millions * inputs.cost(rule, mean)))
    quantity, cycles = total(one[1] for one in found), total(one[2] for one in found)
    sheet = Sheet.of(["record", "percent: %", "quantity_m: 10^6", "pct_cycles: %"])
    sheet.rows = [[record, rounded(100.0 * millions / quantity, 1), millions, rounded(100.0 * one / cycles, 1)] for record, millions, one in found]
    return sheet


def table4a(inputs):
    """Share of cycles of each operation of the AFS trace. The two whose sizes in the whole trace are not printed, and BulkStatus, are not at
    hand; the total follows from the others and their printed shares."""
    requests, known, shares, found = 1e-3 * inputs.number("table2", "requests", "afs"), 0.0, 0.0, []
    for operation in inputs.operations("table4a"):
        count_k = inputs.number("table4a", operation, "quantity_k")
        cycles = None if operation in ["BulkStatus", "FetchData", "StoreData"] else count_k * inputs.cost(operation, 0.0)
        if cycles is not None:
            known, shares = known + cycles, shares + inputs.number("table4a", operation, "pct_cycles")
        found.append((operation, count_k, cycles))
    whole = 100.0 * known / shares
    sheet = Sheet.of(["operation", "percent: %", "quantity_k: 10^3", "pct_cycles: %"])
    for operation, count_k, cycles in found:
        share = None if cycles is None else rounded(100.0 * cycles / whole, 1)
        sheet.rows.append([operation, rounded(100.0 * count_k / requests, 1), count_k, share])
    return sheet


def table5(inputs):
    """Shares of the busy client-minutes in the whole traces: Table 5 over Table 2."""
    sheet = Sheet.of(["what", "nfs", "nfs_pct_of_trace: %", "afs", "afs_pct_of_trace: %"])
    for what in ["client machines", "requests", "read data, GB", "write data, GB"]:
        parts = [(inputs.number("table5", what, trace), inputs.number("table2", what, trace)) for trace, _ in TRACES]
        sheet.rows.append([what, *(cell for part, whole in parts for cell in [part, rounded(100.0 * part / whole, 1)])])
    return sheet


def derived_costs(inputs):
    """Cost of each operation that Table 7 implies."""
    sheet = Sheet.of(["trace", "operation", "kcycles: kcycles"])
    for trace, name in TRACES:
        table = f"table7-{trace}"
        for operation in inputs.operations(table):
            cycles = inputs.number(table, operation, "NASD" if operation == "Open" else "SAD")
            sheet.rows.append([name, operation, rounded(cycles / inputs.number(table, operation, "count_k") * 1e3, 1)])
    return sheet


def derived_opens(inputs):
    """Work in the system with capabilities under other rules for opens: as printed, as Table 6 rules, and without."""
    sheet = Sheet.of(["trace", "variant", "NASD: Gcycles", "NASD_pct: %", "factor"])
    for trace, name in TRACES:
        cell = lambda row, column: inputs.number(f"table7-{trace}", row, column)
        sad, nasd, opens = cell("total", "SAD"), cell("total", "NASD"), cell("Open", "NASD")
        variants = [("as printed", nasd)]
        if trace == "nfs":
            getattr_ = cell("AttrRead", "SAD") / cell("AttrRead", "count_k")
            variants.append(("open = getattr", nasd - opens + cell("Open", "count_k") * getattr_))
        for variant, cycles in [*variants, ("no open", nasd - opens)]:
            sheet.rows.append([name, variant, rounded(cycles, 1), rounded(100.0 * cycles / sad, 1), rounded(sad / cycles, 2)])
    return sheet


def figure6(inputs):
    """Processor seconds of the file manager for a number of busy client-minutes: means, from Tables 5 and 7."""
    sheet = Sheet.of(["client_minutes", *(f"{trace}_{system}: s" for trace, _ in TRACES for system in SYSTEMS)])
    each = []
    for trace, _ in TRACES:
        minutes = inputs.number("table5", "busy client-minutes", trace)
        each += [(trace, inputs.number(f"table7-{trace}", "total", system) * 1e9 / minutes / CLOCK) for system in SYSTEMS]
    for minutes in [10.0, 20.0, 40.0, 60.0, 80.0, 90.0, 100.0, 120.0]:
        # The paper's draws of NFS end at 100.
        sheet.rows.append([minutes, *(None if trace == "nfs" and minutes > 100 else rounded(minutes * one, 1) for trace, one in each)])
    return sheet
