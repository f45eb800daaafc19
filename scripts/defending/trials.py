"""Trial of a defence: its tests pass with it, and one of them fails without it."""

import os, re, signal, subprocess, time
from dataclasses import dataclass, replace

from .entries import Entry

OUTCOMES = ("proven", "passes", "hangs", "invalid")
# Longest time to compile, in seconds.
BUILD_MAX = 3600
# Exit status of nextest: a test has failed.
FAILED = 100
# How a test says that it failed.
SAID = re.compile(r"panicked at|^\s*Error: ", re.MULTILINE)


@dataclass
class Result:
    """What became of a defence."""

    entry: Entry
    outcome: str
    text: str
    seconds: float

    def shown(self):
        return {**vars(self.entry), "outcome": self.outcome, "text": self.text, "seconds": round(self.seconds, 1)}


def of_program(tree, entries, limit):
    """Tries defences whose tests are in one program. That they pass with all defences is seen before the first one is taken out."""
    faults = faults_of(tree, entries[0], sorted({test for entry in entries for test in entry.tests}), limit)
    for entry in entries:
        began = time.monotonic()
        fault = next((faults[test] for test in entry.tests if test in faults), None)
        outcome, text = ("invalid", fault) if fault else judged(tree, entry, limit)
        yield Result(entry, outcome, text, time.monotonic() - began)


def faults_of(tree, entry, tests, limit):
    """The tests that do not pass with all defences, each with what became of it."""
    outcome, text = run(tree, replace(entry, tests=tests), limit * len(tests))
    if outcome == "passes":
        return {}
    if len(tests) == 1:
        return {tests[0]: f"with the defence {tests[0]} {'fails' if outcome == 'proven' else outcome} {text}".strip()}
    return {name: fault for test in tests for name, fault in faults_of(tree, entry, [test], limit).items()}


def judged(tree, entry, limit):
    if (tree.path / entry.file).read_text().count(entry.find) != 1:
        return "invalid", "the file does not have the text once"
    with tree.without(entry):
        return run(tree, entry, limit)


def run(tree, entry, limit):
    """What the tests say of the tree as it is."""
    words = ["cargo", "nextest", "run", "--cargo-profile", "ci", "-p", entry.crate, *entry.program_words()]
    status, said = command(tree, [*words, "--no-run"], BUILD_MAX)
    if status != 0:
        return "invalid", "does not compile: " + first_error(said)
    status, said = command(tree, [*words, "--no-fail-fast", "-E", entry.filter()], limit)
    if status is None:
        return "hangs", ""
    if status == FAILED and SAID.search(said):
        return "proven", ""
    return ("passes", "") if status == 0 and runs(said) == len(entry.tests) else ("invalid", f"nextest ends with {status}, {runs(said)} tests")


def runs(said):
    """How many tests were run."""
    found = re.search(r"(\d+) tests? run", said)
    return int(found[1]) if found else 0


def first_error(said):
    return next((line for line in said.splitlines() if line.startswith("error")), said.strip()[-200:])


def command(tree, words, limit):
    """Exit status and output; `None` as the status if it did not end in time. Nothing that it has started is left."""
    started = subprocess.Popen(
        words, cwd=tree.path, env=tree.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0
    )
    try:
        said, _ = started.communicate(timeout=limit)
        return started.returncode, said
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if started.poll() is None:
            # nextest ends its tests when it is asked to, and is given a moment.
            os.killpg(started.pid, signal.SIGTERM)
            try:
                started.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
