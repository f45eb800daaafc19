#!/usr/bin/env python3
"""Runs one module of CPython's own tests in the current directory: one line of JSON for each test. Run by itself, as the user of the place.

  cases.py MODULE OUT

A line is: the test's name, pass, fail or skip, and the end of its complaint. It is written when the test ends, so that those before a crash are there.
"""

import json, sys, unittest

from test import support


class Lines(unittest.TestResult):
    """Writes down each test."""

    def __init__(self, out):
        super().__init__()
        self.out, self.now = out, None

    def startTest(self, test):
        super().startTest(test)
        self.now = ["pass", ""]

    def stopTest(self, test):
        super().stopTest(test)
        self.write(test, *self.now)
        self.now = None

    def write(self, test, outcome, why):
        self.out.write(json.dumps([test.id().removeprefix("test."), outcome, why[-600:]]) + "\n")
        self.out.flush()

    def note(self, test, outcome, why=""):
        """A whole class or module that is left out or broken is a test of its own."""
        if self.now is None:
            self.write(test, outcome, why)
        elif self.now[0] != "fail":
            self.now = [outcome, why]

    def addError(self, test, error):
        self.note(test, "fail", self._exc_info_to_string(error, test))

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.note(test, "fail", str(subtest) + ": " + self._exc_info_to_string(error, test))

    def addSkip(self, test, reason):
        self.note(test, "skip", reason)

    def addUnexpectedSuccess(self, test):
        self.note(test, "fail", "it passes, which was not expected")

    def addExpectedFailure(self, test, error):
        """As it was expected."""


def main(module, out):
    # Neither the network nor gigabytes.
    support.use_resources = []
    with open(out, "a") as file:
        try:
            tests = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
        except unittest.SkipTest as skipped:
            file.write(json.dumps([module, "skip", str(skipped)]) + "\n")
            return
        tests.run(Lines(file))


if __name__ == "__main__":
    main(*sys.argv[1:])
