"""Kerberos: MIT's KDC on the first server, with the cell's service and three users, whose keys are in kdc/NAME.keytab."""

import re

USERS = ["admin", "alice", "bob"]
# Numbers of the encryption types: aes128-cts-hmac-sha1-96, aes256-cts-hmac-sha1-96.
TYPES = [17, 18]


class Kdc:
    def __init__(self, cell):
        self.cell, self.host, self.folder = cell, cell.host("srv1"), cell.state / "kdc"
        self.service = f"afs/{cell.name}"

    def make(self):
        text = KDC_CONF.format(realm=self.cell.realm, folder=self.folder)
        (self.folder / "kdc.conf").write_text(text)
        self.host.run("kdb5_util", "create", "-s", "-r", self.cell.realm, "-P", "masterkey")
        for principal in [self.service, *USERS]:
            name = f"{principal}@{self.cell.realm}"
            self.host.run("kadmin.local", "-q", f"addprinc -randkey {name}")
            self.host.run("kadmin.local", "-q", f"ktadd -norandkey -k {self.keytab(principal)} {name}")
        self.host.begin("krb5kdc", "krb5kdc", "-n")

    def keytab(self, principal):
        return self.folder / f"{principal.split('/')[0]}.keytab"

    def give_key(self, host):
        """Writes the key of the cell's service to the file that OpenAFS's servers on a host read."""
        listed = host.run("klist", "-k", self.keytab(self.service))
        version = re.findall(r"^ *(\d+) .*@", listed, re.MULTILINE)[-1]
        for number in TYPES:
            host.run("asetkey", "add", "rxkad_krb5", version, number, self.keytab(self.service), self.service)


KDC_CONF = """\
[kdcdefaults]
    kdc_ports = 88
[realms]
    {realm} = {{
        database_name = {folder}/principal
        key_stash_file = {folder}/stash
        acl_file = {folder}/acl
        supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
        max_life = 24h
    }}
[logging]
    kdc = FILE:{folder}/kdc.log
"""
