"""Servers of the cell, kept by a bosserver on each of their hosts: databases on the first one, volumes on both."""

import shutil

from commands import need, until

from .cell import SERVERS
from .kdc import Kdc

PROGRAMS = "/usr/lib/openafs"
# Large tables, 64 threads, and 400 waiting calls before clients get VBUSY.
FILE_SERVER = f"{PROGRAMS}/dafileserver -L -p 64 -busyat 400"
NEEDED = {"bosserver": "openafs-fileserver", "vos": "openafs-client", "asetkey": "openafs-krb5", "krb5kdc": "krb5-kdc",
          "kadmin.local": "krb5-admin-server", "kinit": "krb5-user", "rxdebug": "openafs-client"}


def make(cell):
    """Starts the KDC and all servers; returns when each replies."""
    need(NEEDED)
    for name, number in SERVERS.items():
        cell.host(name).make(number)
    kdc, (first, second) = Kdc(cell), map(cell.host, SERVERS)
    kdc.make()
    prepare(first)
    kdc.give_key(first)
    (own(first) / "UserList").write_text("admin\n")
    start(first)
    databases(first)
    second.configure([cell.address(SERVERS["srv1"])])
    give_configuration(first, second)
    start(second)
    for host in [first, second]:
        files(host)
    for host in SERVERS:
        wait(first, "vos", "partinfo", host, "-localauth")
        wait(first, "rxdebug", host, "7000", "-version")


def own(host):
    """The folder of the servers' configuration."""
    return host.folder / "etc-openafs/server"


def prepare(host):
    host.configure([host.cell.address(SERVERS["srv1"])])
    for name in ["ThisCell", "CellServDB"]:
        shutil.copy(host.folder / "etc-openafs" / name, own(host))


def give_configuration(server, host):
    """The servers' key and administrators: also what tools with -localauth need on the host of a client."""
    for name in ["KeyFileExt", "UserList", "ThisCell", "CellServDB"]:
        shutil.copy(own(server) / name, own(host))


def start(host):
    host.begin("bosserver", "bosserver", "-nofork")
    wait(host, "bos", "status", host.name, "-localauth")


def create(host, name, kind, *programs):
    host.run("bos", "create", host.name, name, kind, *programs, "-localauth")


def databases(host):
    for name in ["ptserver", "vlserver"]:
        create(host, name, "simple", f"{PROGRAMS}/{name}")
    # A file server that starts before the databases have a coordinator sleeps half a minute.
    wait(host, "vos", "listvldb", "-localauth")
    wait(host, "pts", "createuser", "admin", "-localauth")


def files(host):
    others = [f"{PROGRAMS}/{name}" for name in ["davolserver", "salvageserver", "dasalvager"]]
    create(host, "dafs", "dafs", FILE_SERVER, *others)


def wait(host, *words):
    until(f"{' '.join(words)} on {host.name}", lambda: host.works(*words))
