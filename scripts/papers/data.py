"""The papers' data: their tables, figures and claims, with how each is repeated (`crates/lab/afs-lab/data/README.md`)."""

import math, tomllib
from pathlib import Path

from papers.sheets import Sheet

FOLDER = Path(__file__).resolve().parent.parent.parent / "crates/lab/afs-lab/data"
NAMES = ["howard88", "citi01-3", "gibson97"]


class Paper:
    def __init__(self, said):
        self.id, self.citation = said["meta"]["paper"], said["meta"]["citation"]
        self.entries = [Entry(kind, entry) for kind in ["table", "figure"] for entry in said.get(kind, [])]
        self.claims, slips = said.get("claim", []), said.get("slip", [])
        for entry in self.entries:
            entry.slips = [slip["what"] for slip in slips if slip["entry"] == entry.id]

    def sheet(self, name):
        """The sheet of an entry, by the short name."""
        return next(entry.sheet for entry in self.entries if entry.id == f"{self.id}.{name}")


class Entry:
    """A table or figure. `measures` is what it measured; `needs` what a run has to be given, `lacks` why there is none; `computed` is true if
    it follows from the papers' numbers and measured costs alone, `modelled` if its other loads follow from load 1."""

    def __init__(self, kind, said):
        self.kind, self.id, self.title = kind, said["id"], said["title"]
        self.page, self.section, self.source = said["page"], said["section"], said["source"]
        self.measures, self.how = said["measures"], said["how"]
        self.lacks, self.needs = said.get("lacks"), said.get("needs")
        self.doubtful, self.missing = said.get("doubtful", []), said.get("missing")
        self.notes = said.get("notes", "") + (f" Axis: {said['x']}." if said.get("x") else "")
        rows = said["rows"] + ([["total", *said["total"]]] if said.get("total") else [])
        width = len(said["columns"])
        self.sheet = Sheet(said["columns"], said["units"], [[cell(one) for one in row] + [None] * (width - len(row)) for row in rows])


def cell(said):
    if isinstance(said, str):
        return said
    return None if math.isnan(said) else float(said)


def papers():
    return [Paper(tomllib.loads((FOLDER / f"{name}.toml").read_text())) for name in NAMES]
