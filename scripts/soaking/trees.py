"""Trees as programs see them: listings of a folder, and their differences."""

import json, shutil
from pathlib import Path

from .place import USER, run

PYTHON = "/usr/bin/python3"
# Where the time is in a line of listing.py, counted behind the path.
TIME = 3


class Lister:
    """Lists folders as a user, by default that of the soak, who cannot read this program's own folder."""

    def __init__(self, folder):
        self.program = Path(shutil.copy(Path(__file__).with_name("listing.py"), folder))

    def listing(self, folder, user=USER):
        """What is below the folder, by path."""
        said = run(PYTHON, self.program, folder, user=user)
        return {path: rest for path, *rest in map(json.loads, said.splitlines())}


def difference(seen, wanted, has_times=True, is_own=lambda path: False):
    """The first differences in words, in all but the names that are each tree's own; empty if there are none."""
    found = []
    for path in sorted(seen.keys() | wanted.keys()):
        one, other = (compared(tree.get(path), has_times) for tree in (seen, wanted))
        if one != other and not is_own(path):
            found.append(f"{path}: {one} and not {other}")
    return found[:6] + [f"and {len(found) - 6} more"] if len(found) > 6 else found


def compared(line, has_times):
    if line is None:
        return "not there"
    return [value for column, value in enumerate(line) if has_times or column != TIME]
