"""A cell of ours with drives on hosts of their own, each a network namespace on one bridge, and a mount that reads there."""

import json, os, queue, subprocess, sys, threading, time
from pathlib import Path

import processes
from measured import OPENAFS_CELL
from processes import run

PREFIX, NET = "bd", "10.95.0"
SERVER, CLIENT = ("vice", 31), ("venus", 41)
PIECE = 1 << 20
CACHE = "4G"


class Drive:
    """A drive on a host of its own."""

    def __init__(self, number):
        self.name, self.host, self.address = f"drive{number}", (f"disk{number}", 51 + number), f"{NET}.{51 + number}"


class Cells:
    """Folders and mounts below `scratch`. The machine sees all mounts; the network of each is its host's."""

    def __init__(self, program, scratch, drives, public=False):
        self.program, self.scratch = program, scratch.resolve()
        self.user, self.secret = "system:anyuser" if public else "admin", self.scratch / "secret"
        self.peers = [OPENAFS_CELL, "--state", self.scratch / "hosts", "--prefix", PREFIX, "--net", NET]
        self.state, self.address = self.scratch / "state", f"{NET}.{SERVER[1]}"
        self.drives = [Drive(number) for number in range(drives)]
        self.served, self.mounted = [], []

    def up(self):
        run([*self.peers, "client-only", "--servers", self.address])
        for name, number in [SERVER, CLIENT, *(drive.host for drive in self.drives)]:
            run([*self.peers, "host", name, number])
        # The owner's mount, which may do everything, is in the process of the servers.
        self.writer = self.scratch / "writer"
        self.at(SERVER, "up", "--state", self.state, "--cell", "bench.test", "--listen", self.address, "--mount", self.writer, "--detach")
        self.administer("vos", "setfields", "root.cell", "-maxquota", 0)
        self.secret.write_text("nobody guesses this one\n")
        self.secret.chmod(0o600)
        self.administer("passwd", "admin", "--passphrase-file", self.secret)
        for drive in self.drives:
            directory = self.scratch / drive.name
            said = json.loads(self.at(drive.host, "--json", "drive", "serve", "--dir", directory, "--listen", drive.address, "--detach"))
            self.served.append(processes.in_namespace(f"{PREFIX}-{drive.host[0]}", ["andrew"])[0])
            key = self.scratch / f"{drive.name}.join-key"
            key.touch(mode=0o600)
            key.write_text(said["join_key"])
            self.administer("drive", "add", drive.name, "--address", drive.address, "--join-key", key)
        self.reader = self.mount("reader")
        self.beside = [self.write(f"beside{number}", [drive], 1, 1)[0] for number, drive in enumerate(self.drives)]

    def down(self):
        quietly = lambda *words: subprocess.run([str(word) for word in words], capture_output=True)
        for folder in self.mounted:
            quietly(self.program, "umount", folder)
        quietly(self.program, "down", "--state", self.state)
        quietly("kill", *self.served)
        quietly(*self.peers, "down")

    def at(self, host, *words):
        """Our program in the network of a host."""
        return self.inside(host, self.program, *words)

    def inside(self, host, *words):
        return run(["nsenter", f"--net=/run/netns/{PREFIX}-{host[0]}", *words])

    def administer(self, *words):
        return self.at(SERVER, *words, "--state", self.state)

    def compare_organisations(self, files, mebibytes, at_once):
        """One load through the four organisations of disks, over one of the first three drives, two and three, by a new mount."""
        self.volume("lab", "nasd")
        run([self.program, "fs", "setacl", self.writer / "lab", self.user, "rlidwk"])
        first, *others = [drive.name for drive in self.drives[:3]]
        self.administer("drive", "use", first, *(word for other in others for word in ["--copy", other]))
        folder, server = self.mount("lab-mount") / "lab", processes.of_state(self.program, self.state)
        words = ["--mount", folder, "--server", server, "--files", files, "--size", f"{mebibytes}M", "--at-once", at_once]
        return json.loads(self.inside(SERVER, processes.lab_of(self.program), "--json", "nasd", *words, "--state", self.state))["organisations"]

    def mount(self, name):
        folder = self.scratch / name
        self.at(CLIENT, "mount", "--cell", "bench.test", "--servers", self.address, "--cache", self.scratch / f"{name}.cache",
                "--cache-size", CACHE, folder, "--detach")
        self.mounted.append(folder)
        if self.user == "admin":
            self.at(CLIENT, "login", "admin", "--passphrase-file", self.secret, "--cell", "bench.test", "--servers", self.address)
        return folder

    def volume(self, name, path):
        self.administer("vos", "create", self.address, "a", name, "--maxquota", 0)
        self.administer("vos", "setpath", name, path)
        run([self.program, "fs", "mkmount", self.writer / name, name])
        run([self.program, "fs", "setacl", self.writer / name, "system:anyuser", "none"])
        run([self.program, "fs", "setacl", self.writer / name, self.user, "read"])
        return Path(name)

    def write(self, name, drives, files, mebibytes):
        """A volume with files that are spread over drives in turn; of [None]: on the file server's own disk. The reader's paths."""
        top, block = self.volume(name, "nasd" if drives[0] else "sid"), os.urandom(PIECE)
        paths = [top / f"file{number}" for number in range(files)]
        for number, drive in enumerate(drives):
            self.administer("drive", "use", drive.name if drive else "local")
            for path in paths[number::len(drives)]:
                with open(self.writer / path, "wb") as file:
                    for piece in range(mebibytes):
                        file.write(piece.to_bytes(8, "big") + block[8:])
        return paths

    def write_small(self, name, files):
        """Files of a kibibyte, a hundred in each directory."""
        top = self.volume(name, "nasd")
        paths = [top / f"{number // 100}" / f"{number % 100}" for number in range(files)]
        for path in paths:
            (self.writer / path).parent.mkdir(exist_ok=True)
            (self.writer / path).write_bytes(os.urandom(1024))
        return paths

    def write_pairs(self, name, pairs, bytes, mebibytes, length):
        """Pairs of files on the first drive, each in a directory: of some bytes, and of so many mebibytes with a hole after them up to a length."""
        top = self.volume(name, "nasd")
        self.administer("drive", "use", self.drives[0].name)
        paths = [(top / f"{number}/short", top / f"{number}/long") for number in range(pairs)]
        for short, long in paths:
            (self.writer / short).parent.mkdir()
            (self.writer / short).write_bytes(os.urandom(bytes))
            with open(self.writer / long, "wb") as file:
                for _ in range(mebibytes):
                    file.write(os.urandom(PIECE))
                file.truncate(length)
        return paths

    def first_byte(self, path):
        """Seconds from the beginning of the open of a file to its first byte, once all that other reads began is over."""
        before, now = None, self.counters()["data_path"]
        while before != now:
            time.sleep(0.1)
            before, now = now, self.counters()["data_path"]
        begun = time.monotonic()
        fd = os.open(self.reader / path, os.O_RDONLY)
        try:
            os.read(fd, 1)
            return time.monotonic() - begun
        finally:
            os.close(fd)

    def slow_down(self, mbit):
        """Bounds what the file server and the drives send, and what they receive; None lifts the bound."""
        for name, number in [SERVER, *(drive.host for drive in self.drives)]:
            # Its end of the cable, and the end on the bridge.
            for tc, link in [(["tc", "-n", f"{PREFIX}-{name}"], "eth0"), (["tc"], f"{PREFIX}-v{number}")]:
                if mbit:
                    run([*tc, "qdisc", "replace", "dev", link, "root", "tbf", "rate", f"{mbit}mbit", "burst", "64kb", "latency", "50ms"])
                else:
                    subprocess.run([*tc, "qdisc", "del", "dev", link, "root"], capture_output=True)

    def connect(self, count):
        """Reads a small file at each drive until the bytes come from there: the first read finds no connection."""
        for path in self.beside[:count]:
            deadline = time.monotonic() + 90
            while True:
                before = self.fetched_at_drives()
                self.read([path], readers=1)
                if self.fetched_at_drives() > before:
                    break
                if time.monotonic() > deadline:
                    sys.exit(f"benchmarks-drives: {path} does not come from its drive: {self.counters()['data_path']}")
                time.sleep(0.5)

    def drop(self, paths):
        """What the mount has of the bytes of files is there no more."""
        run([self.program, "fs", "flush", *(self.reader / path for path in paths)])

    def read(self, paths, readers, drop=True):
        """Reads files once, some at a time, after the mount has dropped them; seconds and bytes."""
        if drop:
            self.drop(paths)
        left, moved, failed = queue.SimpleQueue(), [], []
        for path in paths:
            left.put(path)

        def work():
            while True:
                try:
                    path = left.get_nowait()
                except queue.Empty:
                    return
                try:
                    moved.append(whole(self.reader / path))
                except OSError as error:
                    failed.append(f"{path}: {error}")

        threads = [threading.Thread(target=work) for _ in range(readers)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            sys.exit(f"benchmarks-drives: {failed[0]}")
        return time.monotonic() - begun, sum(moved)

    def counters(self):
        return json.loads(run([self.program, "fs", "property", "afs.counters", self.reader]))

    def calls(self):
        return sum(self.counters()["calls"].values())

    def fetched_at_drives(self):
        return self.counters()["data_path"]["fetched_at_drives"]

    def moved_by_server(self):
        """Bytes and packets so far over the link of the file server's host, both directions, with all headers."""
        said = json.loads(run(["ip", "-n", f"{PREFIX}-{SERVER[0]}", "-s", "-j", "link", "show", "eth0"]))
        stats = said[0].get("stats64") or said[0]["stats"]
        return [sum(stats[way][what] for way in ["rx", "tx"]) for what in ["bytes", "packets"]]


def whole(path):
    """Reads a file; the number of its bytes."""
    fd, bytes = os.open(path, os.O_RDONLY), 0
    try:
        while piece := os.read(fd, PIECE):
            bytes += len(piece)
    finally:
        os.close(fd)
    return bytes
