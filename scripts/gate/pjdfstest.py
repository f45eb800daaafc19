"""pjdfstest, the suite of system calls against POSIX: each test function is a case."""

import re

from . import programs
from .results import FAIL, PASS, SKIP, Result

SECONDS = 1500
# Its users are one without a token, and that of the soak; times have to differ by what a clock of the kernel's can tell.
SETTINGS = """
[features]
posix_fallocate = {}
rename_ctime = {}
stat_st_birthtime = {}
utimensat = {}
utime_now = {}

[settings]
naptime = 0.05
allow_remount = false

[dummy_auth]
entries = [["nobody", "nogroup"], ["soaker", "soaker"]]
"""
WORDS = {"ok": PASS, "FAILED": FAIL, "skipped": SKIP}


def is_possible():
    return programs.missing("pjdfstest")


def prepare(gate):
    settings = gate.scratch / "pjdfstest.toml"
    settings.write_text(SETTINGS)


def run(place, gate):
    words = [programs.path("pjdfstest"), "-c", gate.scratch / "pjdfstest.toml", "-p", place.folder("pjdfstest")]
    status, out, complaint = place.run(words, SECONDS, place.folder("pjdfstest"))
    found, name = {}, None
    for line in re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines():
        case = re.fullmatch(r"(\S+::\S+) +(ok|FAILED|skipped)", line)
        if case:
            name = case[1]
            found[name] = Result(WORDS[case[2]])
        elif name and line.startswith("\t"):
            found[name] = Result(found[name].outcome, f"{found[name].why} {line.strip()}".strip())
    found["its end"] = Result(PASS if status in (0, 1) else FAIL, complaint[-500:])
    return found
