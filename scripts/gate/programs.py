"""Programs of others that `scripts/install-needed programs` builds from crates.io, in `target/programs`."""

import os, shutil
from pathlib import Path

from soaking.place import shown

BUILT = Path("/run/programs")


def show(root):
    """Shows what was built to every user."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "programs/bin"
    if folder.exists():
        shown(folder, BUILT)


def path(name):
    return shutil.which(name, path=f"{BUILT}:/usr/local/bin:/usr/bin")


def missing(name):
    return None if path(name) else f"there is no {name} (scripts/install-needed programs)"
