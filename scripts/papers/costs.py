"""Costs of calls measured on a server, from a file of `andrew-lab costs`, and in the form of the paper's Tables 3(b) to 3(d) and 4(b) to 4(d).

The file has microseconds of the server's processor by bytes, by the names of Table 6: `{"what": "...", "calls": {"FetchStatus": [[0, 31.5]],
"FetchData": [[1, 40], [65536, 210]]}}`. One point is a fixed cost. `warm_client` has the calls for capabilities and layouts of a client that
goes on using its files, in a minute, if they were counted.
"""

import json

from papers.model import line
from papers.sheets import Sheet, rounded

# Largest file in bytes.
LENGTH_MAX = 1 << 20
# Names under which the laboratory measures what has no name in Table 6.
PATH_READ, PATH_STORE = "read by the data path", "store by the data path"
CAPABILITIES_BY_REQUESTS, BULK_BY_ENTRIES = "GetCapability by requests", "BulkStatus by entries"
# Capabilities that a client has, asked for again at drives.
RENEWALS_BY_REQUESTS = "GetCapability again by requests"
# Most files of a GetLayout.
LAYOUT_FILES_MAX = 32
SAME = lambda *names: {name: name for name in names}
# Columns or rows of each table with the calls that they are measured under, as the paper's stand beside them.
BY_SIZE = {"table3b": ("bytes", SAME("read", "write")), "table4b": ("bytes", SAME("FetchData", "StoreData", "RemoveFile")),
           "table4c": ("entries", {"microseconds": BULK_BY_ENTRIES})}
FIXED = {"table3c": SAME("getattr", "setattr", "lookup"), "table3d": {"create": "create", "unlink (last link)": "remove"},
         "table4d": SAME("FetchStatus", "StoreStatus", "CreateFile", "Rename", "Others")}


class NotMeasured(Exception):
    """The costs do not have an operation."""


class Costs:
    def __init__(self, said):
        self.what, self.warm = str(said["what"]), said.get("warm_client")
        self.calls = {call: [(float(size), float(cost)) for size, cost in points] for call, points in said["calls"].items()}
        for call, points in self.calls.items():
            sizes = [size for size, _ in points]
            if not points or sizes != sorted(set(sizes)) or min(sizes + [cost for _, cost in points]) < 0:
                raise ValueError(f"the points of {call} are none, not in order of bytes, or negative")
        if self.warm and (self.warm["opens_per_minute"] < 1 or min([0, *self.warm["calls_per_minute"].values()]) < 0):
            raise ValueError("the calls of the warm client are negative, or of no opens")

    @classmethod
    def read(cls, path):
        """Those of a file; ValueError or OSError says why there are none."""
        with open(path) as file:
            text = file.read(LENGTH_MAX + 1)
        if len(text) > LENGTH_MAX:
            raise ValueError(f"it is longer than {LENGTH_MAX} bytes")
        try:
            return cls(json.loads(text))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is none of costs: {error}") from None

    def points(self, call):
        """Seconds by bytes of a call; None if it was not measured."""
        return [(size, cost / 1e6) for size, cost in self.calls[call]] if call in self.calls else None

    def seconds(self, call, size):
        return at(self.points(call), size) if call in self.calls else None

    def warm_seconds(self):
        """Seconds of the capability calls of the warm client in a minute; None if it was not counted, or made a call without a cost."""
        if not self.warm:
            return None
        directories, found = float(self.warm["directories"]), 0.0
        # Of layouts the most that a call can have: fewer are not counted as less.
        again = RENEWALS_BY_REQUESTS if RENEWALS_BY_REQUESTS in self.calls else CAPABILITIES_BY_REQUESTS
        sized = {"GetCapability": (again, directories), "GetLayout": ("GetLayout", float(LAYOUT_FILES_MAX))}
        for call, count in sorted(self.warm["calls_per_minute"].items()):
            each = self.seconds(*sized.get(call, (call, 0.0)))
            if each is None:
                return None
            found += each * count
        return found

    def drive_write(self):
        """Seconds by bytes of a write whose bytes a client leaves at drives itself: a room and its commit. None if these were not measured."""
        commits = self.points("Commit")
        if commits is None or "GetRoom" not in self.calls:
            return None
        return [(size, commit + self.seconds("GetRoom", size)) for size, commit in commits]


def at(points, size):
    """Value of points at a size; one point is fixed. A line that is prolonged may not go below nothing."""
    return points[0][1] if len(points) == 1 else max(line(points, size), 0.0)


def table(name, costs):
    """A table of costs, in microseconds; None if none of its calls was measured."""
    if name in FIXED:
        sheet, points = Sheet.of(["operation", "microseconds: µs"]), costs.calls
        sheet.rows = [[row, rounded(points[call][0][1], 1)] for row, call in FIXED[name].items() if call in points]
    else:
        axis, calls = BY_SIZE[name]
        measured = [dict(costs.calls.get(call, [])) for call in calls.values()]
        sheet = Sheet.of([f"{axis}: {axis}", *(f"{column}: µs" for column in calls)])
        sheet.rows = [[size, *(rounded(one.get(size), 1) for one in measured)] for size in sorted(set().union(*measured))]
    return sheet if sheet.rows else None
