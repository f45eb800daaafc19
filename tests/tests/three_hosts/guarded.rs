//! etcd that authenticates its users by certificates and passwords.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use andrew_tests::live::bridge::Bridge;
use andrew_tests::live::etcd::{Certificates, Etcd, etcdctl, wait_until_healthy};
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::scratch::Scratch;
use andrew_tests::live::watchdog::Watchdog;

use super::cell::CELL;
use super::server::Server;

const NUMBER: u8 = 30;

/// Moves databases with a login record into such an etcd, logs in, and restarts; a wrong password is refused.
pub fn check(scratch: &Scratch) {
    let _watchdog = Watchdog::new("etcd_guarded", seconds(300), || ());
    let bridge = Bridge::new(NUMBER);
    let mut server = Server::new(&bridge, scratch.path(), 11);
    let certificates = Certificates::make(&scratch.folder("certificates"));
    server.etcd = Some(Etcd::with_certificates(server.host.netns(), &certificates, &server.home));
    make_user(&server, &certificates);
    let passphrase = secret(&scratch.path().join("passphrase"), "correct horse");
    let address = server.address().to_owned();
    server.serve(&["--listen", &address, "--cell", CELL]);
    server.andrew(&["pts", "createuser", "alice"]);
    server.andrew(&["passwd", "alice", "--passphrase-file", &passphrase]);
    server.andrew(&["down"]);
    configure(&server, &certificates);

    secret(&server.state().join("etcd-password"), "wrong");
    let config = server.state().join("server.toml");
    let refused = server.try_andrew(&["serve", "--config", config.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("authentication failed"), "{said}");
    assert!(server.state().join("db").is_dir(), "the databases were taken away without a place to go to");

    secret(&server.state().join("etcd-password"), "sesame");
    server.serve_as_configured();
    login(&server, &passphrase);
    server.andrew(&[
        "passwd",
        "alice",
        "--passphrase-file",
        &secret(&scratch.path().join("new"), "battery staple"),
    ]);
    server.process.as_mut().unwrap().kill();
    server.serve_as_configured();
    login(&server, &scratch.path().join("new").display().to_string());
    assert!(server.andrew(&["pts", "examine", "alice"]).contains("alice"));
}

fn login(server: &Server, passphrase: &str) {
    let address = server.address();
    let words = ["login", "alice", "--cell", CELL, "--servers", address, "--passphrase-file", passphrase];
    assert!(server.andrew(&words).contains("alice is logged in"));
}

/// A user of etcd who may read and write below the cell's prefix and nothing else.
fn make_user(server: &Server, certificates: &Certificates) {
    let file = |name: &str| certificates.file(name).display().to_string();
    let (authority, certificate, key) = (file("authority.pem"), file("client.pem"), file("client.key"));
    let way = ["--endpoints", "https://127.0.0.1:2379", "--cacert", &authority, "--cert", &certificate];
    let way = [&way[..], &["--key", &key]].concat();
    let netns = server.host.netns();
    wait_until_healthy(netns, &way);
    let prefix = format!("/andrew/{CELL}/");
    for words in [
        &["user", "add", "root:of-etcd"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "andrew:sesame"],
        &["role", "add", "andrew"],
        &["role", "grant-permission", "--prefix", "andrew", "readwrite", &prefix],
        &["user", "grant-role", "andrew", "andrew"],
        &["auth", "enable"],
    ] {
        run_etcdctl(server, &[&way, words].concat());
    }
}

fn run_etcdctl(server: &Server, words: &[&str]) {
    run(etcdctl(server.host.netns(), words), seconds(60));
}

fn configure(server: &Server, certificates: &Certificates) {
    let file = |name: &str| certificates.file(name).display().to_string();
    let text = format!(
        "cell = \"{CELL}\"\nlisten = \"{}\"\n\n[database]\nkind = \"etcd\"\nendpoints = [\"https://127.0.0.1:2379\"]\n\
         user = \"andrew\"\npassword_file = \"etcd-password\"\nauthority = \"{}\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
        server.address(),
        file("authority.pem"),
        file("client.pem"),
        file("client.key")
    );
    fs::write(server.state().join("server.toml"), text).unwrap();
}

/// Writes a file that only its owner may read; returns its path.
fn secret(path: &Path, text: &str) -> String {
    fs::write(path, format!("{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}
