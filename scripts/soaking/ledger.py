#!/usr/bin/env python3
"""Writes numbered transactions into a database and notes outside of it each one that was acknowledged; compares both.

  ledger.py sqlite DATABASE LEDGER MODE SYNC SEED [COUNT]
                                      that many, or until it is killed; MODE and SYNC are values of `journal_mode` and `synchronous`
  ledger.py verify DATABASE LEDGER    says what is wrong with the database, as JSON
  ledger.py postgres SOCKETS LEDGER   until it is killed, through psql, in the table `ledger` of the database `bench`

A line of the ledger of SQLite is: the number of the transaction, the older row that it changed, that row's version.
This file is run by itself, by the user of the soak.
"""

import hashlib, json, random, sqlite3, subprocess, sys

TABLE = "create table if not exists ledger (n integer primary key, version integer, body blob, sum text)"
INDEX = "create index if not exists by_sum on ledger (sum)"


def write_sqlite(database, ledger, mode, sync, seed, count="inf"):
    chance = random.Random(seed)
    store = sqlite3.connect(database, timeout=30, isolation_level=None)
    if store.execute(f"pragma journal_mode = {mode}").fetchone()[0] != mode:
        sys.exit(f"no journal mode {mode}")
    store.execute(f"pragma synchronous = {sync}")
    store.execute(TABLE)
    store.execute(INDEX)
    number = (store.execute("select max(n) from ledger").fetchone()[0] or 0) + 1
    last = number + float(count)
    with open(ledger, "a", buffering=1) as acknowledged:
        while number < last:
            older = chance.randrange(1, number + 1)
            acknowledged.write(f"{number} {older} {transaction(store, chance, number, older)}\n")
            number += 1
    store.close()


def transaction(store, chance, number, older):
    """Adds a row and changes an older one; answers the changed row's version."""
    store.execute("begin immediate")
    store.execute("insert into ledger values (?, 0, ?, ?)", (number, *body(chance)))
    store.execute("update ledger set version = version + 1, body = ?, sum = ? where n = ?", (*body(chance), older))
    version = store.execute("select version from ledger where n = ?", (older,)).fetchone()[0]
    store.execute("commit")
    return version


def body(chance):
    """Mostly short, now and then longer than a page of the database."""
    data = chance.randbytes(chance.choice([20, 200, 900, 9000]))
    return data, hashlib.sha256(data).hexdigest()


def verify_sqlite(database, ledger):
    store = sqlite3.connect(database, timeout=30)
    faults = [f"integrity_check: {row[0]}" for row in store.execute("pragma integrity_check") if row[0] != "ok"]
    rows = {}
    for number, version, data, named in store.execute("select n, version, body, sum from ledger"):
        rows[number] = version
        if hashlib.sha256(data).hexdigest() != named:
            faults.append(f"row {number} has another body than its sum says")
    versions, last = {}, 0
    for last, older, version in lines(ledger):
        versions[last] = max(versions.get(last, 0), 0)
        versions[older] = version
    faults += [f"transaction {n} was acknowledged and is lost" for n in versions if n not in rows]
    faults += [f"row {n} was acknowledged in version {v} and is there in {rows[n]}" for n, v in versions.items() if rows.get(n, v) < v]
    if sorted(rows) != list(range(1, len(rows) + 1)):
        faults.append("there are gaps between the rows")
    print(json.dumps({"rows": len(rows), "acknowledged": sum(1 for _ in lines(ledger)), "faults": faults}))


def lines(ledger):
    """The whole lines of a ledger; its writer was killed, so the last one may be cut."""
    with open(ledger) as file:
        for line in file:
            if line.endswith("\n"):
                yield tuple(int(word) for word in line.split())


def write_postgres(sockets, ledger):
    psql = subprocess.Popen(["psql", "-h", sockets, "-XqAt", "-v", "ON_ERROR_STOP=1", "bench"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    print("select coalesce(max(n), 0) from ledger;", file=psql.stdin, flush=True)
    number = int(psql.stdout.readline())
    with open(ledger, "a", buffering=1) as acknowledged:
        while True:
            number += 1
            print(f"insert into ledger values ({number}, repeat(md5('{number}'), 20)) returning n;", file=psql.stdin, flush=True)
            if psql.stdout.readline().strip() != str(number):
                sys.exit("the server did not acknowledge the insert")
            acknowledged.write(f"{number}\n")


if __name__ == "__main__":
    {"sqlite": write_sqlite, "verify": verify_sqlite, "postgres": write_postgres}[sys.argv[1]](*sys.argv[2:])
