//! etcd servers, alone or in a cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::bridge::Host;
use super::netns::{Netns, PATH};
use super::process::{Daemon, run, run_any, seconds};
use super::wait::until;

/// An etcd server; stopped when this is dropped.
#[derive(Debug)]
pub struct Etcd {
    process: Daemon,
    words: Vec<String>,
    log: PathBuf,
}

/// Certificates for one server and its clients, made by `openssl`: PEM files in one folder.
#[derive(Debug)]
pub struct Certificates(PathBuf);

impl Etcd {
    /// Starts the server of `host` in a cluster of all these addresses, with its data below `folder`.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn of_cluster(host: &Host, addresses: &[String], folder: &Path) -> Self {
        let at = |address: &str, port: u16| format!("http://{address}:{port}");
        let name = |address: &str| format!("h{}", address.rsplit('.').next().unwrap_or_default());
        let cluster: Vec<String> =
            addresses.iter().map(|address| format!("{}={}", name(address), at(address, 2380))).collect();
        let url = |port| at(host.address(), port);
        let words = [
            ("--name", name(host.address())),
            ("--data-dir", folder.join("etcd").display().to_string()),
            ("--listen-client-urls", url(2379)),
            ("--advertise-client-urls", url(2379)),
            ("--listen-peer-urls", url(2380)),
            ("--initial-advertise-peer-urls", url(2380)),
            ("--initial-cluster", cluster.join(",")),
        ];
        Self::start(host.netns(), &words, folder)
    }

    /// Starts a single server on 127.0.0.1.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn alone(netns: &Netns, folder: &Path) -> Self {
        let words = [
            ("--name", "alone".to_owned()),
            ("--data-dir", folder.join("etcd").display().to_string()),
            ("--listen-client-urls", "http://127.0.0.1:2379".to_owned()),
            ("--advertise-client-urls", "http://127.0.0.1:2379".to_owned()),
            ("--listen-peer-urls", "http://127.0.0.1:2380".to_owned()),
        ];
        Self::start(netns, &words, folder)
    }

    /// Starts a single server on 127.0.0.1 that has a certificate and requires one of its clients.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn with_certificates(netns: &Netns, certificates: &Certificates, folder: &Path) -> Self {
        let file = |name: &str| certificates.file(name).display().to_string();
        let words = [
            ("--name", "alone".to_owned()),
            ("--data-dir", folder.join("etcd").display().to_string()),
            ("--listen-client-urls", "https://127.0.0.1:2379".to_owned()),
            ("--advertise-client-urls", "https://127.0.0.1:2379".to_owned()),
            ("--listen-peer-urls", "http://127.0.0.1:2380".to_owned()),
            ("--cert-file", file("server.pem")),
            ("--key-file", file("server.key")),
            ("--trusted-ca-file", file("authority.pem")),
        ];
        let mut all = words.iter().map(|(word, value)| format!("{word}={value}")).collect::<Vec<_>>();
        all.push("--client-cert-auth".to_owned());
        Self::run(netns, all, folder)
    }

    fn start(netns: &Netns, words: &[(&str, String)], folder: &Path) -> Self {
        Self::run(netns, words.iter().map(|(word, value)| format!("{word}={value}")).collect(), folder)
    }

    fn run(netns: &Netns, words: Vec<String>, folder: &Path) -> Self {
        let log = folder.join("etcd.log");
        Self { process: launch(netns, &words, &log), words, log }
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again with its data.
    pub fn again(&mut self, netns: &Netns) {
        self.process = launch(netns, &self.words, &self.log);
    }
}

/// Waits until an etcd accepts changes.
///
/// # Panics
/// If it does not within two minutes.
pub fn wait_until_healthy(netns: &Netns, words: &[&str]) {
    until("an etcd that takes changes", seconds(120), || {
        let health = run_any(etcdctl(netns, &[words, &["endpoint", "health"]].concat()), seconds(30));
        health.status.success().then_some(())
    });
}

/// The command `etcdctl` on a host.
#[must_use]
pub fn etcdctl(netns: &Netns, words: &[&str]) -> Command {
    let mut command = netns.command("etcdctl");
    command.env("ETCDCTL_API", "3").args(words);
    command
}

impl Certificates {
    /// Creates certificates of an authority, a server at 127.0.0.1, and a client.
    ///
    /// # Panics
    /// If a file cannot be written, or `openssl` fails.
    #[must_use]
    pub fn make(folder: &Path) -> Self {
        let made = Self(folder.to_owned());
        let openssl = |words: &[&str]| {
            let mut command = Command::new("openssl");
            command.env("PATH", PATH).current_dir(folder).args(words);
            run(command, seconds(60));
        };
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
        let authority = ["-keyout", "authority.key", "-out", "authority.pem", "-subj", "/O=authority"];
        openssl(&[&["req", "-x509"], &key[..], &authority].concat());
        for (name, extension) in [
            ("server", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n"),
            ("client", "extendedKeyUsage=clientAuth\n"),
        ] {
            let [secret, request, answer, extra] =
                ["key", "csr", "pem", "ext"].map(|ending| format!("{name}.{ending}"));
            let written = fs::write(folder.join(&extra), extension);
            written.unwrap_or_else(|error| panic!("{extra}: {error}"));
            // Without a common name: etcd would take it for a user name, which its JSON gateway does not permit.
            let subject = format!("/O={name}");
            let asked = ["-keyout", &secret, "-out", &request, "-subj", &subject];
            openssl(&[&["req"], &key[..5], &asked].concat());
            let signed =
                ["-in", &request, "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"];
            openssl(
                &[&["x509", "-req", "-days", "2"], &signed[..], &["-out", &answer, "-extfile", &extra]]
                    .concat(),
            );
        }
        made
    }

    /// Path of one of the files: `authority.pem`, and `.pem` and `.key` of `server` and `client`.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

fn launch(netns: &Netns, words: &[String], log: &Path) -> Daemon {
    let mut command = netns.command("etcd");
    command.args(words);
    Daemon::start(command, log)
}
