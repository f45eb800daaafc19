#!/usr/bin/env python3
"""Files whose changes are acknowledged by close, fsync or O_SYNC. Run by itself, by the user of the soak.

  keeper.py write FOLDER LEDGER WORD SEED   writes, replaces and removes files until it is killed or its mount is gone
  keeper.py verify FOLDER LEDGER...         says as JSON what is wrong with the files, and how many changes were acknowledged

A ledger is outside of the mount. A line of it is `? NAME HOW WHAT LENGTH` before a change and `! NAME` when the change has returned; HOW is `put`
(rewritten in place), `over` (by another name) or `gone`, WHAT and LENGTH are of the contents.
"""

import errno, hashlib, json, os, random, sys, time

NAMES = 40
LENGTHS = [0, 10, 300, 5000, 40_000, 300_000]
LOST = {errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV}


def body(what, length):
    text = hashlib.sha256(what.encode()).hexdigest().encode()
    return (text * (length // len(text) + 1))[:length]


def write(folder, ledger, word, seed):
    chance, number = random.Random(f"{seed} {word}"), 0
    with open(ledger, "a", buffering=1) as lines:
        while True:
            number += 1
            name, how, length = f"{word}{chance.randrange(NAMES)}", chance.choice(["put", "put", "over", "gone"]), chance.choice(LENGTHS)
            lines.write(f"? {name} {how} {word}.{seed}.{number} {length}\n")
            try:
                change(folder, name, how, body(f"{word}.{seed}.{number}", length), word)
                lines.write(f"! {name}\n")
            except OSError as error:
                if error.errno in LOST:
                    return
                lines.write(f"E {name} {error}\n")
                time.sleep(0.1)


def change(folder, name, how, data, word):
    path = f"{folder}/{name}"
    if how == "gone":
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
    else:
        stored = path if how == "put" else f"{path}.new"
        file = os.open(stored, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | (os.O_SYNC if word == "sync" else 0), 0o644)
        try:
            os.write(file, data)
            if word == "fsync":
                os.fsync(file)
        finally:
            os.close(file)
        if how == "over":
            os.rename(stored, path)
    if word != "close":
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def verify(folder, *ledgers):
    wrong, count = [], 0
    for ledger in ledgers:
        possible = {}
        with open(ledger) as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break
                kind, name, *more = line.split()
                if kind == "?":
                    possible.setdefault(name, [("gone", "", 0)]).append((more[0], more[1], int(more[2])))
                elif kind == "!":
                    count += 1
                    possible[name] = possible[name][-1:]
        wrong += [f"{name} {said}" for name, states in possible.items() for said in [judged(f"{folder}/{name}", states)] if said]
    print(json.dumps({"faults": wrong, "acknowledged": count}))


def judged(path, states):
    """What is wrong with a file that must be in one of these states: the first was acknowledged, the others were begun after it."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        data = None
    for number, (how, what, length) in enumerate(states):
        if how == "gone":
            if data is None:
                return None
        elif data is not None and (data == body(what, length) or number > 0 and how == "put" and body(what, length).startswith(data)):
            return None
    return f"is {'not there' if data is None else f'{len(data)} bytes, {data[:20]}'}, and was to be one of {states[:3]}"


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
