"""Outcomes of test cases, and what differs between two places."""

import difflib, sys
from dataclasses import dataclass

PASS, FAIL, SKIP = "pass", "fail", "skip"


def say(words):
    print(f"programs: {words}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Result:
    """`why` explains and is not compared; `printed` is compared, line by line."""

    outcome: str
    why: str = ""
    printed: tuple = ()

    def differs(self, other):
        return other is None or (self.outcome, self.printed) != (other.outcome, other.printed)


MISSING = Result("missing", "it was not run here")


def of_command(said):
    """The result of a command that passes if it ends with 0."""
    status, out, complaints = said
    if status is None:
        return Result(FAIL, "it did not end in time")
    lines = tuple(out.splitlines())
    return Result(PASS, printed=lines) if status == 0 else Result(FAIL, f"ended with {status}: {(complaints or out).strip()[-1500:]}", lines)


def differences(suite, kind, base, mount):
    """The cases whose results differ."""
    names = sorted(base.keys() | mount.keys())
    pairs = {name: (base.get(name, MISSING), mount.get(name, MISSING)) for name in names}
    return [Difference(suite, kind, name, *pair) for name, pair in pairs.items() if pair[0].differs(pair[1])]


@dataclass(frozen=True)
class Difference:
    """A case that has one result on the disk and another one on a mount of a kind."""

    suite: str
    kind: str
    case: str
    on_disk: Result
    on_mount: Result

    def words(self):
        there, here = self.on_disk, self.on_mount
        if there.outcome != here.outcome:
            return f"{there.outcome} on the disk, {here.outcome} here: {(here.why or there.why).strip()[-700:]}"
        lines = [line for line in difflib.unified_diff(there.printed, here.printed, "disk", "here", n=0, lineterm="")]
        return "printed something else:\n    " + "\n    ".join(line[:300] for line in lines[2:14])
