"""What alternating rounds have measured of one program, or of an older and a newer one, and the table of it."""

import json, os, statistics, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target/release/andrew"
OPENAFS_CELL = ROOT / "tests/peers/openafs-cell"


def programs(text):
    """The value of --andrew: one program, or an older and a newer one."""
    found = [Path(one).resolve() for one in text.split(",")]
    missing = [str(one) for one in found if not os.access(one, os.X_OK)]
    if missing or len(found) > 2:
        sys.exit(f"--andrew: give one program, or OLD,NEW; no program: {', '.join(missing) or 'more than two'}")
    return found


class Rows:
    """Values by row and program. The n-th values of two programs are of the same round."""

    def __init__(self, programs):
        self.programs, self.values, self.load = programs, {}, os.getloadavg()[0]

    def add(self, row, program, value):
        """A value of one of the programs, which is given by its number."""
        self.values.setdefault(row, [[] for _ in self.programs])[program].append(value)

    def join(self, said, program=None, head=""):
        """Adds what another script printed, all of it or as a program's."""
        for row, columns in said.items():
            for number, values in enumerate(columns):
                for value in values:
                    self.add(head + row, number if program is None else program, value)

    def show(self, as_json=False):
        if as_json:
            print(json.dumps(self.values))
            return
        names = ["old", "new"] if len(self.programs) == 2 else ["measured"]
        for name, program in zip(names, self.programs):
            print(f"{name}: `{program}`  ")
        print(f"Medians (smallest-largest). Load average before: {self.load:.2f}, after: {os.getloadavg()[0]:.2f}; "
              f"{os.cpu_count()} processors.\n")
        ratio = [" new / old (by rounds) |", "---|"] if len(names) == 2 else ["", ""]
        print("| | " + " | ".join(names) + " |" + ratio[0] + "\n|" + "---|" * (len(names) + 1) + ratio[1])
        for row, columns in self.values.items():
            cells = [span(values) for values in columns] + ([ratio_of(*columns)] if len(names) == 2 else [])
            print(f"| {row} | " + " | ".join(cells) + " |")


def ratio_of(old, new):
    """The ratio of the medians, and between what that of single rounds lies: where 1 is in it, nothing is shown."""
    if not old or not new or 0 in old:
        return ""
    each = [after / before for before, after in zip(old, new)]
    return f"{statistics.median(new) / statistics.median(old):.2f} ({min(each):.2f}-{max(each):.2f})"


def span(values):
    if not values:
        return ""
    if len(values) == 1:
        return number(values[0])
    return f"{number(statistics.median(values))} ({number(min(values))}-{number(max(values))})"


def number(value):
    """Three digits, or all before the point."""
    if value == 0:
        return "0"
    digits = next((n for n in range(7) if abs(value) >= 100 / 10**n), 7)
    return f"{value:,.{digits}f}"
