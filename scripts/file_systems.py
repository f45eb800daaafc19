"""What loads of programs are compared on: a directory of the local file system, FUSE alone, Andrew's mounts without and with leases,
and OpenAFS's, those with another client's mount beside."""

import json, os, re, subprocess, sys, time

import private, processes
from measured import OPENAFS_CELL
from processes import run

PORT = 29000
PREFIX = "bm"
LOCAL, FLOOR, OURS, LEASED, THEIRS = "ext4", "FUSE alone", "Andrew", "Andrew, leases", "OpenAFS"


class Local:
    """A directory of this machine."""

    pid = None

    def __init__(self, folder):
        self.mount = folder

    def up(self):
        self.mount.mkdir(parents=True)
        self.beside = self.mount

    def down(self):
        pass


class Floor(Local):
    """A file system in memory behind the kernel's FUSE: what its requests alone cost (the example `floor` of afs-fuse)."""

    def __init__(self, program, folder):
        super().__init__(folder)
        self.program = program

    def up(self):
        super().up()
        self.served = subprocess.Popen([self.program, self.mount])
        while not os.path.ismount(self.mount):
            if self.served.poll() is not None:
                sys.exit(f"{self.program}: it did not mount {self.mount}")
            time.sleep(0.01)

    def down(self):
        subprocess.run(["umount", self.mount], capture_output=True)
        # It has nothing to save, and does not end by itself where the unmount came late.
        self.served.terminate()
        self.served.wait()


class Ours:
    """Our servers in one process, our client in another; a private volume, whose user has logged in, or the public directory of the cell."""

    def __init__(self, program, folder, lease=False, public=False, options=()):
        self.program, self.lease, self.public, self.port = program, lease, public, PORT + 100 * lease
        self.options = [*["--lease"] * lease, *options]
        self.folder, self.mount, self.beside, self.state = folder, folder / "mount", folder / "beside", folder / "state"
        # A token goes to all mounts of a user and cell, and stays with the user.
        self.name, self.env = f"{folder.name}.test", {**os.environ, "XDG_STATE_HOME": str(folder / "home")}

    def up(self):
        words = ["serve", "--state", self.state, "--cell", self.name, "--base-port", self.port, "--anyuser", "rlidwk"]
        self.run(*words, "--detach")
        cell = ["--cell", self.name, "--servers", "127.0.0.1", "--base-port", self.port]
        for mount in (self.mount, self.beside):
            mount.mkdir(parents=True)
            self.run("mount", *cell, "--cache", self.folder / f"cache-{mount.name}", *self.options, mount, "--detach")
        said = json.loads(self.run("--json", "fs", "getfid", self.mount))
        self.root = ".".join(str(said[0][part]) for part in ("volume", "vnode", "unique"))
        self.pid = processes.of_state(self.program, self.state)
        self.server = f"127.0.0.1:{self.port}"
        if not self.public:
            self.mount = private.of([self.program], self.state, cell, self.mount, self.folder, env=self.env)
            self.beside /= private.VOLUME

    def down(self):
        for mount in (self.folder / "mount", self.folder / "beside"):
            subprocess.run([self.program, "umount", mount], capture_output=True)
        subprocess.run([self.program, "down", "--state", self.state], capture_output=True)

    def run(self, *words):
        return run([self.program, *words], env=self.env)

    def lab(self, *words):
        return run([processes.lab_of(self.program), "--json", *words], env=self.env)


class Theirs:
    """OpenAFS's servers and its FUSE client, each in a network namespace."""

    def __init__(self, folder):
        self.script = [str(OPENAFS_CELL), "--state", str(folder / "openafs"), "--prefix", PREFIX, "--net", "10.91.0"]
        self.folders = {"cl1": folder / "mount", "cl2": folder / "beside"}
        self.mount, self.beside = (each / "example.test/scratch" for each in self.folders.values())

    def up(self):
        run([*self.script, "up"])
        for host, mount in self.folders.items():
            mount.mkdir(parents=True)
            run([*self.script, "mount", "--host", host, mount])
        said = run([*self.script, "run", "srv1", "vos", "examine", "scratch", "-noauth"])
        self.root = re.search(r"scratch\s+(\d+)", said).group(1) + ".1.1"
        self.pid = processes.in_namespace(f"{PREFIX}-srv1", ["dafileserver"])[0]
        self.server = "10.91.0.11"

    def down(self):
        for mount in self.folders.values():
            subprocess.run([*self.script, "umount", mount], capture_output=True)
        subprocess.run([*self.script, "down"], capture_output=True)
