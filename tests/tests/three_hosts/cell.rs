//! A cell of one host with its own databases, extended to three hosts with etcd.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use andrew_tests::live::bridge::Bridge;
use andrew_tests::live::etcd::{Etcd, wait_until_healthy};
use andrew_tests::live::files::Pattern;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::residents::{Home, Residents};

use super::server::Server;

pub const CELL: &str = "three.test";
/// Files of one block in the replicated volume.
pub const FILES: u64 = 40;
const NUMBERS: [u8; 3] = [11, 12, 13];

/// A cell of three hosts, and a client.
pub struct ThreeHosts {
    pub mount: Mount,
    pub servers: Vec<Server>,
    pub client: Server,
    pub passphrase: PathBuf,
    /// Their private volume is on the first host.
    pub residents: Residents,
}

impl ThreeHosts {
    /// Follows docs/servers.md, "Three hosts with the databases".
    pub fn grown_from_one(bridge: &Bridge, folder: &Path) -> Self {
        let passphrase = folder.join("passphrase");
        fs::write(&passphrase, "correct horse\n").unwrap();
        fs::set_permissions(&passphrase, fs::Permissions::from_mode(0o600)).unwrap();
        let mut servers: Vec<Server> =
            NUMBERS.iter().map(|number| Server::new(bridge, folder, *number)).collect();
        alone(&mut servers[0], &passphrase);
        let before = told(&servers[0]);
        start_etcd(&mut servers);
        into_etcd(&mut servers, &before);
        let client = Server::new(bridge, folder, 21);
        let mount = volumes(&servers, &client, folder, &passphrase);
        let (state, addresses) = (servers[0].state(), addresses(&servers));
        let (site, top) = ([servers[0].address(), "a"], mount.path().join("on11"));
        let home = Home { state: &state, cell: CELL, servers: &addresses, site: &site, top: &top };
        login(&client, &addresses, &passphrase);
        let residents = Residents::of(client.host.netns(), folder, &home);
        Self { mount, servers, client, passphrase, residents }
    }

    /// The addresses of all, in the format of options.
    pub fn addresses(&self) -> String {
        addresses(&self.servers)
    }

    /// A change at the location or protection service of the cell, with its key, on a host.
    pub fn change(&self, on: usize, words: &[&str]) -> String {
        let addresses = self.addresses();
        self.servers[on].andrew(&[words, &["--servers", &addresses, "--localauth"]].concat())
    }

    /// Logs in on the client's host, at any server that replies.
    pub fn login(&self) -> String {
        login(&self.client, &self.addresses(), &self.passphrase)
    }
}

/// The volumes, users, groups and memberships that a database server lists.
pub fn told(by: &Server) -> String {
    let ask = |words: &[&str]| by.andrew(&[words, &["--servers", by.address(), "--localauth"]].concat());
    let mut all = ask(&["vos", "listvldb"]) + &ask(&["pts", "listentries", "-users", "-groups"]);
    for group in ["friends", "system:administrators"] {
        all += &ask(&["pts", "membership", group]);
    }
    all
}

fn addresses(servers: &[Server]) -> String {
    servers.iter().map(Server::address).collect::<Vec<_>>().join(",")
}

fn login(client: &Server, servers: &str, passphrase: &Path) -> String {
    let file = passphrase.to_str().unwrap();
    client.andrew(&["login", "alice", "--cell", CELL, "--servers", servers, "--passphrase-file", file])
}

/// One host with all services, and entries in each of its databases.
fn alone(first: &mut Server, passphrase: &Path) {
    let address = first.address().to_owned();
    first.serve(&["--listen", &address, "--cell", CELL, "--anyuser", "rlidwka"]);
    first.andrew(&["pts", "createuser", "alice"]);
    first.andrew(&["pts", "creategroup", "friends"]);
    first.andrew(&["pts", "adduser", "alice", "friends"]);
    first.andrew(&["pts", "adduser", "alice", "system:administrators"]);
    first.andrew(&["passwd", "alice", "--passphrase-file", passphrase.to_str().unwrap()]);
    first.andrew(&["vos", "create", "localhost", "a", "on11"]);
}

fn start_etcd(servers: &mut [Server]) {
    let all: Vec<String> = servers.iter().map(|server| server.address().to_owned()).collect();
    for server in servers.iter_mut() {
        server.etcd = Some(Etcd::of_cluster(&server.host, &all, &server.home));
    }
    let endpoint = format!("http://{}:2379", all[0]);
    wait_until_healthy(servers[0].host.netns(), &["--endpoints", &endpoint]);
}

/// The first host moves its databases to etcd; the others join.
fn into_etcd(servers: &mut [Server], before: &str) {
    let quoted = |list: Vec<String>| list.join("\", \"");
    let all = quoted(servers.iter().map(|server| server.address().to_owned()).collect());
    let endpoints = quoted(servers.iter().map(|s| format!("http://{}:2379", s.address())).collect());
    let file = format!(
        "cell = \"{CELL}\"\nlisten = \"{}\"\ndatabase_servers = [\"{all}\"]\n\n[database]\nkind = \"etcd\"\nendpoints = [\"{endpoints}\"]\n",
        servers[0].address()
    );
    let (first, others) = servers.split_first_mut().unwrap();
    fs::write(first.state().join("server.toml"), file).unwrap();
    first.andrew(&["down"]);
    let joins: Vec<_> = others.iter().map(|server| join_file(first, server)).collect();
    finds_no_cell(&others[0], &joins[0]);
    first.serve_as_configured();
    assert_eq!(told(first), before, "etcd has other databases than the host had");
    assert!(first.state().join("db.taken-over").is_dir());
    others[0].serve_as_configured();
    others[1].serve(&["--join", joins[1].to_str().unwrap()]);
    for server in others {
        assert_eq!(told(server), before, "{} says something else", server.address());
    }
    joins.into_iter().for_each(|join| fs::remove_file(join).unwrap());
}

fn join_file(first: &Server, server: &Server) -> PathBuf {
    let join = server.home.join("join.toml");
    first.andrew(&["server", "add", "--listen", server.address(), "--out", join.to_str().unwrap()]);
    join
}

/// A host that is to join before the databases are in etcd founds no cell of its own there.
fn finds_no_cell(server: &Server, join: &Path) {
    let refused = server.try_andrew(&["serve", "--join", join.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("etcd has no databases of three.test"), "{said}");
    assert!(!server.state().join("db").exists());
}

/// A volume on each host, a replicated one, and all of them mounted in the cell's root volume, which is replicated too.
fn volumes(servers: &[Server], client: &Server, folder: &Path, passphrase: &Path) -> Mount {
    let addresses = addresses(servers);
    let vos = |words: &[&str]| {
        servers[0].andrew(&[&["vos"], words, &["--servers", &addresses, "--localauth"]].concat())
    };
    vos(&["create", servers[1].address(), "a", "on12"]);
    vos(&["create", servers[2].address(), "a", "on13"]);
    vos(&["create", servers[0].address(), "a", "replicated"]);
    login(client, &addresses, passphrase);
    {
        let mount = Mount::new(client.host.netns(), CELL, &addresses, folder, "first", &[]);
        login(client, &addresses, passphrase);
        for name in ["on11", "on12", "on13", "replicated"] {
            let point = mount.path().join(name);
            client.andrew(&["fs", "mkmount", point.to_str().unwrap(), name]);
            client.andrew(&["fs", "setacl", point.to_str().unwrap(), "system:anyuser", "rlidwka"]);
        }
        for file in 0..FILES {
            Pattern(file).write(&mount.path().join(format!("replicated/{file}")), 1).unwrap();
        }
    }
    for volume in ["replicated", "root.cell", "root.afs"] {
        for server in servers {
            vos(&["addsite", server.address(), "a", volume]);
        }
        vos(&["release", volume]);
    }
    Mount::new(client.host.netns(), CELL, &addresses, folder, "afs", &["--allow-other"])
}

/// The output of OpenAFS's `udebug` on a database server.
pub fn udebug(from: &Server, address: &str, port: &str) -> String {
    let mut command = from.host.netns().command("udebug");
    command.args([address, port]);
    run(command, seconds(60))
}
