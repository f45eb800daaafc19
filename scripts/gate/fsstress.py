"""fsstress of the Linux Test Project: random operations on a tree; each seed is a case, by the tree that it leaves."""

from . import ltp, programs
from .results import Result, of_command

SEEDS, OPERATIONS, SECONDS = range(1, 5), 1000, 600
# What AFS does not have is left out, as from there on the trees would be other ones: pipes and devices, links between directories, owners of files.
WITHOUT = ["mknod", "link", "chown"]

fetch, is_possible = ltp.fetch, ltp.is_possible


def run(place, gate):
    words = [programs.BUILT / "ltp" / ltp.MADE / "fsstress", "-X", "-c", "-n", OPERATIONS, *(word for name in WITHOUT for word in ("-f", f"{name}=0"))]
    return {f"{processes} at a time, seed {seed}": one(place, gate, [*words, "-p", processes, "-s", seed], f"{processes}-{seed}", processes)
            for processes in (1, 3) for seed in SEEDS}


def one(place, gate, words, name, processes):
    folder = place.folder("fsstress") / name
    place.run(["mkdir", folder], 60)
    result = of_command(place.run([*words, "-d", folder], SECONDS, folder))
    # Of several the order is by chance, and with it the tree.
    tree = gate.places.listing(place, folder) if processes == 1 else {}
    return Result(result.outcome, result.why, tuple(f"{path} {line[:3]} {line[4:]}" for path, line in sorted(tree.items())))
