"""PostgreSQL's own regression tests on a database cluster in the directory: each test is a case."""

import re
from pathlib import Path

from soaking import sources
from soaking.place import run as ran

from . import programs
from .results import FAIL, PASS, Result

VERSION = "15.18"
SOURCE = f"https://deb.debian.org/debian/pool/main/p/postgresql-15/postgresql-15_{VERSION}.orig.tar.bz2"
PROGRAMS = Path("/usr/lib/postgresql/15/bin")
# The servers are those of the machine; this is the program that runs the tests, and what they load.
BUILD = "./configure --without-readline --without-zlib CFLAGS=-O1; make -s -j2 -C src/test/regress"
TESTS, PRODUCT = "postgres/src/test/regress", "regress.so"
NOT_ROOT = "the servers refuse root"
SECONDS = 3600
LINE = re.compile(r"^(?:test)? +(\S+) +\.\.\. (ok|FAILED)", re.M)


def fetch(root):
    sources.built(programs.folder(root) / "postgres", f"src/test/regress/{PRODUCT}", SOURCE, BUILD)


def is_possible():
    return programs.unbuilt("PostgreSQL", programs.BUILT / TESTS / PRODUCT)


def run(place, _gate):
    tests, folder = programs.BUILT / TESTS, place.folder("postgres")
    words = [tests / "pg_regress", f"--temp-instance={folder / 'cluster'}", f"--inputdir={tests}", f"--outputdir={folder}", f"--bindir={PROGRAMS}",
             f"--dlpath={tests}", f"--schedule={tests / 'parallel_schedule'}", "--max-concurrent-tests=20", "--no-locale"]
    status, said, complaint = place.run(words, SECONDS, folder)
    differences = place.run(["cat", "regression.diffs"], 60, folder)[1]
    # The last word of a part's first line is the file that differs.
    why = {Path(part.partition("\n")[0]).stem: part for part in re.split("^diff ", differences, flags=re.M)}
    found = {name: Result(PASS if word == "ok" else FAIL, why.get(name, "")) for name, word in LINE.findall(said)}
    found["its end"] = Result(PASS if status in (0, 1) else FAIL, f"ended with {status}: {(said + complaint)[-600:]}")
    return found
