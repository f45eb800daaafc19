"""The list of known differences, `differences.toml`: which there may be, and which there have to be."""

import fnmatch, sys, tomllib
from dataclasses import dataclass, field
from pathlib import Path

LIST = Path(__file__).with_name("differences.toml")
ALWAYS, AT_TIMES = "always", "at times"


@dataclass
class Line:
    """Cases of a suite that differ, on some kinds of mounts."""

    suite: str
    cases: list
    reason: str
    when: str
    mounts: list
    # The pairs of pattern and kind that a difference was found for.
    used: set = field(default_factory=set)

    def takes(self, difference):
        """Whether it is about the difference, which it remembers."""
        if self.suite != difference.suite or difference.kind not in self.mounts:
            return False
        found = {(pattern, difference.kind) for pattern in self.cases if fnmatch.fnmatchcase(difference.case, pattern)}
        self.used |= found
        return bool(found)

    def gone(self, suite, kind, cases):
        """The patterns whose cases were all run and no longer differ."""
        if self.when != ALWAYS or self.suite != suite or kind not in self.mounts:
            return []
        ran = [pattern for pattern in self.cases if fnmatch.filter(cases, pattern)]
        return [pattern for pattern in ran if (pattern, kind) not in self.used]


def lines(file, kinds):
    """The list; ends the script with what is wrong in it."""
    found = []
    for entry in tomllib.loads(file.read_text())["difference"]:
        line = Line(entry["suite"], entry["cases"], entry["reason"].strip(), entry["when"], entry.get("mounts", list(kinds)))
        if line.when not in (ALWAYS, AT_TIMES) or not line.reason or not line.cases or set(line.mounts) - set(kinds):
            sys.exit(f"{file}: an entry of {line.suite} with cases {line.cases} is not as the head of the file says")
        found.append(line)
    return found


def judged(known, differences):
    """Those that no line is about. Each line remembers what it was needed for."""
    return [one for one in differences if not any([line.takes(one) for line in known])]
