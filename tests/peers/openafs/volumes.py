"""Users and first volumes of the cell: root.afs and root.cell with replicas, scratch for every user, home.alice for alice."""

from .kdc import Kdc


def make(cell):
    host = cell.host("srv1")
    local = lambda *words: host.run(*words, "-localauth")
    local("pts", "adduser", "admin", "system:administrators")
    for user in ["alice", "bob"]:
        local("pts", "createuser", user)
    host.run("kinit", "-k", "-t", Kdc(cell).keytab("admin"), "admin")

    volume(host, "srv1", "root.afs", "system:anyuser", "read")
    volume(host, "srv1", "root.cell", "system:anyuser", "read")
    volume(host, "srv1", "scratch", "system:anyuser", "all", "system:authuser", "rl")
    volume(host, "srv2", "home.alice", "alice", "all")
    afsx(host, "mkm", "root.afs", cell.name, "root.cell")
    afsx(host, "mkm", "root.cell", "scratch", "scratch")
    afsx(host, "mkm", "root.cell", "alice", "home.alice")
    for name in ["root.afs", "root.cell"]:
        for server in ["srv1", "srv2"]:
            local("vos", "addsite", server, "a", name)
        local("vos", "release", name)


def volume(host, server, name, *rights):
    host.run("vos", "create", server, "a", name, "-maxquota", 0, "-localauth")
    afsx(host, "sa", name, *rights)


def afsx(host, *words):
    """By Kerberos, as admin: for the file server the user of -localauth is anonymous."""
    host.run("afsx", "-krb5", host.cell.realm, *words)
