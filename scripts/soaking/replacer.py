#!/usr/bin/env python3
"""Programs that share a directory of several machines. Run by itself, by the user of the soak.

  replacer.py replace SECONDS FOLDER NUMBER   writes a new file and renames it to `name`, again and again
  replacer.py read SECONDS FOLDER NUMBER      opens, reads and stats `name`, which is always there and always whole
  replacer.py append SECONDS FOLDER NUMBER    adds a line to `log` under a lock of the whole file

Prints how often it did so, and as JSON what went wrong, by kind.
"""

import collections, errno, fcntl, json, os, sys, time

LENGTH = 3000


def replace(folder, number, count):
    new = f"{folder}/new{number}"
    with open(new, "w") as file:
        file.write(chr(ord("a") + count % 26) * LENGTH)
    os.rename(new, f"{folder}/name")


def read(folder, number, count):
    with open(f"{folder}/name", "rb", buffering=0) as file:
        data = file.read()
    os.stat(f"{folder}/name")
    if len(data) != LENGTH or len(set(data)) != 1:
        raise OSError(errno.EIO, f"{len(data)} bytes of {len(set(data))} versions")


def append(folder, number, count):
    with open(f"{folder}/log", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{number} {count}\n")


def main():
    kind, seconds, folder, number = sys.argv[1:]
    work, count, wrong, end = globals()[kind], 0, collections.Counter(), time.monotonic() + float(seconds)
    while time.monotonic() < end:
        try:
            work(folder, number, count)
            count += 1
        except OSError as error:
            wrong[f"{errno.errorcode.get(error.errno, error.errno)}: {error.strerror}"] += 1
    print(json.dumps({"count": count, "wrong": wrong}))


if __name__ == "__main__":
    main()
