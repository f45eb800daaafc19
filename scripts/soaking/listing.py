#!/usr/bin/env python3
"""Lists a tree: one line of JSON for each name, with its kind, mode, links, time and contents. Run by itself, by the user of the soak.

  listing.py FOLDER

A line is: path, kind, mode, number of links, modification time in nanoseconds, length, SHA-256 of the contents (or the text of a link).
Of a directory the path, kind, mode and time only: the rest is each file system's own. Nothing is ordered but by path.
"""

import hashlib, json, os, stat, sys

PIECE = 1 << 20


def lines(folder):
    for top, folders, files in os.walk(folder, onerror=failed):
        folders.sort()
        for name in sorted(folders + files):
            path = os.path.join(top, name)
            yield line(os.path.relpath(path, folder), path, os.lstat(path))


def failed(error):
    raise error


def line(name, path, seen):
    mode, time = stat.S_IMODE(seen.st_mode), seen.st_mtime_ns
    if stat.S_ISDIR(seen.st_mode):
        return [name, "directory", mode, 0, time, 0, ""]
    if stat.S_ISLNK(seen.st_mode):
        return [name, "link", 0, seen.st_nlink, time, 0, os.readlink(path)]
    length, contents = read(path)
    if length != seen.st_size:
        contents += f", but {length} bytes can be read"
    return [name, "file", mode, seen.st_nlink, time, seen.st_size, contents]


def read(path):
    length, digest = 0, hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(PIECE):
            length += len(piece)
            digest.update(piece)
    return length, digest.hexdigest()


if __name__ == "__main__":
    for entry in lines(sys.argv[1]):
        print(json.dumps(entry))
