"""Entries of tests/defences.toml: what is defended, by which text of which file, and the tests that say so."""

import sys, tomllib
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One defence."""

    name: str
    # Below the top of the project; `find` is in it once, and `replace` is what it has without the defence.
    file: str
    find: str
    replace: str
    # The crate of the tests, and the program that has them: its unit tests (lib) or its integration tests (suite).
    crate: str
    program: str
    tests: tuple

    def program_words(self):
        return ["--lib"] if self.program == "lib" else ["--test", self.program]

    def filter(self):
        """nextest's words for the tests, which are the whole names in their program."""
        return " | ".join(f"test(={test})" for test in self.tests)


def read(root):
    listed = tomllib.loads((root / "tests/defences.toml").read_text())["defence"]
    return [Entry(**{**entry, "tests": tuple(entry["tests"])}) for entry in listed]


def chosen(every, names, count, chance):
    """Those that are named, or some by chance, in the order in which least is built anew."""
    if names:
        found = [entry for entry in every if any(name in entry.name or name in entry.file for name in names)]
    else:
        found = chance.sample(every, min(count, len(every))) if count else every
    if not found:
        sys.exit("no defence has such a name; --list --count 0 shows them")
    return sorted(found, key=lambda entry: (entry.crate, entry.program, entry.file))
