"""Network namespace and mount namespace of a host, which has its own /etc/openafs, /var/lib/openafs and /vicepX."""

import os, subprocess
from pathlib import Path

from commands import Failure, attempt, begin, run
from network import Namespace

from .mount import Mount, configuration

# Folders below the host's own, and their paths for its programs.
OWN = {"etc-openafs": "/etc/openafs", "var-openafs": "/var/lib/openafs", "log": "/var/log/openafs", "vicepa": "/vicepa", "vicepb": "/vicepb"}
BELOW = ["cache", "etc-openafs/server", "var-openafs/db", "var-openafs/local"]


class Host:
    def __init__(self, cell, name):
        self.cell, self.name, self.folder = cell, name, cell.state / "hosts" / name
        self.namespace = Namespace(f"{cell.prefix}-{name}")
        self.mount = Mount(self)

    def make(self, number):
        """Starts the host with the address that ends in `number`. Does nothing if it is running."""
        if (self.folder / "anchor.pid").exists():
            return
        for name in [*OWN, *BELOW]:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        address = self.cell.address(number)
        (self.folder / "address").write_text(address)
        self.cell.bridge.make()
        self.namespace.make()
        self.cell.bridge.connect(self.namespace, f"{self.cell.prefix}-v{number}", address)
        self.anchor()

    def anchor(self):
        """Starts the process that keeps the mount namespace."""
        binds = {self.folder / name: seen for name, seen in OWN.items()}
        binds[self.cell.state / "hosts.txt"] = "/etc/hosts"
        if os.path.exists("/etc/resolv.conf"):
            binds[self.cell.state / "resolv.conf"] = os.path.realpath("/etc/resolv.conf")
        words = [word for bind in binds.items() for word in bind]
        script, log, root = Path(__file__).with_name("anchor"), self.folder / "anchor.log", self.folder / "root"
        command = ["nsenter", f"--net={self.namespace.path}", "unshare", "--mount", "--uts", "--propagation", "slave", "sh", script]
        process = begin([*command, root, self.name, *words], log, stdout=subprocess.PIPE, env=self.cell.environment())
        if process.stdout.readline() != b"ready\n":
            raise Failure(f"host {self.name} did not start: {log.read_text().strip()}")
        (self.folder / "anchor.pid").write_text(str(process.pid))

    def address(self):
        return (self.folder / "address").read_text()

    def configure(self, servers):
        """The client's configuration: this cell, with its databases at these addresses."""
        for name, text in configuration(self.cell.name, servers, self.folder / "cache", self.mount.BLOCKS).items():
            (self.folder / "etc-openafs" / name).write_text(text)

    def inside(self):
        """The command prefix of a program that runs on this host."""
        file = self.folder / "anchor.pid"
        if not file.exists():
            raise Failure(f"no host {self.name}; there are: {' '.join(self.cell.names()) or 'none'}")
        pid = int(file.read_text())
        # The number may belong to another process by now.
        if pid not in self.namespace.processes():
            raise Failure(f"host {self.name} has ended (`down` removes the cell)")
        return ["nsenter", "-t", str(pid), "--net", "--mount", "--uts", "--root", f"--wdns={os.getcwd()}"]

    def run(self, *words):
        """Output of a program on this host that must succeed."""
        return run(*self.inside(), *words, env=self.cell.environment())

    def works(self, *words):
        """Whether a program on this host succeeds within ten seconds."""
        return attempt(*self.inside(), *words, env=self.cell.environment(), timeout=10).returncode == 0

    def become(self, words):
        """Replaces this process with a program on this host, which has the tickets that the caller names, if any."""
        tickets = {name: os.environ[name] for name in ["KRB5CCNAME"] if name in os.environ}
        os.execvpe("nsenter", [*self.inside(), *words], {**self.cell.environment(), **tickets})

    def begin(self, name, *words):
        """A server on this host, whose output is in the log of that name."""
        begin([*self.inside(), *words], self.folder / f"{name}.log", env=self.cell.environment())

    def shut_down(self):
        """Unmounts, and lets servers end in order."""
        self.mount.remove()
        if (self.folder / "bosserver.log").exists() and self.namespace.processes():
            attempt(*self.inside(), "bos", "shutdown", self.name, "-localauth", "-wait", env=self.cell.environment(), timeout=60)
