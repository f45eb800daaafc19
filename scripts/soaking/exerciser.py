#!/usr/bin/env python3
"""Random work on files of mounts, each against a model of what has to be there. Run by itself, by the user of the soak.

  exerciser.py file SEED SECONDS PATH...    reads, writes, cuts and mappings of one file, seen by each PATH in turn: whoever
                                            goes to the next PATH closes the file and opens it there
  exerciser.py hold SEED SECONDS HERE THERE holds files open in HERE that are rewritten and removed in THERE
  exerciser.py tree SEED SECONDS FOLDER     makes, renames, links and removes names; leaves what is there at the end

Says the seed and the last operations with what is wrong, and ends with 1; else the number of operations.
"""

import collections, errno, mmap, os, random, sys, time

LONGEST = 400_000
# What others do to the same names meanwhile, and what a directory of AFS does not have.
USUAL = {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.EXDEV, errno.EINVAL, errno.ENOTDIR, errno.EISDIR, errno.EPERM, errno.ELOOP, errno.ESTALE}


class Wrong(Exception):
    """The file is not what it has to be."""


class File:
    """One file and its model."""

    def __init__(self, chance, paths):
        self.chance, self.paths, self.at = chance, paths, 0
        self.model, self.last = bytearray(), collections.deque(maxlen=30)
        self.file = os.open(paths[0], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)

    def step(self):
        weights = {self.read: 25, self.write: 25, self.cut: 8, self.map_read: 8, self.map_write: 12, self.sync: 4, self.reopen: 6, self.append: 6, self.rewrite: 1}
        self.chance.choices(list(weights), list(weights.values()))[0]()

    def place(self, within):
        start = self.chance.randrange(within)
        return start, min(start + self.chance.choice([1, 100, 5_000, 70_000]), within)

    def note(self, *words):
        self.last.append(" ".join(map(str, words)))

    def read(self):
        start, end = self.place(LONGEST)
        self.note("read", start, end)
        self.compare(os.pread(self.file, end - start, start), start, end)

    def compare(self, seen, start, end):
        wanted = self.model[start:end]
        if seen != wanted:
            place = next((n for n, (a, b) in enumerate(zip(seen, wanted)) if a != b), min(len(seen), len(wanted)))
            raise Wrong(f"{self.paths[self.at]}: bytes {start}-{end} are wrong from {start + place}: {len(seen)} bytes read, {len(wanted)} are there, "
                        f"{bytes(seen[place:place + 8]).hex()} and not {bytes(wanted[place:place + 8]).hex()}")

    def put(self, start, data):
        if len(self.model) < start + len(data):
            self.model.extend(bytes(start + len(data) - len(self.model)))
        self.model[start:start + len(data)] = data

    def write(self):
        start, end = self.place(LONGEST)
        self.note("write", start, end)
        data = self.chance.randbytes(end - start)
        if os.pwrite(self.file, data, start) != len(data):
            raise Wrong("a short write")
        self.put(start, data)

    def append(self):
        if len(self.model) > LONGEST:
            return
        self.note("append to", len(self.model))
        data = self.chance.randbytes(self.chance.randrange(1, 3000))
        other = os.open(self.paths[self.at], os.O_WRONLY | os.O_APPEND)
        os.write(other, data)
        os.close(other)
        self.put(len(self.model), data)

    def cut(self):
        length = self.chance.choice([0, self.chance.randrange(LONGEST), self.chance.randrange(len(self.model) + 1)])
        self.note("cut", length)
        os.ftruncate(self.file, length)
        del self.model[length:]
        self.model.extend(bytes(length - len(self.model)))

    def map_read(self):
        if self.model:
            start, end = self.place(len(self.model))
            self.note("map and read", start, end)
            with mmap.mmap(self.file, 0, access=mmap.ACCESS_READ) as seen:
                self.compare(seen[start:end], start, end)

    def map_write(self):
        if self.model:
            start, end = self.place(len(self.model))
            self.note("map and write", start, end)
            data = self.chance.randbytes(end - start)
            with mmap.mmap(self.file, 0, access=mmap.ACCESS_WRITE) as mapped:
                mapped[start:end] = data
            self.put(start, data)

    def sync(self):
        self.note("sync")
        os.fsync(self.file)

    def rewrite(self):
        self.note("rewrite")
        self.close()
        self.file = os.open(self.paths[self.at], os.O_RDWR | os.O_TRUNC)
        self.model.clear()

    def close(self):
        os.close(self.file)

    def reopen(self):
        self.close()
        self.at = (self.at + 1) % len(self.paths)
        self.note("close, open", self.paths[self.at])
        self.file = os.open(self.paths[self.at], os.O_RDWR)
        self.whole()

    def whole(self):
        if os.fstat(self.file).st_size != len(self.model):
            raise Wrong(f"{self.paths[self.at]}: {os.fstat(self.file).st_size} bytes long, {len(self.model)} were written")
        self.compare(os.pread(self.file, len(self.model) + 1, 0), 0, len(self.model) + 1)

    def end(self):
        self.close()
        for path in self.paths:
            self.file = os.open(path, os.O_RDONLY)
            self.whole()
            self.close()


class Held:
    """Files that are open in one place while they are changed in the other."""

    def __init__(self, chance, here, there):
        self.chance, self.here, self.there = chance, here, there
        self.open, self.count, self.last = [], 0, collections.deque(maxlen=30)

    def step(self):
        self.count += 1
        name, first = f"held{self.count % 17}", self.chance.randbytes(self.chance.randrange(1, 200_000))
        self.store(name, first)
        file = os.open(os.path.join(self.here, name), os.O_RDONLY)
        self.open.append((file, name, first))
        self.chance.choice([self.store, self.remove, self.replace])(name, self.chance.randbytes(1000))
        for file, name, wanted in self.chance.sample(self.open, min(3, len(self.open))):
            self.compare(file, name, wanted)
        while len(self.open) > 40:
            file, name, wanted = self.open.pop(self.chance.randrange(len(self.open)))
            self.compare(file, name, wanted)
            os.close(file)

    def compare(self, file, name, wanted):
        if os.pread(file, len(wanted) + 1, 0)[:len(wanted)] != wanted:
            raise Wrong(f"{name} was opened in another version than it is read in now")

    def store(self, name, data):
        self.last.append(f"store {name}, {len(data)} bytes")
        with open(os.path.join(self.there, name), "wb") as file:
            file.write(data)

    def replace(self, name, data):
        self.store(name + ".new", data)
        os.rename(os.path.join(self.there, name + ".new"), os.path.join(self.there, name))

    def remove(self, name, _):
        self.last.append(f"remove {name}")
        os.unlink(os.path.join(self.there, name))

    def end(self):
        for file, name, wanted in self.open:
            self.compare(file, name, wanted)
            os.close(file)


class Tree:
    """Names. Others may work on the same ones; what is left is compared afterwards."""

    def __init__(self, chance, folder):
        self.chance, self.top, self.last = chance, folder, collections.deque(maxlen=30)

    def step(self):
        work = self.chance.choice([self.file, self.file, self.folder, self.rename, self.link, self.symlink, self.unlink, self.rmdir, self.chmod, self.utime])
        try:
            work()
        except OSError as error:
            if error.errno not in USUAL:
                raise Wrong(f"{work.__name__}: {error}") from error

    def path(self):
        names = [self.chance.choice("abcdefgh") for _ in range(self.chance.choice([1, 2, 2, 3, 3, 4]))]
        path = os.path.join(self.top, *names)
        self.last.append(path)
        return path

    def file(self):
        with open(self.path(), "wb") as file:
            file.write(self.chance.randbytes(self.chance.choice([0, 10, 3000, 100_000])))

    def folder(self):
        os.makedirs(self.path(), exist_ok=True)

    def rename(self):
        os.rename(self.path(), self.path())

    def link(self):
        path = self.path()
        os.link(path, path[:-1] + self.chance.choice("ijk"))

    def symlink(self):
        os.symlink(self.chance.choice(["a", "../b", "nowhere", "a/b/c"]), self.path())

    def unlink(self):
        os.unlink(self.path())

    def rmdir(self):
        os.rmdir(self.path())

    def chmod(self):
        os.chmod(self.path(), self.chance.choice([0o644, 0o600, 0o755, 0o444]), follow_symlinks=True)

    def utime(self):
        os.utime(self.path(), (10**9, self.chance.randrange(10**9)))

    def end(self):
        """What is left is looked at by others."""


def main(kind, seed, seconds, *paths):
    chance, steps, deadline = random.Random(int(seed)), 0, time.monotonic() + float(seconds)
    work = File(chance, paths) if kind == "file" else {"hold": Held, "tree": Tree}[kind](chance, *paths)
    try:
        while time.monotonic() < deadline:
            work.step()
            steps += 1
        work.end()
    except (Wrong, OSError) as wrong:
        sys.exit(f"{kind}, seed {seed}, operation {steps}: {wrong}; before it: {'; '.join(work.last)}")
    print(steps)


if __name__ == "__main__":
    main(*sys.argv[1:])
