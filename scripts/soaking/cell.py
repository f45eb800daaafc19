"""A cell of ours, with its servers and mounts as processes that can be killed and started again."""

import shutil, subprocess, time
from pathlib import Path

from .place import UID, USER, Failed, as_user, environment, run

CELL = "soak.test"
PASSPHRASE = "correct horse battery staple"


class Cell:
    """`andrew up` as one process, or `andrew serve` with mounts as processes of their own, all of one user; with or without leases."""

    def __init__(self, andrew, folder, user, together, leases=False):
        self.andrew, self.folder, self.user, self.leases = andrew, folder, user, leases
        self.state, self.home = folder / "state", folder / "home"
        self.processes, self.starts = {}, 0
        for made in (folder, self.home, folder / "root"):
            made.mkdir(parents=True, exist_ok=True)
            shutil.chown(made, UID, UID)
        if together:
            self.start("up", self.up_words())
        else:
            self.start("server", self.serve_words())
        self.enrol()

    def up_words(self):
        return ["up", *self.served(), "--mount", self.mount_point("up"), *self.how(self.user, self.leases)]

    def serve_words(self):
        return ["serve", *self.served()]

    def served(self):
        return ["--state", self.state, "--cell", CELL, "--listen", "127.0.0.1", "--anyuser", "rlidwka"]

    def how(self, user, leases):
        return [*(["--allow-other"] if user == "root" else []), *(["--lease"] if leases else [])]

    def mount_point(self, name):
        return self.folder / f"{name}.afs"

    def mount(self, name, user=None, leases=None):
        """A mount with a cache of its own, as a process of its own; with leases if the cell's mounts have them, unless told."""
        user = user or self.user
        how = self.how(user, self.leases if leases is None else leases)
        cache = self.folder / f"{name}.cache"
        words = ["mount", "--cell", CELL, "--servers", "127.0.0.1", "--cache", cache, *how, self.mount_point(name)]
        self.start(name, words, user)
        return self.mount_point(name)

    def start(self, name, words, user=None):
        self.starts += 1
        log = self.folder / f"{name}.{self.starts}.log"
        self.processes[name] = Process(self.andrew, words, user or self.user, self.home_of(user or self.user), log)

    def home_of(self, user):
        return self.folder / "root" if user == "root" else self.home

    def again(self, name):
        """Starts what was killed or stopped as it was started before."""
        old = self.processes[name]
        self.start(name, old.words, old.user)

    def kill(self, name):
        self.processes[name].kill()

    def enrol(self):
        """Gives the user of the soak a name and a passphrase in the cell."""
        secret = self.home / "passphrase"
        secret.write_text(PASSPHRASE + "\n")
        secret.chmod(0o600)
        shutil.chown(secret, UID if self.user != "root" else 0)
        self.tool("pts", "createuser", USER, "--state", self.state)
        self.tool("passwd", USER, "--state", self.state, "--passphrase-file", secret)
        shutil.chown(secret, UID)

    def login(self):
        """The user's token, for all mounts of this machine."""
        run(self.andrew, "login", USER, "--cell", CELL, "--servers", "127.0.0.1",
            "--passphrase-file", self.home / "passphrase", user=USER, home=self.home)

    def own_folder(self, mount):
        """A directory of the user's in the cell, where nobody else may write."""
        folder = mount / USER
        run("mkdir", folder, user=USER)
        run(self.andrew, "fs", "setacl", folder, USER, "all", user=USER, home=self.home)
        run(self.andrew, "fs", "setacl", folder, "system:anyuser", "rl", user=USER, home=self.home)
        run("chmod", "700", folder, user=USER)
        return folder

    def tool(self, *words, check=True):
        return run(self.andrew, *words, user=self.user, home=self.home_of(self.user), check=check)

    def checked(self):
        """What `andrew vos check` complains about; empty if nothing."""
        done = self.tool("vos", "check", "--state", self.state, check=False)
        return [] if done.returncode == 0 else [f"vos check: {(done.stdout + done.stderr).strip()}"]

    def stop(self):
        """In good order, mounts first; what did not end well."""
        faults = []
        for name in sorted(self.processes, key=lambda name: name in ("server", "up")):
            status = self.processes[name].stop()
            if status != 0:
                faults.append(f"{name} ended with {status}")
        return faults + self.panics()

    def panics(self):
        logs = sorted(self.folder.glob("*.log"))
        return [f"{log.name}: {line}" for log in logs for line in log.read_text(errors="replace").splitlines() if "panicked" in line]


class Process:
    """One of our processes in the foreground, with a log of its own."""

    def __init__(self, andrew, words, user, home, log):
        self.words, self.user, self.log = words, user, log
        with log.open("wb") as file:
            self.process = subprocess.Popen(as_user([andrew, *words], user), stdout=file, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL, env=environment(home), cwd="/")
        word = "its cache is in" if words[0] == "mount" else "its state is in"
        until(f"'{word}' in {log}", lambda: self.said(word))

    def said(self, word):
        said = self.log.read_text(errors="replace")
        if self.process.poll() is not None:
            raise Failed(f"it ended instead of saying '{word}': {said}")
        return word in said

    def kill(self):
        self.process.kill()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            waits = [(task / "wchan").read_text() for task in Path(f"/proc/{self.process.pid}/task").iterdir()]
            raise Failed(f"{self.words[0]} (process {self.process.pid}) does not end after SIGKILL; its threads wait in {waits}") from None

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.kill()
            return "a kill, as it did not end in two minutes"


def until(what, done, seconds=300):
    """Waits for what other processes do; they have no way to tell this one."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise Failed(f"waited {seconds} s for {what}")
        time.sleep(0.01)
