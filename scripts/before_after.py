"""An older and a newer program in all that the scripts measure, joined into one table."""

import json, subprocess, sys
from pathlib import Path

from measured import Rows

SCRIPTS = Path(__file__).resolve().parent
# Run once for each program and round, with the peers: what is measured of those differs by noise alone.
ONE_AT_A_TIME = ["andrew", "load", "security", "volumes", "bulk"]
# These alternate by themselves.
BOTH = ["clients", "listing", "switches", "parts"]
PARTS = ONE_AT_A_TIME + BOTH


def measure(args):
    """All parts, or the one that is wanted. What failed is told of and left out; what was measured is shown however it ends."""
    rows, wanted = Rows(args.andrew), [part for part in PARTS if args.only in (None, part)]
    if not args.examples and "parts" in wanted:
        wanted.remove("parts")
        print("parts are left out: they need --examples", file=sys.stderr)
    whole = True
    try:
        for round in range(args.runs):
            for part in filter(ONE_AT_A_TIME.__contains__, wanted):
                whole &= alternate(part, round, args, rows)
                keep(rows, args)
        for part in filter(BOTH.__contains__, wanted):
            compared = ["--examples", args.examples] if part == "parts" else ["--andrew", ",".join(map(str, args.andrew))]
            said = run(part, [*compared, *words(part, args, args.runs)], f"{args.runs} rounds")
            rows.join(said, head=f"{part}: ")
            keep(rows, args)
            whole &= said != {}
    finally:
        rows.show(args.json)
    if not whole:
        sys.exit("benchmarks: what failed is missing in the table")


def keep(rows, args):
    """What was measured so far, in values.json: a whole run is long, and may be cut short."""
    args.scratch.mkdir(parents=True, exist_ok=True)
    (args.scratch / "values.json").write_text(json.dumps(rows.values))


def alternate(part, round, args, rows):
    """A round of a part; who comes first changes, so that neither always finds what the other left."""
    said = {}
    for program in sorted(range(2), reverse=round % 2 == 1):
        options = ["--andrew", args.andrew[program], *words(part, args, runs=1)]
        said[program] = run(part, options, f"round {round + 1} of {args.runs}, {args.andrew[program]}")
        if not said[program]:
            return False  # The other one's values would have none beside them.
    for program, values in said.items():
        rows.join(values, program, head=f"{part}: ")
    return True


def words(part, args, runs):
    """The options of a part's script."""
    scratch, dumps = args.scratch.resolve() / part, args.scratch.resolve().with_name("benchmarks-dumps")
    brief = lambda *words: [*words] if args.brief else []
    return {
        "andrew": ["--only", "andrew", "--src", args.src, "--runs", runs, "--scratch", scratch],
        "load": ["--only", "load", "--src", args.src, "--scratch", scratch, *brief("--brief")],
        "security": ["--rounds", runs, "--scratch", scratch, *brief("--brief")],
        "volumes": ["--runs", runs, "--scratch", scratch, "--dumps", dumps, *brief("--small", 200, "--large", 1000, "--bulk", 16)],
        "bulk": ["--only", "fetch,others", "--rounds", runs, "--scratch", scratch, *brief("--brief")],
        "clients": ["--rounds", runs, "--scratch", scratch, *brief("--files", 1, "--statuses", 100)],
        "listing": ["--rounds", runs, "--scratch", scratch, *brief("--entries", 500, "--statuses", 200)],
        "switches": ["--rounds", runs, "--scratch", scratch, *brief("--files", 50, "--calls", 100)],
        "parts": ["--rounds", runs, "--scratch", scratch, *brief("--brief")],
    }[part]


def run(part, options, told):
    """What a part's script measured: values by row and program."""
    print(f"{part}, {told}", file=sys.stderr)
    script = SCRIPTS / ("benchmarks" if part in ("andrew", "load") else f"benchmarks-{part}")
    with subprocess.Popen([str(script), "--json", *map(str, options)], stdout=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.read()
        except BaseException:
            process.terminate()  # It takes down what it brought up.
            raise
    if process.returncode != 0:
        print(f"{part}, {told}: failed, and left out", file=sys.stderr)
        return {}
    return json.loads(said)
