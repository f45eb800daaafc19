"""Network namespaces with a cable each to a bridge, which leads nowhere else."""

import os, signal, time
from pathlib import Path

from commands import Failure, attempt, run


class Namespace:
    """A network namespace by its name. Its processes are found by the namespace, not by numbers kept in files."""

    def __init__(self, name):
        self.name, self.path = name, Path("/run/netns") / name

    def make(self):
        run("ip", "netns", "add", self.name)
        run("ip", "-n", self.name, "link", "set", "lo", "up")

    def processes(self):
        """Ids of the processes in it."""
        return [int(pid) for pid in attempt("ip", "netns", "pids", self.name).stdout.split()]

    def remove(self):
        """Ends its processes, and removes it. Does nothing if it does not exist."""
        if self.path.exists():
            end(self.processes)
            run("ip", "netns", "del", self.name)


def end(processes):
    """Ends the processes that `processes` returns: by SIGTERM, and by SIGKILL those that remain after five seconds."""
    for number in [signal.SIGTERM, signal.SIGKILL]:
        send(number, processes())
        deadline = time.monotonic() + 5
        while processes() and time.monotonic() < deadline:
            time.sleep(0.05)


def with_variable(variable):
    """Ids of the other processes that were started with this environment variable, NAME=VALUE."""
    found = [path for path in Path("/proc").glob("[0-9]*") if variable.encode() in environment(path).split(b"\0")]
    return [int(path.name) for path in found if int(path.name) != os.getpid()]


def environment(process):
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""  # It ended meanwhile.


def send(number, pids):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # It ended meanwhile.


def namespaces(prefix):
    """All namespaces whose names begin with the prefix."""
    folder = Path("/run/netns")
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    return [Namespace(name) for name in sorted(names) if name.startswith(prefix)]


class Bridge:
    """A bridge in the machine's own namespace. The machine has the address NET.1 on it."""

    def __init__(self, name, net):
        self.name, self.address = name, f"{net}.1"

    def make(self):
        if exists(self.name):
            return
        if f" {self.address}/" in run("ip", "-o", "-4", "addr"):
            raise Failure(f"{self.address} is the machine's address on another link already: choose another --net")
        run("ip", "link", "add", self.name, "type", "bridge")
        run("ip", "addr", "add", f"{self.address}/24", "dev", self.name)
        run("ip", "link", "set", self.name, "up")

    def connect(self, namespace, cable, address):
        """Connects a namespace by a cable of that name, where its end is `eth0` with that address."""
        run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", namespace.name)
        run("ip", "link", "set", cable, "master", self.name, "up")
        run("ip", "-n", namespace.name, "addr", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", namespace.name, "link", "set", "eth0", "up")


def exists(link):
    return Path("/sys/class/net", link).exists()


def remove_links(is_ours):
    """Removes the links with the prefix. A cable is removed with its namespace, but only some time later."""
    for link in Path("/sys/class/net").iterdir():
        if is_ours(link.name):
            attempt("ip", "link", "del", link.name)
