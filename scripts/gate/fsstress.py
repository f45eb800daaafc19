"""fsstress of the Linux Test Project: random operations on a tree; each seed is a case, by the tree that it leaves."""

from . import ltp, programs
from .results import Result, of_command

SEEDS, OPERATIONS, SECONDS = range(1, 5), 500, 600
# For one process at a time, whose tree is compared, without what AFS does not have (pipes and devices, links between directories, owners of files, symbolic
# links of more than 1024 bytes) and what depends on the size of a block, which is another one: from there on the trees would be other ones.
WITHOUT = {1: ["mknod", "link", "chown", "symlink", "dread", "dwrite"], 3: []}

fetch, is_possible = ltp.fetch, ltp.is_possible


def run(place, gate):
    words = [programs.BUILT / "ltp" / ltp.MADE / "fsstress", "-X", "-c", "-n", OPERATIONS]
    return {f"{processes} at a time, seed {seed}": one(place, gate, [*words, "-p", processes, "-s", seed, *more], f"{processes}-{seed}", processes)
            for processes, names in WITHOUT.items() for more in [[word for name in names for word in ("-f", f"{name}=0")]] for seed in SEEDS}


def one(place, gate, words, name, processes):
    folder = place.folder("fsstress") / name
    place.run(["mkdir", folder], 60)
    result = of_command(place.run([*words, "-d", folder], SECONDS, folder))
    # Of several the order is by chance, and with it the tree.
    tree = gate.places.listing(place, folder) if processes == 1 else {}
    return Result(result.outcome, result.why, tuple(f"{path} {line[:3]} {line[4:]}" for path, line in sorted(tree.items())))
