"""fsx, the file system exerciser: random reads, writes, cuts, mappings and copies of one file against a model; each seed is a case."""

from . import programs
from .results import of_command

SEEDS, OPERATIONS, SECONDS = range(1, 5), 1000, 300
SETTINGS = """
[weights]
close_open = 1
invalidate = 1
copy_file_range = 1
posix_fallocate = 1
punch_hole = 1
sendfile = 1
fsync = 1
fdatasync = 1
"""


def is_possible():
    return programs.missing("fsx")


def prepare(gate):
    (gate.scratch / "fsx.toml").write_text(SETTINGS)


def run(place, gate):
    words = [programs.path("fsx"), "-N", OPERATIONS, "-P", place.local]
    return {f"{how}, seed {seed}": of_command(place.run([*words, *more, "-S", seed, f"file{seed}"], SECONDS, place.folder("fsx")))
            for how, more in [("default", []), ("all operations", ["-f", gate.scratch / "fsx.toml"])] for seed in SEEDS}
