"""Programs of others that `scripts/install-needed programs` builds from crates.io, or the gate from their source, in `target/programs`."""

import os, shutil
from pathlib import Path

from soaking.place import shown

BUILT = Path("/run/programs")


def folder(root):
    return Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "programs"


def show(root):
    """Shows what was built to every user."""
    if folder(root).exists():
        shown(folder(root), BUILT)


def path(name):
    return shutil.which(name, path=f"{BUILT}/bin:/usr/local/bin:/usr/bin")


def missing(name):
    return None if path(name) else f"there is no {name} (scripts/install-needed programs)"


def unbuilt(name, product):
    """Of what is built from its source, whether its last file is missing."""
    return None if Path(product).exists() else f"{name} could neither be found nor built"
