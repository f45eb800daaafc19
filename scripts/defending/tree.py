"""Work tree in which the source is changed: at the last commit, with a directory of its own for what is built.

Cargo goes by the times of files. What was built of a changed source would count as up to date for a tree whose files are older, so
that the directory is never the one of the tree at hand. A file that is restored gets the present time.
"""

import os, shutil, subprocess, sys
from contextlib import contextmanager

# What others' crates leave when they are built; no programs.
KEPT = (".rlib", ".rmeta", ".so", ".d")


class Tree:
    """The work tree, and what cargo is called with in it."""

    def __init__(self, root, place):
        if git(root, "status", "--porcelain", "--untracked-files=no"):
            sys.exit("without-defence: the tree has changes that are not committed")
        self.path, self.built = place.resolve() / "tree", place.resolve() / "build"
        self.environment = {**os.environ, "CARGO_TARGET_DIR": str(self.built), "CARGO_INCREMENTAL": "0"}
        commit = git(root, "rev-parse", "HEAD")
        if self.path.exists():
            git(self.path, "checkout", "--quiet", "--force", "--detach", commit)
        else:
            git(root, "worktree", "prune")
            git(root, "worktree", "add", "--quiet", "--detach", str(self.path), commit)
        if not self.built.exists():
            begin(root, self)

    @contextmanager
    def without(self, entry):
        """The source without a defence, until the end of the block."""
        path = self.path / entry.file
        before = path.read_text()
        try:
            path.write_text(before.replace(entry.find, entry.replace))
            yield
        finally:
            path.write_text(before)


def begin(root, tree):
    """Copies what is built, with its times, and gives the sources theirs: so others' crates are not compiled again."""
    built = root / "target/ci"
    if not (built / "deps").is_dir():
        return
    for name in (".fingerprint", "build", "deps"):
        shutil.copytree(built / name, tree.built / "ci" / name, symlinks=True, ignore=programs)
    for name in git(root, "ls-files").splitlines():
        shutil.copystat(root / name, tree.path / name, follow_symlinks=False)


def programs(folder, names):
    return [name for name in names if folder.endswith("/deps") and not name.endswith(KEPT)]


def git(folder, *words):
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()
