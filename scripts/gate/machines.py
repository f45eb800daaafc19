"""Programs on two machines at once, in one directory: each job is a case, by how both ended and by what each machine shows then."""

import concurrent.futures, dataclasses
from pathlib import Path

from . import ltp, programs
from .results import FAIL, PASS, Result

SECONDS = 300
COUNTED = "n=$(cat count) && echo $((n + 1)) >count"
# What is made first, what each machine does (WHO is a or b), and what is looked at in the end.
JOBS = {
    "flock": (
        "echo 0 >count; : >lock",
        f"for i in $(seq 30); do flock lock sh -c '{COUNTED}' || exit; done",
        "cat count"),
    "appending under a lock": (
        ": >log; : >lock",
        'for n in $(seq 30); do flock lock sh -c "echo $WHO $n >>log" || exit; done',
        "sort log"),
    "mkdir as a lock": (
        "echo 0 >count",
        f"for i in $(seq 30); do until mkdir lock 2>/dev/null; do sleep 0.01; done; {COUNTED}; rmdir lock || exit; done",
        "cat count; ls"),
    "a link as a lock": (
        "echo 0 >count",
        f": >mine-$WHO; for i in $(seq 30); do until ln mine-$WHO lock 2>/dev/null; do sleep 0.01; done; {COUNTED}; rm lock || exit; done",
        "cat count; ls"),
    "git": (
        # A clone beside a push may find a file of the push that is moved away before it is copied, on any file system.
        "git init -q --bare shared && git clone -q shared a && git clone -q shared b",
        """cd $WHO && git config user.name $WHO && git config user.email $WHO@test || exit
        for n in 1 2 3 4 5; do
            echo $n >>file-$WHO && git add . && git commit -qm $n || exit
            until git push -q origin HEAD:main 2>/dev/null; do git pull -q --rebase origin main || exit; done
        done""",
        "git --git-dir=shared fsck --no-progress --no-dangling && git --git-dir=shared log --format=%an main | sort && git --git-dir=shared ls-tree --name-only main"),
    "sqlite": (
        "sqlite3 base 'create table t(who, n)'",
        """for n in $(seq 20); do sqlite3 -cmd '.timeout 60000' base "insert into t values('$WHO', $n)" || exit; done""",
        "sqlite3 base 'pragma integrity_check; select who, count(*), sum(n) from t group by who'"),
    "maildir": ("mkdir box box/cur box/new box/tmp", "python3 $MAIL box $WHO", "python3 $MAIL box"),
    "rsync": (
        "mkdir tree",
        "rsync -a /usr/include/asm-generic/ tree/$WHO/ && cp -a tree/$WHO tree/copy-$WHO",
        "diff -r tree/a tree/b && diff -r tree/copy-a tree/copy-b && find tree | sort"),
}
SEEDS, OPERATIONS = range(1, 4), 300

fetch = ltp.fetch


def run(place, gate):
    there = dataclasses.replace(place, top=place.beside or place.top)
    mail = gate.tool(Path(__file__).with_name("mail.py"))
    found = {name: job(place, there, name.replace(" ", "-"), *lines, MAIL=mail) for name, lines in JOBS.items()}
    if ltp.is_possible() is None:
        stress = f"{programs.BUILT}/ltp/{ltp.MADE}/fsstress -X -c -p 2 -n {OPERATIONS} -d . -s "
        found |= {f"fsstress, seed {seed}": job(place, there, f"fsstress-{seed}", "true", f"{stress}{seed}", None) for seed in SEEDS}
    return found


def job(place, there, name, first, each, last, **around):
    """Its result: both ended with 0, and both machines print the same in the end."""
    machines = {"a": place, "b": there}
    tops = {who: machine.top / "machines" / name for who, machine in machines.items()}

    def said(who, line):
        return machines[who].run(["sh", "-c", line], SECONDS, tops[who], WHO=who, **around)

    place.run(["mkdir", tops["a"]], 60)
    begun = said("a", first)
    if begun[0] != 0:
        return Result(FAIL, f"what is made first: {begun}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = dict(zip(machines, pool.map(lambda who: said(who, each), machines)))
    wrong = [f"{who} ended with {status}: {(complaint or out).strip()[-500:]}" for who, (status, out, complaint) in done.items() if status != 0]
    # Of what goes by chance, the names alone.
    looks = [said(who, last or "find . | sort")[:2] for who in machines]
    if looks[0] != looks[1] or looks[0][0] != 0:
        wrong.append(f"the two show {looks[0]} and {looks[1]}"[:1000])
    printed = tuple(looks[0][1].splitlines()) if last else ()
    return Result(FAIL, "; ".join(wrong), printed) if wrong else Result(PASS, printed=printed)
