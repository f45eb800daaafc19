"""Settings of an OpenAFS cell, kept in its state folder, and the files that all its hosts share."""

import json, os, sys
from pathlib import Path

from commands import Failure, attempt, run
from network import Bridge, end, namespaces, remove_links, with_variable

from . import afsx
from .host import Host

# Environment variable of every process on a cell's hosts: the prefix.
MARK = "OPENAFS_CELL_PREFIX"
# Last bytes of the addresses of the hosts with servers. The first has the KDC and the databases.
SERVERS = {"srv1": 11, "srv2": 12}


class Cell:
    def __init__(self, state, prefix, net, name="", clients=None):
        self.state, self.prefix, self.net = Path(state).absolute(), prefix, net
        self.name, self.realm, self.clients = name, name.upper(), clients or {}
        self.bridge = Bridge(f"{prefix}br0", net)

    @staticmethod
    def existing(state):
        """The cell of a state folder."""
        file = Path(state) / "cell.json"
        if not file.exists():
            raise Failure(f"{state}: no cell is here (`up` and `client-only` make one)")
        return Cell(state, **json.loads(file.read_text()))

    def make(self):
        """Creates the state folder, and the files that all hosts read."""
        if (self.state / "cell.json").exists():
            raise Failure(f"{self.state}: a cell is here already (`down` removes it)")
        if found := namespaces(f"{self.prefix}-"):
            raise Failure(f"{found[0].name}: hosts with this --prefix are there already (`down` with the same --prefix removes them)")
        for folder in ["hosts", "kdc", "bin"]:
            (self.state / folder).mkdir(parents=True, exist_ok=True)
        settings = {"prefix": self.prefix, "net": self.net, "name": self.name, "clients": self.clients}
        (self.state / "cell.json").write_text(json.dumps(settings))
        names = [f"{self.address(number)} {host}.{self.name} {host}" for host, number in {**SERVERS, **self.clients}.items()]
        (self.state / "hosts.txt").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
        # No server replies there, so that look-ups fail at once.
        (self.state / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        (self.state / "krb5.conf").write_text(KRB5_CONF.format(cell=self.name, realm=self.realm, kdc=self.address(SERVERS["srv1"])))
        afsx.build(self.state / "bin/afsx")

    def address(self, number):
        return f"{self.net}.{number}"

    def host(self, name):
        return Host(self, name)

    def add_client(self, name, number, servers):
        """A host with the configuration of a client of the cell, whose databases are at `servers`."""
        host = self.host(name)
        host.make(number)
        host.configure(servers)
        return host

    def environment(self):
        """Environment with which programs on the hosts find the KDC, and the administrator's tickets."""
        return {**os.environ, MARK: self.prefix, "PATH": f"{self.state}/bin:{os.environ['PATH']}",
                "KRB5CCNAME": f"FILE:{self.state}/admin.cc", "KRB5_CONFIG": f"{self.state}/krb5.conf", "KRB5_KDC_PROFILE": f"{self.state}/kdc/kdc.conf"}

    def remove(self):
        """Removes everything that was made, also by a run that was killed: the prefix identifies it."""
        for host in map(self.host, self.names()):
            try:
                host.shut_down()
            except Failure as failure:
                print(f"{host.name}: {failure}; it is killed", file=sys.stderr)
        for namespace in namespaces(f"{self.prefix}-"):
            namespace.remove()
        # A namespace whose name is gone, with the mount namespace that it was in, still has its processes.
        end(lambda: with_variable(f"{MARK}={self.prefix}"))
        remove_links(lambda link: link.startswith(f"{self.prefix}-v") or link == self.bridge.name)
        if (self.state / "cell.json").exists():
            run("rm", "-r", "--one-file-system", self.state)

    def names(self):
        """Names of the hosts."""
        folder = self.state / "hosts"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def show(self):
        """Prints the hosts, their processes, and the volumes."""
        for host in map(self.host, self.names()):
            print(f"{host.name} {host.address()}")
            print(attempt("ps", "-ww", "-o", "pid=,args=", "-p", ",".join(map(str, host.namespace.processes()))).stdout, end="")
        if "srv1" in self.names():
            print(self.host("srv1").run("vos", "listvldb", "-localauth", "-quiet"), end="")


KRB5_CONF = """\
[libdefaults]
    default_realm = {realm}
    dns_lookup_realm = false
    dns_lookup_kdc = false
    dns_canonicalize_hostname = false
    rdns = false
[realms]
    {realm} = {{
        kdc = {kdc}
    }}
[domain_realm]
    {cell} = {realm}
    .{cell} = {realm}
"""
