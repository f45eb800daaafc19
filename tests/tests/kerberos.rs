//! Kerberos tickets as tokens, in an OpenAFS cell with an MIT KDC.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output};

use afs_krb5::{KerberosOptions, token_from_kerberos};
use afs_rpc::{Level, Security};
use afs_wire::error::AbortCode;
use afs_wire::fs::FetchStatus;
use afs_wire::ids::{CellName, Fid, Rights, Uniquifier, ViceId, VnodeId, VolumeKind};
use afs_wire::pt::GetCps;
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{GetEntryByNameU, GetNewVolumeId, NameText};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::{run, run_any, seconds};
use andrew_tests::live::raw_client::RawClient;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until_equal;
use andrew_tests::live::watchdog::Watchdog;

const CELL: &str = "kerb.test";
/// Environment variable with the addresses of the two servers, for [`as_the_user_of_the_tickets`].
const SERVERS: &str = "ANDREW_TEST_SERVERS";

#[test]
fn openafs_servers_take_the_token_for_its_user() {
    if !all_there(&[Need::Root, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("kerberos");
    let _watchdog = Watchdog::new("kerberos", seconds(600), || ());
    let hosts = Hosts::with_servers(scratch.path(), 15, CELL);

    let none = inside(&hosts, "FILE:/nowhere/krb5cc");
    assert!(said(&none).contains("get some with `kinit`"), "{none:?}");
    // Only alice may read the volume home.alice; only admin may allocate volume numbers.
    for (user, wanted) in [
        ("alice", "location 363546, protection ok, file 127"),
        ("bob", "location 363546, protection 267269, file 0"),
        ("admin", "location ok, protection ok, file 127"),
    ] {
        let cache = hosts.kinit(user);
        let output = inside(&hosts, &cache);
        assert!(said(&output).contains(&format!("user {user}\n")), "{output:?}");
        for level in ["Clear", "Auth", "Crypt"] {
            let line = format!("{level}: {wanted}");
            assert!(
                said(&output).lines().any(|said| said == line),
                "{user}: no '{line}' in {}",
                said(&output)
            );
        }
    }
    our_tools_work_with_their_key_file(&hosts, &scratch);
}

/// A host with the key file of OpenAFS's servers is their administrator with Andrew's tools too.
fn our_tools_work_with_their_key_file(hosts: &Hosts, scratch: &Scratch) {
    let key_file = hosts.state().join("hosts/srv1/etc-openafs/server/KeyFileExt").display().to_string();
    let servers = hosts.address(11);
    let home = scratch.folder("tools");
    let ours = |line: &str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--servers", &servers, "--localauth", "--key-file", &key_file]);
        hosts.andrew_with("venus", "FILE:/nowhere/krb5cc", &home, &words)
    };
    // Only administrators may list or create users.
    ours("pts createuser zoe");
    assert!(ours("pts listentries").contains("zoe"));
    assert!(hosts.tool("cl1", &["pts", "examine", "zoe", "-noauth"]).contains("Name: zoe"));
    assert!(ours("vos listvldb").contains("home.alice"));
    ours("pts delete zoe");
}

/// A file that only alice may read is readable on Andrew's mount of OpenAFS's servers for as long as she is logged in.
#[test]
fn our_mount_shows_a_user_her_files_on_openafs_servers_as_her_own() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("kerberos-mount");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("kerberos_mount", seconds(600), move || unmount_below(&folder));
    let hosts = Hosts::with_servers(scratch.path(), 18, CELL);
    let mount = Mount::new(&hosts.netns("venus"), CELL, &hosts.address(11), scratch.path(), "ours", &[]);
    let home = mount.path().join("alice");
    assert_eq!(fs::read_dir(&home).unwrap_err().kind(), ErrorKind::PermissionDenied);

    let (alice, bob) = (hosts.kinit("alice"), hosts.kinit("bob"));
    let tokens = scratch.folder("tokens");
    let as_bob = hosts.andrew_with("venus", &bob, &tokens, &["login", "--kerberos", "--cell", CELL]);
    assert!(as_bob.contains("bob is logged in"), "{as_bob}");
    assert_eq!(fs::read_dir(&home).unwrap_err().kind(), ErrorKind::PermissionDenied);

    let as_alice = hosts.andrew_with("venus", &alice, &tokens, &["login", "--kerberos", "--cell", CELL]);
    assert!(as_alice.contains("alice is logged in"), "{as_alice}");
    let text = "only for alice\n".repeat(100_000);
    fs::write(home.join("letter"), &text).unwrap();
    assert_eq!(fs::read_to_string(home.join("letter")).unwrap(), text);
    // The server has it, and sends it to her alone.
    let get = |cache: &str| {
        let line = format!("afsx -krb5 {} get home.alice:/letter | cksum", CELL.to_uppercase());
        hosts.tool("cl1", &["env", &format!("KRB5CCNAME={cache}"), "sh", "-c", &line])
    };
    let mut cksum = Command::new("cksum");
    cksum.arg(home.join("letter"));
    let sum = run(cksum, seconds(60));
    assert!(sum.starts_with(get(&alice).trim()), "{sum}");
    assert!(get(&bob).ends_with(" 0\n"));

    let _ = hosts.andrew_with("venus", &alice, &tokens, &["logout", "--cell", CELL]);
    let denied = |path: &Path| File::open(path).err().map(|error| error.kind());
    until_equal("her letter", &Some(ErrorKind::PermissionDenied), || denied(&home.join("letter")));
    until_equal("her folder", &Some(ErrorKind::PermissionDenied), || {
        fs::read_dir(&home).err().map(|error| error.kind())
    });
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs [`as_the_user_of_the_tickets`] on the host `venus`, with the tickets of a cache.
fn inside(hosts: &Hosts, cache: &str) -> Output {
    let mut command = hosts.netns("venus").command(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "kerberos::as_the_user_of_the_tickets", "--nocapture"]);
    command.env("KRB5_CONFIG", hosts.state().join("krb5.conf")).env("KRB5CCNAME", cache);
    command.env(SERVERS, format!("{} {}", hosts.address(11), hosts.address(12)));
    run_any(command, seconds(120))
}

#[test]
#[ignore = "run by the other tests, with tickets and in the network of the servers"]
fn as_the_user_of_the_tickets() {
    let servers = std::env::var(SERVERS).unwrap();
    let mut servers = servers.split(' ').map(|address| address.parse().unwrap());
    let (first, second): (Ipv4Addr, Ipv4Addr) = (servers.next().unwrap(), servers.next().unwrap());
    let cell = CellName::new(CELL).unwrap();
    let made =
        token_from_kerberos(&cell, &KerberosOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    println!("user {}", made.user);
    let client = RawClient::new();
    for level in [Level::Clear, Level::Auth, Level::Crypt] {
        let security = client.security(&made.token.clone().with_level(level));
        println!("{level:?}: {}", answers(&client, first, second, &security));
    }
}

/// The outcome of a call to each service with some security: the abort code of a refusal, or the granted rights.
fn answers(client: &RawClient, first: Ipv4Addr, second: Ipv4Addr, security: &Security) -> String {
    let location = (SocketAddr::from((first, 7003)), ServiceId::LOCATION);
    let protection = (SocketAddr::from((first, 7002)), ServiceId::PROTECTION);
    let file = (SocketAddr::from((second, 7000)), ServiceId::FILE);
    let numbers = client.call(location, security, &GetNewVolumeId { count: 0 });
    let groups = client.call(protection, security, &GetCps { id: ALICE });
    let name = NameText::new(b"home.alice").unwrap();
    let home = client.call(location, security, &GetEntryByNameU { name }).unwrap().entry;
    let fid = Fid { volume: home.id(VolumeKind::ReadWrite), vnode: VnodeId(1), unique: Uniquifier(1) };
    let rights = client.call(file, security, &FetchStatus { fid }).map(|reply| reply.status.caller_access);
    let rights = rights.map_or_else(|code| code.0.to_string(), |Rights(bits)| bits.to_string());
    format!("location {}, protection {}, file {rights}", outcome(&numbers), outcome(&groups))
}

fn outcome<T>(answer: &Result<T, AbortCode>) -> String {
    match answer {
        Ok(_) => "ok".to_owned(),
        Err(code) => code.0.to_string(),
    }
}

/// Alice's number in the cell.
const ALICE: ViceId = ViceId(2);
