//! Hosts that run OpenAFS's clients and servers, each a network namespace on a bridge.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use super::cell::andrew;
use super::needs::peer;
use super::netns::{Netns, PATH};
use super::process::{run, run_any, seconds};

/// Hosts on a bridge with addresses of their own, run by the `openafs-cell` script; removed when this is dropped.
#[derive(Debug)]
pub struct Hosts {
    state: PathBuf,
    prefix: String,
    net: String,
}

impl Hosts {
    /// `number` (0 to 99) determines the addresses of the hosts, 10.100+number.0.x, and the names of their namespaces.
    fn named(state: &Path, number: u8) -> Self {
        let hosts = Self {
            state: state.join("hosts"),
            prefix: format!("andrew{number}"),
            net: format!("10.{}.0", 100 + u16::from(number)),
        };
        hosts.clear();
        hosts
    }

    /// Client hosts cl1 (.21) and cl2 (.22), configured for a cell with servers on the host `vice` (.5), which exists
    /// and runs nothing.
    #[must_use]
    pub fn around_our_cell(state: &Path, number: u8, cell: &str) -> Self {
        let hosts = Self::named(state, number);
        let vice = hosts.address(5);
        hosts.script(&["client-only", "--cell", cell, "--servers", &vice], seconds(120));
        hosts.host("vice", 5);
        hosts.host("venus", 6);
        hosts
    }

    /// Adds a host for an Andrew server or client, with this last byte of the address.
    pub fn add(&self, host: &str, number: u8) {
        self.script(&["host", host, &number.to_string()], seconds(120));
    }

    /// A whole OpenAFS cell with its servers on srv1 (.11) and srv2 (.12), whose volume `scratch` every user may write,
    /// a client host cl1 (.21), and the host `venus` (.6) for an Andrew client.
    #[must_use]
    pub fn with_servers(state: &Path, number: u8, cell: &str) -> Self {
        let hosts = Self::named(state, number);
        hosts.script(&["up", "--cell", cell, "--clients", "cl1:21"], seconds(240));
        hosts.host("venus", 6);
        hosts
    }

    /// Adds a host with this last byte of the address.
    pub fn host(&self, name: &str, number: u8) {
        self.script(&["host", name, &number.to_string()], seconds(120));
    }

    /// Folder of the hosts' files: `krb5.conf`, `kdc/USER.keytab`, and each host's own files below `hosts/NAME`.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The address of the host with that number.
    #[must_use]
    pub fn address(&self, host: u8) -> String {
        format!("{}.{host}", self.net)
    }

    /// The bridge between the hosts, in the machine's own namespace.
    #[must_use]
    pub fn bridge(&self) -> String {
        format!("{}br0", self.prefix)
    }

    /// The namespace of a host.
    #[must_use]
    pub fn netns(&self, host: &str) -> Netns {
        Netns::existing(&format!("{}-{host}", self.prefix))
    }

    /// Gives a host the keys and the configuration of a server of the cell at `servers`, so that OpenAFS's tools work
    /// there with `-localauth`.
    ///
    /// # Panics
    /// If a file cannot be written.
    pub fn give_keys(&self, host: &str, cell: &str, servers: &str, key_file_ext: &Path) {
        let etc = self.state.join("hosts").join(host).join("etc-openafs");
        let write = |path: PathBuf, bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        };
        let keys = std::fs::read(key_file_ext);
        let keys = keys.unwrap_or_else(|error| panic!("{}: {error}", key_file_ext.display()));
        for folder in [etc.clone(), etc.join("server")] {
            write(folder.join("ThisCell"), format!("{cell}\n").as_bytes());
            write(folder.join("CellServDB"), format!(">{cell} #test\n{servers} #vice.{cell}\n").as_bytes());
        }
        write(etc.join("server/KeyFileExt"), &keys);
    }

    /// Gets a user's tickets from the KDC of an OpenAFS cell, with the user's key; returns the name of their cache.
    #[must_use]
    pub fn kinit(&self, user: &str) -> String {
        let keytab = self.state.join(format!("kdc/{user}.keytab"));
        let cache = format!("FILE:{}", self.state.join(format!("{user}.cc")).display());
        let variable = format!("KRB5CCNAME={cache}");
        self.tool("cl1", &["env", &variable, "kinit", "-k", "-t", &keytab.to_string_lossy(), user]);
        cache
    }

    /// Runs an `andrew` command on a host that must succeed, with the tickets of a cache; tokens are kept below `home`.
    #[must_use]
    pub fn andrew_with(&self, host: &str, cache: &str, home: &Path, words: &[&str]) -> String {
        let mut command = self.netns(host).command(andrew());
        command.args(words).env("XDG_STATE_HOME", home);
        command.env("KRB5_CONFIG", self.state.join("krb5.conf")).env("KRB5CCNAME", cache);
        run(command, seconds(60))
    }

    /// Mounts the cell with OpenAFS's own client on a host.
    pub fn mount(&self, host: &str, folder: &Path) {
        let folder = folder.to_string_lossy();
        self.script(&["mount", "--host", host, "--strict", &folder], seconds(120));
    }

    /// Unmounts such a mount.
    pub fn umount(&self, folder: &Path) {
        self.script(&["umount", &folder.to_string_lossy()], seconds(120));
    }

    /// Runs one of OpenAFS's programs on a host; it must succeed.
    pub fn tool(&self, host: &str, words: &[&str]) -> String {
        self.script(&[&["run", host], words].concat(), seconds(120))
    }

    /// Runs one of OpenAFS's programs on a host, with any outcome.
    pub fn try_tool(&self, host: &str, words: &[&str]) -> Output {
        run_any(self.command(&[&["run", host], words].concat()), seconds(120))
    }

    fn script(&self, words: &[&str], limit: Duration) -> String {
        run(self.command(words), limit)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(peer("openafs-cell"));
        command.env("PATH", PATH).env("LC_ALL", "C");
        command.args(["--prefix", &self.prefix, "--net", &self.net]);
        command.arg("--state").arg(&self.state).args(words);
        command
    }

    /// Removes what an earlier run of this test may have left, by the names of its namespaces.
    fn clear(&self) {
        self.script(&["down"], seconds(120));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = run_any(self.command(&["down"]), seconds(120));
    }
}
