"""A cell of ours and one of OpenAFS's on one bridge, each host in a network namespace, with clients for large files."""

import json, subprocess
from pathlib import Path

import private, processes
from measured import OPENAFS_CELL
from processes import run

PREFIX, NET, CELL = "bb", "10.94.0", "bench.test"
OURS, MINE, OTHER = ("vice", 31), ("venus", 41), ("guest", 42)
# The caches hold the largest file.
CACHE, BLOCKS = "4G", 4 << 20


class Cells:
    """Folders and mounts below `scratch`. The machine sees all mounts; their clients are on the bridge."""

    def __init__(self, program, scratch, is_alone, public=False):
        self.program, self.scratch, self.is_alone, self.public = program, scratch.resolve(), is_alone, public
        self.peers = [OPENAFS_CELL, "--state", self.scratch / "openafs", "--prefix", PREFIX, "--net", NET]
        self.state, self.mounted = self.scratch / "state", []
        self.theirs = self.scratch / "theirs"

    def up(self):
        """Servers on hosts of their own; two mounts of ours, without the data path and with it, on one host, and OpenAFS's on another."""
        address = f"{NET}.{OURS[1]}"
        run([*self.peers, *(["client-only", "--cell", CELL, "--servers", address] if self.is_alone else ["up"])])
        for name, number in [OURS, MINE, OTHER]:
            run([*self.peers, "host", name, number])
        run([*self.peers, "run", OURS[0], self.program, "serve", "--state", self.state, "--cell", CELL,
             "--listen", address, "--anyuser", "rlidwk", "--detach"])
        self.server = processes.of_state(self.program, self.state)
        run([*self.peers, "run", OURS[0], self.program, "vos", "--state", self.state, "setfields", "root.cell", "-maxquota", 0])
        self.off = self.mount("off", CELL, address, "--data-path", "off")
        self.on = self.mount("on", CELL, address)
        if not self.public:
            command = ["nsenter", f"--net=/run/netns/{PREFIX}-{OURS[0]}", self.program]
            self.off = private.of(command, self.state, ["--cell", CELL, "--servers", address], self.off, self.scratch, server=address)
            self.on /= private.VOLUME
        if not self.is_alone:
            # OpenAFS's client in user space stores after close has returned: ours writes what it reads.
            self.writer = self.mount("writer", "example.test", f"{NET}.11") / "scratch"
            run([*self.peers, "mount", "--host", "cl1", "--blocks", BLOCKS, self.theirs])
            self.reader = self.theirs / "example.test/scratch"
            self.their_client = processes.in_namespace(f"{PREFIX}-cl1", ["afsd.fuse"])[0]
            self.their_server = processes.in_namespace(f"{PREFIX}-srv1", ["dafileserver"])[0]

    def mount(self, name, cell, server, *words):
        """A mount of ours on a cell. Its network alone is the host's."""
        folder = self.scratch / name
        self.at(MINE, "mount", "--cell", cell, "--servers", server, "--cache", self.scratch / f"{name}.cache", "--cache-size", CACHE,
                *words, folder, "--detach")
        self.mounted.append(folder)
        return folder

    def openafs_on_ours(self):
        """Our cell, mounted by OpenAFS's client on a host of its own."""
        run([*self.peers, "mount", "--host", "cl1", self.theirs])
        return self.theirs / CELL

    def at(self, host, *words):
        """Our program in the network of a host."""
        return self.inside(host, self.program, *words)

    def inside(self, host, *words):
        return run(["nsenter", f"--net=/run/netns/{PREFIX}-{host[0]}", *words])

    def bulk(self, *words, host=MINE):
        """What `andrew-lab bench bulk` measured in one run."""
        return json.loads(self.inside(host, processes.lab_of(self.program), "--json", "bench", "bulk", "--runs", 1, *words))

    def ours(self, size, readers, *words, host=MINE):
        """Stores by the mount with the data path, fetches by those given."""
        named = [word for reader in readers for word in ("--read-dir", reader)]
        return self.bulk("--dir", self.on, *named, "--size", size, "--pid", f"server={self.server}", *words, host=host)

    def openafs(self, size):
        """Stores by our client, fetches by OpenAFS's."""
        pids = ["--pid", f"client={self.their_client}", "--pid", f"server={self.their_server}"]
        return self.bulk("--dir", self.writer, "--read-dir", self.reader, "--size", size, *pids)

    def down(self):
        quietly = lambda *words: subprocess.run([str(word) for word in words], capture_output=True)
        for folder in self.mounted:
            quietly(self.program, "umount", folder)
        quietly(*self.peers, "umount", self.theirs)
        quietly(self.program, "down", "--state", self.state)
        quietly(*self.peers, "down")
