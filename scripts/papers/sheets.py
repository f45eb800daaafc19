"""Sheets: named columns with units, and rows of cells; a cell is a number, a text, or None for what is not at hand.

A column `x_sd` has standard deviations of the column `x`, `x_ci90` half of the 90 % interval of its mean, `x_min` and `x_max` the smallest
and largest of the values of which `x` has the median.
"""

import math

SPREADS = ["_sd", "_ci90", "_min", "_max"]


class Sheet:
    def __init__(self, columns, units=None, rows=()):
        self.columns, self.units, self.rows = list(columns), list(units or [""] * len(columns)), [list(row) for row in rows]

    @classmethod
    def of(cls, columns):
        """An empty one; columns are given as names, or as `name: unit`."""
        names = [column.partition(": ") for column in columns]
        return cls([name for name, _, _ in names], [unit for _, _, unit in names])

    @classmethod
    def read(cls, said):
        """One of a result."""
        sheet = cls(said["columns"], said["units"], said["rows"])
        if any(len(row) != len(sheet.columns) for row in [*sheet.rows, sheet.units]):
            raise ValueError("rows and units are not as long as there are columns")
        return sheet

    def written(self):
        return {"columns": self.columns, "units": self.units, "rows": self.rows}

    def add(self, column, unit, cells):
        """A column with its cells, one for each row."""
        self.columns.append(column)
        self.units.append(unit)
        for row, cell in zip(self.rows, cells, strict=True):
            row.append(cell)

    def column(self, name):
        """Position of a column, or None."""
        return self.columns.index(name) if name in self.columns else None

    def cell(self, row, name):
        at = self.column(name)
        return None if at is None else row[at]

    def row(self, first):
        """The row that begins with a text, or None."""
        return next((row for row in self.rows if row[0] == first), None)

    def number(self, first, name):
        """The number in the row that begins with a text."""
        row = self.row(first)
        found = None if row is None else self.cell(row, name)
        if not is_number(found):
            raise KeyError(f"no number in {first}, {name}")
        return found

    def points(self, x, y):
        """Pairs of two columns, where both are numbers."""
        pairs = [(self.cell(row, x), self.cell(row, y)) for row in self.rows]
        return [(a, b) for a, b in pairs if is_number(a) and is_number(b)]

    def is_spread(self, name):
        """Whether a column is the spread of another one."""
        return any(name.endswith(end) and name.removesuffix(end) in self.columns for end in SPREADS)

    def spread(self, name, row):
        """Lowest and highest value at a row: value and deviation, or half the interval; or the range. None if there is none."""
        value, *ends = [self.cell(row, name + end) for end in ["", *SPREADS]]
        half = next((end for end in ends[:2] if is_number(end)), None)
        if half is not None and is_number(value):
            return value - half, value + half
        return tuple(ends[2:]) if half is None and all(map(is_number, ends[2:])) else None


def is_number(cell):
    return isinstance(cell, float)


def rounded(number, digits):
    """As printed with so many digits after the point, halves away from zero; None if it is no finite number."""
    if number is None or not math.isfinite(number):
        return None
    scaled = number * 10.0**digits
    whole = math.floor(abs(scaled))
    whole += abs(scaled) - whole >= 0.5
    return math.copysign(whole, scaled) / 10.0**digits


def shown(cell):
    """A cell as a person reads it: whole numbers without a point, others with four significant digits at least."""
    if not is_number(cell):
        return "not at hand" if cell is None else cell
    size = abs(cell)
    if cell == math.trunc(cell) and size < 1e15:
        return f"{cell:.0f}"
    return without_zeros(f"{cell:.{1 if size >= 1000 else 2 if size >= 10 else 3 if size >= 0.1 else 6}f}")


def significant(number):
    """A number of which no digits are told: three significant ones, all of a larger whole number."""
    size = abs(number)
    return without_zeros(f"{number:.{0 if size >= 100 or size == 0 else min(int(2 - math.floor(math.log10(size))), 9)}f}")


def without_zeros(text):
    return text.rstrip("0").rstrip(".") if "." in text else text
