//! Tests of command lines with a protection service on the loopback.

use super::route::Target;
use super::{Args, names};
use crate::commands::openafs_options;
use crate::error::{CommandError, CommandResult};
use afs_db::{EmbeddedProtectionDb, ProtectionDb, bootstrap_protection};
use afs_kv::{Kv, MemoryMedium};
use afs_net::{System, Udp};
use afs_rpc::{Parts, Service, Table};
use afs_server::{Guard, ProtectionNames, ProtectionOptions, ProtectionServer};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt::{
    Entry, IdToName, IdToNameReply, Ids, IdsReply, ListElements, ListEntries, ListEntriesReply, ListEntry,
    ListMax, ListOwned, ListOwnedReply, ListSuperGroups, NameChars, NameToId, NameToIdReply,
};
use afs_wire::rpc::ServiceId;
use afs_wire::xdr::BoundedVec;
use clap::Parser;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

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
        Self::with_service(force, |system| {
            let (db, guard) = protection(system);
            ProtectionServer::service(system.env(), db, guard, ProtectionOptions::default())
        })
    }

    fn with_service(force: bool, service: impl FnOnce(&Arc<System>) -> Arc<dyn Service>) -> Self {
        let system = System::with_workers(1).unwrap();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let bind = || Udp::bind(&system, loopback, afs_rx::Config::default()).unwrap();
        let (server, client) = (bind(), bind());
        server.rx().trust(client.local_addr()).unwrap();
        server.rx().listen(service(&system)).unwrap();
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

/// The database with an administrator.
fn protection(system: &System) -> (Arc<dyn ProtectionDb>, Guard) {
    let medium = Arc::new(MemoryMedium::default());
    let kv = Kv::open(medium, afs_db::TABLES, Parts::inline(), afs_kv::Config::default()).unwrap();
    let db: Arc<dyn ProtectionDb> = Arc::new(EmbeddedProtectionDb::new(kv));
    system.block_on(bootstrap_protection(&*db, "admin")).unwrap();
    let guard = Guard::new(Arc::new(ProtectionNames::new(db.clone(), vec![])));
    (db, guard)
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

/// A protection server whose lists do not end: that of entries has one at each index, those of groups have others each time.
fn endless(_: &Arc<System>) -> Arc<dyn Service> {
    let others = |calls: &AtomicI32| {
        let first = -1_000_000_000 + 200_000 * calls.fetch_add(1, Ordering::Relaxed);
        Ids::first_of((first..first + 200_000).map(ViceId))
    };
    let table = Table::new(ServiceId::PROTECTION, Arc::new(AtomicI32::new(0)))
        .call(move |calls: Arc<AtomicI32>, _, _: ListElements| async move {
            Ok::<_, AbortCode>(IdsReply { ids: others(&calls), over: 0 })
        })
        .call(move |calls: Arc<AtomicI32>, _, _: ListSuperGroups| async move {
            Ok::<_, AbortCode>(IdsReply { ids: others(&calls), over: 0 })
        })
        .call(move |calls: Arc<AtomicI32>, _, call: ListOwned| async move {
            Ok::<_, AbortCode>(ListOwnedReply { ids: others(&calls), last: call.last + 1 })
        })
        .call(|_, _, call: ListEntries| async move {
            let entry = Entry { id: ViceId(2), ..Entry::default() };
            let entries = BoundedVec::first_of([entry]);
            Ok::<_, AbortCode>(ListEntriesReply { entries, next: (call.start + 1) % 3 })
        })
        .call(|_, _, call: NameToId| async move {
            let ids = Ids::first_of(call.names.iter().map(|_| ViceId::ANONYMOUS));
            Ok::<_, AbortCode>(NameToIdReply { ids })
        })
        .call(|_, _, call: IdToName| async move {
            let names = BoundedVec::first_of(call.ids.iter().map(|_| NameChars::default()));
            Ok::<_, AbortCode>(IdToNameReply { names })
        });
    Arc::new(table)
}

#[test]
fn a_list_without_end_is_an_error_that_names_the_server() {
    let mut cell = Cell::with_service(false, endless);
    for (line, why) in [
        ("listentries", "does not end"),
        ("listowned 7", "has more than 1048576 users and groups"),
        ("membership 7 --expandgroups", "has more than 1048576 users and groups"),
    ] {
        let want = format!("pts: the list that server 127.0.0.1 sends {why}");
        assert_eq!(said(cell.pts(line)), want, "{line}");
    }
}
