"""Plots as SVG: the paper's points as circles, those obtained here as triangles, each with its spread; the legend below. Lines of a colour that
another column of the plot has too are dashed."""

import math
from html import escape

from papers.sheets import Sheet, is_number, significant

LOAD, BYTES = ("load_units", "load units", True), ("bytes", "bytes", True)
MINUTES = ("client_minutes", "busy client-minutes", False)
CURVES = [f"{trace}_{system}" for trace in ["nfs", "afs"] for system in ["SAD", "NetSCSI", "NASD"]]
# Curves of systems that have numbers only with measured costs.
CURVES_HERE = ["nfs_SID", "nfs_NASD_groups", "afs_SID", "afs_NASD_groups"]
# All columns of a result that are neither of the plot already, nor spreads.
ALL = None


def drawn(sheet):
    """Draws in the place of the means of which they are draws: these are the paper's."""
    named = lambda column: f"{column}_mean" if f"{column}_drawn" in sheet.columns else column.replace("_drawn", "", 1)
    return Sheet([named(column) for column in sheet.columns], sheet.units, sheet.rows)


def by_curve(sheet):
    """Rows `NFS, 90, "SAD, processor, s", 58.9, 1.2` as columns `nfs_SAD` and `nfs_SAD_ci90` over the client-minutes. The other rows of the sheet are no
    points of a curve, as are all of the paper's."""
    wide = Sheet.of(["client_minutes", *(f"{curve}{end}" for curve in CURVES + CURVES_HERE for end in ["", "_ci90"])])
    for row in sheet.rows:
        if len(row) != 5 or not isinstance(row[2], str) or not row[2].endswith(", processor, s"):
            continue
        curve = f"{row[0].lower()}_{row[2].removesuffix(', processor, s')}"
        if curve in wide.columns:
            point = {"client_minutes": row[1], curve: row[3], f"{curve}_ci90": row[4]}
            wide.rows.append([point.get(column) for column in wide.columns])
    return wide


# Of each entry that is plotted: the horizontal axis (column, name, whether it is logarithmic), the name of the vertical one, the columns of the paper or of
# the result, further ones that only the result has, and what gives a sheet these columns.
CHARTS = {
    "howard88.table3": (LOAD, "overall time, s", ["overall"], ["andrew_overall"]),
    "howard88.table6": (LOAD, "time, s", ["overall", "copy", "make"], []),
    "howard88.table7": (LOAD, "use of the server, %", ["cpu", "disk"], ["measured_cpu", "ran_cpu"]),
    "howard88.table14": (("file_bytes", "file size, bytes", True), "open, read and close, ms", ["andrew_cold", "andrew_warm", "standalone"], ALL),
    "howard88.fig1": (LOAD, "time, % of that at load 1", ["prototype", "revised"], ["measured", "ran_prototype", "ran_andrew"]),
    "howard88.fig2": (LOAD, "use of the server, %", ["cpu", "disk"], ["measured_cpu", "ran_cpu"]),
    "howard88.fig3": (LOAD, "overall time, s", ["nfs", "andrew_cold", "andrew_warm"], ALL),
    "howard88.fig4": (LOAD, "use of the processor, %", ["nfs", "andrew_cold", "andrew_warm"], ALL),
    "howard88.fig5": (LOAD, "use of the disk, %", ["nfs_disk1", "nfs_disk2", "andrew_cold"], []),
    "citi01-3.fig5": (("size_mb", "file size, MB", True), "MB/s", ["caching", "combined"], []),
    "gibson97.table3b": (BYTES, "thousand cycles", ["read", "write"], []),
    "gibson97.table4b": (BYTES, "thousand cycles", ["FetchData", "StoreData", "RemoveFile"], []),
    "gibson97.table4c": (("entries", "directory entries", False), "thousand cycles", ["kcycles"], []),
    "gibson97.fig4": (("seconds", "server work of a client-minute, s", True), "client-minutes, %", ["nfs", "afs"], []),
    "gibson97.fig6": (MINUTES, "processor time, s", CURVES, [], drawn),
    "gibson97.fig7": (MINUTES, "processor time, s", CURVES, CURVES_HERE, by_curve),
}

# Width and height of the axes with what they enclose, in units of the SVG, and what the axes enclose.
WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 74, 630, 10, 326
# Height of a line of the legend, which has two columns.
LINE = 20
# Most numbers on an axis, roughly.
TICKS = 9.0
# How many times as high as another a series is where a linear axis would show the lower one as a line on the ground.
APART = 30.0
# Colours that differ also for the colour-blind (Okabe and Ito 2008; the last two are added), and are seen on white and on black.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#C88C00", "#56A0D5", "#785EF0", "#808080"]
# Rules by which a plot that stands alone has its own ground and ink, light or dark as the reader's screen.
ALONE = ("<style>svg { color-scheme: light dark; background: #fff; color: #1a1a1a; }"
         "@media (prefers-color-scheme: dark) { svg { background: #16181c; color: #e6e6e6; } }</style>")


class Series:
    """A column of the paper or of the result: points with their lowest and highest values. Columns at the same place of the chart have the same
    colour."""

    def __init__(self, name, place, is_here, points):
        self.name, self.is_here, self.points = f"{name.replace('_', ' ')}, {'here' if is_here else 'paper'}", is_here, points
        self.colour, self.is_dashed = COLOURS[place % len(COLOURS)], place >= len(COLOURS)

    def stroke(self):
        return f'fill="none" stroke="{self.colour}" stroke-width="{3 if self.is_here else 1}"' + ' stroke-dasharray="6"' * self.is_dashed

    def mark(self, x, y):
        if self.is_here:
            return f'<polygon fill="{self.colour}" points="{x},{y - 6} {x - 5},{y + 3} {x + 5},{y + 3}"/>'
        return f'<circle cx="{x}" cy="{y}" r="3" fill="none" stroke="{self.colour}" stroke-width="2"/>'


def series_of(chart, sheet, is_here):
    """Columns of a sheet that have points."""
    (axis, _, is_log), _, columns, further, form = chart
    sheet = form(sheet)
    if further is ALL:
        further = [name for name in sheet.columns if not sheet.is_spread(name) and name != axis and name not in columns]
    names = enumerate(columns + (further if is_here else []))
    found = (Series(name, place, is_here, list(points_of(sheet, axis, name, is_log))) for place, name in names)
    return [series for series in found if series.points]


def points_of(sheet, axis, column, is_log):
    for row in sheet.rows:
        x, y = sheet.cell(row, axis), sheet.cell(row, column)
        if is_number(x) and is_number(y) and (x > 0 or not is_log):
            spread = sheet.spread(column, row)
            yield math.log10(x) if is_log else x, y, spread and (max(spread[0], 0.0), spread[1])


def logarithmic(point):
    """Of a spread that reaches nothing, the lower part is not drawn."""
    x, y, spread = point
    return x, math.log10(y), spread and (math.log10(spread[0] if spread[0] > 0 else y), math.log10(spread[1]))


class Axis:
    """A range of positions and the round numbers on it; positions on a logarithmic one are logarithms to the base of 10."""

    def __init__(self, positions, is_log, from_nothing=False):
        low, high = min(positions), max(positions)
        margin = max((high - low) * 0.04, 0.1 if is_log else 1e-9)
        self.low, self.high = (0.0, max(high, 1e-9) * 1.06) if from_nothing else (low - margin, high + margin)
        self.is_log = is_log
        self.ticks = [tick for tick in (self.powers() if is_log else self.steps()) if self.low <= tick < self.high]

    def steps(self):
        """Multiples of 1, 2 or 5 times a power of 10."""
        least = (self.high - self.low) / TICKS
        power = 10.0 ** math.floor(math.log10(least))
        step = next((factor * power for factor in [1.0, 2.0, 5.0, 10.0] if factor * power >= least), least)
        first = math.ceil(self.low / step)
        return [(first + count) * step for count in range(int(TICKS) + 1)]

    def powers(self):
        """1, 2 and 5 times the powers of 10; of many powers, these alone."""
        factors = [1.0] if self.high - self.low > TICKS / 3.0 else [1.0, 2.0, 5.0]
        return [power + math.log10(factor) for power in range(math.floor(self.low), math.ceil(self.high) + 1) for factor in factors]

    def labels(self):
        return [significant(10.0**tick if self.is_log else tick) for tick in self.ticks]

    def place(self, position, first, last):
        return round(first + (position - self.low) / (self.high - self.low) * (last - first))


def svg(name, paper, here, is_alone=False):
    """The plot of an entry, for a page that has colours for it, or for a file of its own; None if there is none, or no point."""
    if name not in CHARTS:
        return None
    chart = (*CHARTS[name], lambda sheet: sheet)[:5]
    every = series_of(chart, paper, False) + (series_of(chart, here, True) if here else [])
    if not every:
        return None
    is_log = are_apart(every)
    if is_log:
        for series in every:
            series.points = [logarithmic(point) for point in series.points]
    points = [point for series in every for point in series.points]
    x = Axis([point[0] for point in points], chart[0][2])
    y = Axis([value for _, y, spread in points for value in [y, *(spread or ())]], is_log, from_nothing=not is_log)
    height = HEIGHT + LINE * math.ceil(len(every) / 2) + LINE // 2
    head = f'<svg width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13">'
    lines = [head, ALONE * is_alone, *axes(x, y, chart[0][1], chart[1]), *(part for series in every for part in drawing(series, x, y)), *legend(every)]
    return "\n".join([line for line in lines if line] + ["</svg>\n"])


def are_apart(every):
    if any(y <= 0 for series in every for _, y, _ in series.points):
        return False
    tops = [max(y for _, y, _ in series.points) for series in every]
    return max(tops) / min(tops) > APART


def text(x, y, words, anchor="start", more=""):
    return f'<text x="{x}" y="{y}" fill="currentColor" text-anchor="{anchor}"{more}>\n{escape(words)}\n</text>'


def axes(x, y, x_name, y_name):
    rule = lambda x1, y1, x2, y2, part: f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="currentColor" stroke-opacity="{part}"/>'
    for tick, label in zip(x.ticks, x.labels()):
        at = x.place(tick, LEFT, RIGHT)
        yield from [rule(at, TOP, at, BOTTOM, 0.2), rule(at, BOTTOM, at, BOTTOM + 5, 1), text(at, BOTTOM + 18, label, "middle")]
    for tick, label in zip(y.ticks, y.labels()):
        at = y.place(tick, BOTTOM, TOP)
        yield from [rule(LEFT, at, RIGHT, at, 0.2), rule(LEFT - 5, at, LEFT, at, 1), text(LEFT - 8, at + 4, label, "end")]
    yield from [rule(LEFT, TOP, LEFT, BOTTOM, 1), rule(LEFT, BOTTOM, RIGHT, BOTTOM, 1)]
    yield text((LEFT + RIGHT) // 2, BOTTOM + 40, x_name, "middle", ' font-size="15"')
    middle = (TOP + BOTTOM) // 2
    yield text(22, middle, y_name, "middle", f' font-size="15" transform="rotate(-90 22 {middle})"')


def drawing(series, x, y):
    """The line of a series, with its marks and spreads."""
    places = [(x.place(one, LEFT, RIGHT), y.place(other, BOTTOM, TOP)) for one, other, _ in series.points]
    yield f'<polyline {series.stroke()} points="{" ".join(f"{a},{b}" for a, b in places)}"/>'
    yield from (series.mark(*place) for place in places)
    for (at, _), (_, _, spread) in zip(places, series.points):
        if spread:
            low, high = (y.place(end, BOTTOM, TOP) for end in spread)
            yield f'<path stroke="{series.colour}" d="M{at} {low}V{high}M{at - 3} {low}h6M{at - 3} {high}h6"/>'


def legend(every):
    """Names of the series with their lines and marks, in two columns."""
    rows = math.ceil(len(every) / 2)
    for number, series in enumerate(every):
        x, y = LEFT + 280 * (number // rows), HEIGHT + LINE * (number % rows) + LINE // 2
        yield f'<polyline {series.stroke()} points="{x},{y} {x + 24},{y}"/>'
        yield from [series.mark(x + 12, y), text(x + 32, y + 5, series.name)]
