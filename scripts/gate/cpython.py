"""CPython's own tests of files, of the Python that Debian has: each test is a case."""

import json, shutil, time
from pathlib import Path

from .results import FAIL, Result

PYTHON = "/usr/bin/python3"
SECONDS = 1500
BRIEF = ["test_shutil", "test_fileio", "test_mmap", "test_tempfile", "test_posix", "test_filecmp"]
MODULES = [*BRIEF, "test_os", "test_pathlib", "test_fcntl", "test_zipfile", "test_mailbox", "test_tarfile", "test_io", "test_file", "test_glob", "test_genericpath",
           "test_posixpath", "test_stat", "test_dbm_dumb", "test_dbm_gnu", "test_shelve", "test_bz2", "test_gzip", "test_lzma", "test_fileinput", "test_compileall",
           "test_py_compile", "test_zipapp", "test_zipimport", "test_linecache", "test_bufio", "test_unicode_file", "test_unicode_file_functions", "test_pkg",
           "test_runpy", "test_cmd_line_script", "test_netrc", "test_import", "test_logging"]


def run(place, gate):
    program = gate.tool(Path(__file__).with_name("cases.py"))
    folder, found, deadline = place.folder("cpython"), {}, time.monotonic() + SECONDS
    for module in BRIEF if gate.brief else MODULES:
        out = place.local / f"{module}.json"
        place.run(["mkdir", module], 60, folder)
        words = [PYTHON, "-W", "ignore", program, module, out]
        status, said, complaint = place.run(words, min(600, deadline - time.monotonic()), folder / module, TMPDIR=folder / module)
        ran = map(json.loads, out.read_text().splitlines()) if out.exists() else []
        found |= {name: Result(outcome, why) for name, outcome, why in ran}
        if status != 0:
            found[module] = Result(FAIL, f"{module} ended with {status}: {(said + complaint)[-500:]}")
    return found


def is_possible():
    return None if Path(f"/usr/lib/python3.{__import__('sys').version_info[1]}/test/test_os.py").exists() else "no tests of CPython are installed"
