//! The overseer service over the wire: every call by every kind of caller, and replies as tools read them.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::protection_rig;

use std::collections::BTreeSet;

use afs_rpc::{CallError, Class, Level};
use afs_server::{Policy, ProtectionOptions, Requirement};
use afs_testkit::Claim;
use afs_wire::bos::{self, RestartKind, RestartTime, RunState, Text};
use afs_wire::error::AbortCode;
use afs_wire::ids::{UnixSeconds, ViceId};
use afs_wire::rpc::{Opcode, Request, ServiceId, opcode_name};
use afs_wire::xdr::{ByteString, Encode};
use protection_rig::{Cell, Role};

const ROLES: [Role; 7] = [
    Role::Anonymous,
    Role::User("alice"),
    Role::Foreign("zoe", "far.org"),
    Role::User("admin"),
    Role::User("dora"),
    Role::CellKey,
    Role::Process,
];

/// alice is a user; dora is an administrator beside admin; zoe is of another cell.
fn cell(seed: u64) -> Cell {
    let cell = Cell::with(seed, ProtectionOptions::default());
    let [_, dora] = ["alice", "dora"].map(|name| cell.user(name));
    cell.join(dora, ViceId::ADMINISTRATORS);
    cell.group("system:authuser@far.org", 0);
    cell.user("zoe@far.org");
    cell
}

fn text(of: &str) -> Text {
    Text::new(of.as_bytes()).unwrap()
}

fn keys() -> bos::CellKeys {
    bos::CellKeys { step: bos::KeyStep::LIST, kind: 1, number: 0, sealed: ByteString::empty() }
}

fn fs() -> Text {
    text("fs")
}

/// A call by each caller: `+` success, `A` not authorized, `X` no such call, `E` beyond the end, `N` not
/// found, `?` anything else.
struct Table {
    cell: Cell,
    seen: BTreeSet<&'static str>,
}

impl Table {
    fn check<R: Request + Clone>(&mut self, request: &R, expected: &str) {
        let one = |role: &Role| match self.cell.code(*role, request.clone()) {
            AbortCode::OK => '+',
            AbortCode::BZACCESS => 'A',
            AbortCode::RXGEN_OPCODE => 'X',
            AbortCode::BZDOM => 'E',
            AbortCode::BZNOENT => 'N',
            _ => '?',
        };
        assert_eq!(ROLES.iter().map(one).collect::<String>(), expected, "{request:?}");
        self.seen.insert(R::NAME);
    }
}

/// Columns: anonymous, a user, a foreign user, two administrators, the cell's key, the cell's process.
#[test]
fn who_may_make_which_call() {
    let mut table = Table { cell: cell(1), seen: BTreeSet::new() };
    macro_rules! rows {
        ($($request:expr, $expected:literal;)*) => { $( table.check(&$request, $expected); )* };
    }
    let (instance, path, name, number) = (fs, || text("/usr/afs/bin/x"), || text("bob"), 3);
    let all = RestartKind::EVERYTHING;
    let created = bos::CreateBnode {
        kind: text("simple"),
        instance: text("x"),
        command1: text("/bin/sleep 1"),
        command2: Text::empty(),
        command3: Text::empty(),
        command4: Text::empty(),
        command5: Text::empty(),
        notifier: text("__NONOTIFIER__"),
    };
    rows! {
        bos::GetStatus { instance: instance() }, "+++++++";
        bos::EnumerateInstance { index: 0 }, "+++++++";
        bos::GetInstanceInfo { instance: instance() }, "+++++++";
        bos::GetInstanceParm { instance: instance(), index: 0 }, "+++++++";
        bos::GetInstanceParm { instance: instance(), index: bos::NOTIFIER }, "EEEEEEE";
        bos::GetInstanceStrings { instance: instance() }, "+++++++";
        bos::GetCellName {}, "+++++++";
        bos::GetCellHost { index: 0 }, "+++++++";
        bos::GetDates { path: path() }, "+++++++";
        bos::GetRestartTime { kind: all }, "+++++++";
        bos::GetRestartTime { kind: RestartKind(3) }, "EEEEEEE";
        bos::GetRestrictedMode {}, "+++++++";
        // Foreign users cannot query the protection database.
        bos::ListSUsers { index: 0 }, "++A++++";
        bos::WaitAll {}, "AAA++++";
        bos::SetStatus { instance: instance(), goal: RunState::SHUT_DOWN }, "AAAXXXX";
        bos::SetTStatus { instance: instance(), goal: RunState::SHUT_DOWN }, "AAAXXXX";
        bos::ShutdownAll {}, "AAAXXXX";
        bos::RestartAll {}, "AAAXXXX";
        bos::StartupAll {}, "AAAXXXX";
        bos::ReBozo {}, "AAAXXXX";
        bos::Restart { instance: instance() }, "AAAXXXX";
        bos::AddSUser { name: name() }, "AAAXXXX";
        bos::DeleteSUser { name: name() }, "AAAXXXX";
        bos::ListKeys { index: 0 }, "AAAEEEE";
        keys(), "AAAAA+A";
        bos::AddKey { number }, "AAAXXXX";
        bos::DeleteKey { number }, "AAAXXXX";
        bos::SetCellName { name: name() }, "AAAXXXX";
        bos::AddCellHost { name: name() }, "AAAXXXX";
        bos::DeleteCellHost { name: name() }, "AAAXXXX";
        bos::SetNoAuthFlag { flag: 1 }, "AAAXXXX";
        bos::SetRestartTime { kind: all, time: RestartTime::NEVER }, "AAAXXXX";
        bos::GetLog { name: text("FileLog") }, "AAANNNN";
        bos::SetRestrictedMode { restricted: 1 }, "AAAXXXX";
        created, "AAAAAAA";
        bos::DeleteBnode { instance: instance() }, "AAAAAAA";
        bos::Install {}, "AAAAAAA";
        bos::UnInstall { path: path() }, "AAAAAAA";
        bos::Exec { command: text("true") }, "AAAAAAA";
        bos::Prune { flags: bos::prune_flags::CORE }, "AAAAAAA";
    }
    let all: BTreeSet<_> = bos::OPCODES.iter().map(|row| row.1).collect();
    assert_eq!(table.seen, all, "every call has a row");
}

#[test]
fn the_calls_of_a_status_command() {
    let cell = cell(2);
    let ask = |index| cell.ask(Role::Anonymous, bos::EnumerateInstance { index });
    let names: Vec<_> = (0..3).map(|index| ask(index).unwrap().instance.to_text()).collect();
    assert_eq!(names, ["ptserver", "vlserver", "fs"]);
    for beyond in [3, i32::MAX, -1, i32::MIN] {
        assert_eq!(ask(beyond).unwrap_err(), CallError::Abort(AbortCode::BZDOM), "{beyond}");
    }
    for (name, kind, auxiliary) in
        [("ptserver", "simple", ""), ("vlserver", "simple", ""), ("fs", "fs", "file server running")]
    {
        let instance = || text(name);
        let status = cell.ask(Role::Anonymous, bos::GetStatus { instance: instance() }).unwrap();
        assert_eq!((status.state, status.auxiliary), (RunState::RUNNING, text(auxiliary)));
        let info = cell.ask(Role::Anonymous, bos::GetInstanceInfo { instance: instance() }).unwrap();
        assert_eq!(info.kind, text(kind));
        let expected = bos::InstanceStatus {
            goal: RunState::RUNNING,
            file_goal: RunState::RUNNING,
            process_started: info.status.process_started,
            process_starts: 1,
            ..bos::InstanceStatus::default()
        };
        assert_eq!(info.status, expected);
        assert_ne!(info.status.process_started, UnixSeconds(0));
        let command = |index| cell.ask(Role::Anonymous, bos::GetInstanceParm { instance: instance(), index });
        assert_eq!(command(0).unwrap().command, text("andrew serve"));
        assert_eq!(command(1).unwrap_err(), CallError::Abort(AbortCode::BZDOM));
        let strings = cell.ask(Role::Anonymous, bos::GetInstanceStrings { instance: instance() }).unwrap();
        assert_eq!(strings.error_name, Text::empty());
    }
}

#[test]
fn each_missing_object_has_its_code() {
    let cell = cell(3);
    let instance = || text("dafs");
    let nobody = Role::Anonymous;
    assert_eq!(cell.code(nobody, bos::GetStatus { instance: instance() }), AbortCode::BZNOENT);
    assert_eq!(cell.code(nobody, bos::GetInstanceInfo { instance: instance() }), AbortCode::BZNOENT);
    assert_eq!(
        cell.code(nobody, bos::GetInstanceParm { instance: instance(), index: 0 }),
        AbortCode::BZNOENT
    );
    assert_eq!(cell.code(nobody, bos::GetInstanceStrings { instance: instance() }), AbortCode::BZNOENT);
    for opcode in [0u32, 79, 117, u32::MAX] {
        assert_eq!(opcode_name(bos::OPCODES, Opcode(opcode)), None);
        let refused = cell.raw(ServiceId::OVERSEER, opcode.to_bytes());
        assert_eq!(refused, Err(CallError::Abort(AbortCode::RXGEN_OPCODE)), "{opcode}");
    }
}

#[test]
fn the_cell_and_its_administrators() {
    let cell = cell(4);
    assert_eq!(cell.ask(Role::Anonymous, bos::GetCellName {}).unwrap().name, text("test.cell"));
    let host = |index| cell.ask(Role::Anonymous, bos::GetCellHost { index });
    assert_eq!(host(0).unwrap().name, text("10.0.0.1"));
    assert_eq!(host(1).unwrap_err(), CallError::Abort(AbortCode::BZDOM));
    let user = |index| cell.ask(Role::Anonymous, bos::ListSUsers { index });
    assert_eq!([user(0), user(1)].map(|found| found.unwrap().name), ["admin", "dora"].map(text));
    for beyond in [2, -1] {
        assert_eq!(user(beyond).unwrap_err(), CallError::Abort(AbortCode(1)), "{beyond}");
    }
    let dates = cell.ask(Role::Anonymous, bos::GetDates { path: text("fileserver") }).unwrap();
    let never = UnixSeconds(0);
    assert_eq!(dates, bos::GetDatesReply { new: never, bak: never, old: never });
    assert_eq!(cell.ask(Role::Anonymous, bos::GetRestrictedMode {}).unwrap().restricted, 1);
}

/// The service id is also the file service's. Status queries are answered whatever that requires.
#[test]
fn requirements_at_the_file_service() {
    let cell = cell(5);
    cell.policy.set(Policy::default().of_service(ServiceId::FILE, Requirement::Crypt));
    assert_eq!(cell.code(Role::Anonymous, bos::GetStatus { instance: fs() }), AbortCode::OK);
    assert_eq!(cell.code(Role::Anonymous, bos::EnumerateInstance { index: 0 }), AbortCode::OK);
    assert_eq!(cell.code(Role::Anonymous, bos::ListSUsers { index: 0 }), AbortCode::BZACCESS);
}

#[test]
fn the_size_of_a_program_that_is_installed_does_not_matter() {
    let cell = cell(6);
    let mut program = bos::Install::OPCODE.to_bytes();
    text("fileserver").encode(&mut program);
    [3_000_000u32, 0o755, 0].encode(&mut program);
    program.resize(3_000_000, b'x');
    let refused = cell.raw(ServiceId::OVERSEER, program);
    assert_eq!(refused, Err(CallError::Abort(AbortCode::BZACCESS)));
}

#[test]
fn refusals_are_recorded() {
    let cell = cell(7);
    cell.recorded();
    cell.code(Role::User("alice"), bos::Exec { command: text("reboot") });
    cell.code(Role::User("admin"), bos::Restart { instance: fs() });
    cell.code(Role::Anonymous, bos::Install {});
    cell.code(Role::Anonymous, bos::ListKeys { index: 0 });
    cell.code(Role::Anonymous, bos::EnumerateInstance { index: 9 });
    assert_eq!(
        cell.recorded(),
        [
            "alice Exec reboot -> 39430",
            "admin Restart fs -> -455",
            "- Install  -> 39430",
            "- ListKeys  -> 39430"
        ]
    );
}

#[test]
fn keys_are_for_holders_of_the_cells_key_over_encrypted_connections() {
    let cell = cell(73);
    for role in ROLES {
        let expected = if role == Role::CellKey { AbortCode::OK } else { AbortCode::BZACCESS };
        assert_eq!(cell.code(role, keys()), expected, "{role:?}");
    }
    for (class, level) in
        [(Class::Rxgk, Level::Auth), (Class::Rxgk, Level::Clear), (Class::Rxkad, Level::Crypt)]
    {
        assert_eq!(cell.code_as(&Claim::of_key().protected(class, level), keys()), AbortCode::BZENCREQ);
    }
}
