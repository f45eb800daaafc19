//! Tests of command lines with a protection service on the loopback.

use super::route::Target;
use super::{Args, names};
use crate::commands::openafs_options;
use crate::error::{CommandError, CommandResult};
use afs_db::{EmbeddedProtectionDb, ProtectionDb, bootstrap_protection};
use afs_kv::{Kv, MemoryMedium};
use afs_net::{System, Udp};
use afs_rpc::Parts;
use afs_server::{Guard, ProtectionNames, ProtectionOptions, ProtectionServer};
use afs_wire::ids::ViceId;
use afs_wire::pt::{Entry, ListElements, ListEntry, ListMax};
use clap::Parser;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A cell whose administrator runs `pts`.
struct Cell {
    target: Target,
    _server: Udp,
}

impl Cell {
    fn new(force: bool) -> Self {
        let system = System::with_workers(1).unwrap();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let bind = || Udp::bind(&system, loopback, afs_rx::Config::default()).unwrap();
        let (server, client) = (bind(), bind());
        let medium = Arc::new(MemoryMedium::default());
        let kv = Kv::open(medium, afs_db::TABLES, Parts::inline(), afs_kv::Config::default()).unwrap();
        let db: Arc<dyn ProtectionDb> = Arc::new(EmbeddedProtectionDb::new(kv));
        system.block_on(bootstrap_protection(&*db, "admin")).unwrap();
        let guard = Guard::new(Arc::new(ProtectionNames::new(db.clone(), vec![])));
        server.rx().trust(client.local_addr()).unwrap();
        let service = ProtectionServer::service(system.env(), db, guard, ProtectionOptions::default());
        server.rx().listen(service).unwrap();
        let target = Target::at(system, client, server.local_addr(), force);
        Cell { target, _server: server }
    }

    /// Runs a line after `andrew pts`.
    fn pts(&mut self, line: &str) -> CommandResult {
        let words = ["andrew", "pts"].into_iter().chain(line.split(' ')).map(OsString::from);
        let words = openafs_options::long_options(words.collect());
        let parsed = Line::try_parse_from(&words[1..]).map_err(CommandError::usage)?;
        parsed.args.command.run(&mut self.target, true)
    }

    fn entry(&mut self, name: &str) -> Entry {
        let id = names::find(&mut self.target, name).unwrap().id;
        self.target.call(&ListEntry { id }).unwrap().entry
    }

    fn elements(&mut self, name: &str) -> Vec<i32> {
        let id = names::find(&mut self.target, name).unwrap().id;
        self.target.call(&ListElements { id }).unwrap().ids.iter().map(|id| id.0).collect()
    }
}

fn said(outcome: CommandResult) -> String {
    outcome.unwrap_err().message
}

#[test]
fn a_cell_is_peopled_in_openafs_words() {
    let mut cell = Cell::new(false);
    for line in [
        "createuser alice bob",
        "cu -name carol -id 1001",
        "createuser 10.1.2.3",
        "creategroup alice:friends -owner alice",
        "cg -name staff -id -1000",
        "adduser bob alice:friends",
        "adduser -user alice 1001 -group alice:friends staff",
        "adduser staff alice:friends",
        "membership alice alice:friends -1000",
        "mem -nameorid staff -supergroups",
        "membership bob --expandgroups",
        "examine alice -1000 -204",
        "listowned alice",
        "listowned -orphans",
        "listentries",
        "listentries -users -groups",
        "listmax",
        "setfields alice:friends -access s-mar",
        "setfields -nameorid alice bob -groupquota 50",
        "rename alice:friends alice:pals",
        "chown -name alice:pals -owner bob",
        "setmax -user 2000 -group -2000",
        "removeuser -user alice -group staff",
    ] {
        cell.pts(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    assert_eq!(cell.elements("bob:pals"), [-1000, 2, 3, 1001]);
    assert_eq!(cell.elements("staff"), [1001]);
    let pals = cell.entry("bob:pals");
    assert_eq!((pals.flags, pals.owner, pals.count), (0x4b, ViceId(3), 4));
    assert_eq!(cell.entry("alice").group_quota, 50);
    let max = cell.target.call(&ListMax {}).unwrap();
    assert_eq!((max.user, max.group), (ViceId(2000), ViceId(-2000)));
    cell.pts("delete bob 1001").unwrap();
    cell.pts("delete -nameorid bob:pals").unwrap();
    assert!(cell.elements("staff").is_empty());
}

#[test]
fn errors_are_reported_in_one_line() {
    let mut cell = Cell::new(false);
    cell.pts("createuser alice").unwrap();
    cell.pts("creategroup staff").unwrap();
    cell.pts("adduser alice staff").unwrap();
    for (line, want) in [
        ("adduser alice staff", "pts: Entry for id already exists; unable to add user alice to group staff"),
        ("createuser alice", "pts: Entry for name already exists; unable to create user alice"),
        (
            "createuser a:b",
            "pts: Not a valid name: a user's has 1 to 63 bytes without blanks and colons, and is no number; a group's is OWNER:NAME, with the name of its owner; unable to create user a:b",
        ),
        ("delete 77", "pts: User or group doesn't exist; unable to delete user 77"),
        ("chown alice alice", "pts: Permission denied; unable to change owner of alice to alice"),
        ("createuser a b -id 1 2 3", "pts: there are more ids than names; give one for each"),
        ("setmax", "pts: setmax needs a number; give -user, -group, or both"),
        ("adduser alice", "pts: adduser needs a user and a group; see `andrew pts adduser --help`"),
        (
            "setfields alice",
            "pts: setfields needs something to set; give -access, -groupquota or -foreignquota",
        ),
    ] {
        let outcome = cell.pts(line);
        assert_eq!(said(outcome), want, "{line}");
    }
    let nobody = cell.pts("examine nobody").unwrap_err();
    assert!(nobody.message.starts_with("pts: User or group doesn't exist so couldn't look up id for nobody"));
    assert_eq!(nobody.status, CommandError::USAGE);
}

#[test]
fn force_goes_on_and_still_fails() {
    let mut cell = Cell::new(true);
    assert_eq!(said(cell.pts("createuser admin alice")), "pts: some were refused");
    assert_eq!(cell.entry("alice").id, ViceId(2));
}
