//! The protection service over the wire: every call for every kind of caller.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::protection_rig;

use std::net::Ipv4Addr;

use afs_rpc::CallError;
use afs_server::ProtectionOptions;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt::{self, EntryKind, NameChars, NameText, field_mask};
use afs_wire::rpc::{Request, ServiceId, encode_call};
use afs_wire::xdr::{BoundedVec, Encode};
use protection_rig::{Cell, Role, text};

const ROLES: [Role; 9] = [
    Role::Anonymous,
    Role::User("dave"),
    Role::User("carol"),
    Role::User("bob"),
    Role::User("alice"),
    Role::User("admin"),
    Role::CellKey,
    Role::Process,
    Role::Foreign("zoe", "far.org"),
];

const GROUP: ViceId = ViceId(-206);
const INNER: ViceId = ViceId(-207);
const CAROL: ViceId = ViceId(4);
const DAVE: ViceId = ViceId(5);

/// alice 2 owns `alice:g`; in it is `inner`, in that is bob 3, and carol 4. dave 5 is in no group. zoe is of
/// another cell.
fn cell(seed: u64, options: ProtectionOptions, privacy: Option<u32>) -> Cell {
    let cell = Cell::with(seed, options);
    let [_, bob, carol, _] = ["alice", "bob", "carol", "dave"].map(|name| cell.user(name));
    let (group, inner) = (cell.group("alice:g", 2), cell.group("inner", 0));
    assert_eq!((carol, group, inner), (CAROL, GROUP, INNER));
    cell.join(inner, group);
    cell.join(bob, inner);
    cell.join(carol, group);
    cell.group("system:authuser@far.org", 0);
    cell.user("zoe@far.org");
    if let Some(flags) = privacy {
        cell.ask(Role::CellKey, set_fields(GROUP, field_mask::ACCESS, flags)).unwrap();
    }
    cell
}

fn set_fields(id: ViceId, mask: u32, flags: u32) -> pt::SetFieldsEntry {
    pt::SetFieldsEntry { id, mask, flags, group_quota: 5, user_quota: 5, spare1: 0, spare2: 0 }
}

/// Makes the call in a fresh cell as each caller: `+` success, `P` not permitted, `X` no such call, `?`
/// anything else.
fn outcomes<R: Request + Clone>(options: &ProtectionOptions, privacy: Option<u32>, request: &R) -> String {
    let one = |(seed, role): (usize, &Role)| {
        let cell = cell(seed as u64, options.clone(), privacy);
        match cell.code(*role, request.clone()) {
            AbortCode::OK => '+',
            AbortCode::PRPERM => 'P',
            AbortCode::RXGEN_OPCODE => 'X',
            _ => '?',
        }
    };
    ROLES.iter().enumerate().map(one).collect()
}

/// `s-mar`: members may see and change, others may not.
const MEMBERS_ONLY: Option<u32> = Some(0x4b);

fn new_user() -> pt::NewEntry {
    pt::NewEntry { name: text("eve"), kind: EntryKind::USER, owner: ViceId(0) }
}

fn new_group() -> pt::NewEntry {
    pt::NewEntry { name: text("alice:new"), kind: EntryKind::GROUP, owner: ViceId(2) }
}

fn change(id: ViceId, name: &str) -> pt::ChangeEntry {
    pt::ChangeEntry { id, name: text(name), owner: ViceId(0), new_id: ViceId(0) }
}

/// Columns: anonymous, another user, carol, a member through a group, the owner, an administrator, the cell's key, the
/// cell's process, a foreign user.
#[test]
fn who_may_make_which_change() {
    let options = ProtectionOptions::default();
    macro_rules! table {
        ($($privacy:expr, $request:expr, $expected:literal;)*) => { $(
            assert_eq!(outcomes(&options, $privacy, &$request), $expected, "{:?}", $request);
        )* };
    }
    table! {
        None, pt::INewEntry { name: text("eve"), id: ViceId(50), owner: ViceId(0) }, "PPPPP+++P";
        None, pt::INewEntry { name: text("alice:n"), id: ViceId(-209), owner: ViceId(2) }, "P+++++++P";
        None, pt::INewEntry { name: text("alice:n"), id: ViceId(-300), owner: ViceId(2) }, "PPPPP+++P";
        None, new_user(), "PPPPP+++P";
        None, new_group(), "P+++++++P";
        None, pt::AddToGroup { member: DAVE, group: GROUP }, "PPPP++++P";
        MEMBERS_ONLY, pt::AddToGroup { member: DAVE, group: GROUP }, "PP++++++P";
        Some(0x04), pt::AddToGroup { member: DAVE, group: GROUP }, "++++++++P";
        None, pt::RemoveFromGroup { member: INNER, group: GROUP }, "PPPP++++P";
        MEMBERS_ONLY, pt::RemoveFromGroup { member: INNER, group: GROUP }, "PP++++++P";
        None, pt::Delete { id: GROUP }, "PPPP++++P";
        None, pt::Delete { id: CAROL }, "PPPPP+++P";
        None, change(GROUP, "alice:h"), "PPPP++++P";
        None, change(CAROL, "caroline"), "PPPPP+++P";
        None, pt::ChangeEntry { new_id: ViceId(-300), ..change(GROUP, "") }, "PPPPP+++P";
        None, set_fields(GROUP, field_mask::ACCESS, 0), "PPPP++++P";
        None, set_fields(CAROL, field_mask::GROUP_QUOTA, 0), "PPPPP+++P";
        None, set_fields(CAROL, field_mask::ACCESS, 0), "PPPPP+++P";
        None, pt::SetMax { id: ViceId(100), kind: EntryKind::USER }, "PPPPP+++P";
        None, pt::UpdateEntry { id: CAROL, name: text(""), update: pt::EntryUpdate::default() }, "XXXXXXXXX";
    }
}

/// Columns as above.
#[test]
fn who_may_see_what() {
    let options = ProtectionOptions::default();
    let host = Ipv4Addr::new(10, 1, 2, 3);
    macro_rules! table {
        ($($privacy:expr, $request:expr, $expected:literal;)*) => { $(
            assert_eq!(outcomes(&options, $privacy, &$request), $expected, "{:?}", $request);
        )* };
    }
    table! {
        None, pt::NameToId { names: BoundedVec::first_of([NameChars::truncated(b"alice")]) }, "+++++++++";
        None, pt::IdToName { ids: BoundedVec::first_of([CAROL]) }, "++++++++P";
        None, pt::GetCps { id: CAROL }, "PP+PP+++P";
        None, pt::GetCps2 { id: CAROL, host }, "PP+PP+++P";
        None, pt::GetCps { id: GROUP }, "++++++++P";
        None, pt::GetHostCps { host }, "++++++++P";
        None, pt::ListMax {}, "++++++++P";
        None, pt::ListEntry { id: CAROL }, "++++++++P";
        None, pt::ListEntry { id: GROUP }, "++++++++P";
        MEMBERS_ONLY, pt::ListEntry { id: GROUP }, "PP++++++P";
        None, pt::ListElements { id: GROUP }, "++++++++P";
        MEMBERS_ONLY, pt::ListElements { id: GROUP }, "PP++++++P";
        None, pt::ListElements { id: CAROL }, "PP+PP+++P";
        None, pt::ListSuperGroups { id: INNER }, "++++++++P";
        None, pt::IsAMemberOf { member: CAROL, group: GROUP }, "++++++++P";
        Some(0), pt::IsAMemberOf { member: CAROL, group: GROUP }, "PP+P++++P";
        None, pt::ListOwned { owner: ViceId(2), last: 0 }, "PPPP++++P";
        None, pt::ListOwned { owner: ViceId(0), last: 0 }, "PPPPP+++P";
        None, pt::ListEntries { kinds: 3, start: 0 }, "PPPPP+++P";
        None, pt::WaitForChange { known: u64::MAX }, "PPPPP+++P";
        None, pt::WhereIsIt { id: CAROL }, "XXXXXXXXX";
        None, pt::DumpEntry { position: 64 }, "XXXXXXXXX";
    }
}

#[test]
fn options_close_more() {
    let restricted = ProtectionOptions { restricted: true, ..ProtectionOptions::default() };
    assert_eq!(outcomes(&restricted, None, &new_group()), "PPPPP+++P");
    assert_eq!(
        outcomes(&restricted, Some(0xff), &pt::AddToGroup { member: DAVE, group: GROUP }),
        "PPPPP+++P"
    );
    assert_eq!(outcomes(&restricted, None, &pt::Delete { id: GROUP }), "PPPPP+++P");
    assert_eq!(outcomes(&restricted, None, &pt::ListElements { id: GROUP }), "++++++++P");
    let known = ProtectionOptions { restrict_anonymous: true, ..ProtectionOptions::default() };
    let names = BoundedVec::first_of([NameChars::truncated(b"alice")]);
    assert_eq!(outcomes(&known, None, &pt::NameToId { names }), "+++++++++");
    assert_eq!(outcomes(&known, None, &pt::IdToName { ids: BoundedVec::first_of([CAROL]) }), "P+++++++P");
    assert_eq!(outcomes(&known, None, &pt::ListElements { id: GROUP }), "P+++++++P");
    assert_eq!(outcomes(&known, None, &pt::GetHostCps { host: Ipv4Addr::LOCALHOST }), "P+++++++P");
    assert_eq!(outcomes(&known, None, &pt::ListMax {}), "P+++++++P");
}

/// Comparable with arrays of numbers alone, so that the type of an empty one is known.
#[derive(Debug)]
struct Ids(Vec<i32>);

impl<const N: usize> PartialEq<[i32; N]> for Ids {
    fn eq(&self, other: &[i32; N]) -> bool {
        self.0 == other
    }
}

#[test]
fn the_calls_of_tools_in_their_order() {
    let cell = cell(1, ProtectionOptions::default(), None);
    let ids = |names: &[&str]| {
        let names = names.iter().map(|name| NameChars::truncated(name.as_bytes()));
        let reply = cell.ask(Role::Anonymous, pt::NameToId { names: BoundedVec::first_of(names) }).unwrap();
        Ids(reply.ids.iter().map(|id| id.0).collect())
    };
    assert_eq!(ids(&["alice", "Alice", "", "alice:g", "nobody"]), [2, 32766, 32766, -206, 32766]);
    assert_eq!(ids(&[]), []);
    let wanted = BoundedVec::first_of([ViceId(2), ViceId(-4711), ViceId(32766), ViceId(0)]);
    let names = cell.ask(Role::User("dave"), pt::IdToName { ids: wanted }).unwrap().names;
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["alice", "-4711", "anonymous", "0"]);
    let entry = cell.ask(Role::User("bob"), pt::ListEntry { id: GROUP }).unwrap().entry;
    assert_eq!((entry.flags, entry.owner, entry.creator, entry.count), (0x90, ViceId(2), ViceId(-204), 2));
    assert_eq!(entry.name.text(), b"alice:g");
    let cps = cell.ask(Role::User("bob"), pt::GetCps { id: ViceId(3) }).unwrap();
    let cps: Vec<i32> = cps.ids.iter().map(|id| id.0).collect();
    assert_eq!(cps, [-207, -206, -102, -101, 3], "sorted, nested groups included");
    let elements = cell.ask(Role::Anonymous, pt::ListElements { id: GROUP }).unwrap();
    assert_eq!((elements.ids.to_vec(), elements.over), (vec![INNER, CAROL], 0));
    let owned = cell.ask(Role::User("alice"), pt::ListOwned { owner: ViceId(2), last: 0 }).unwrap();
    assert_eq!((owned.ids.to_vec(), owned.last), (vec![GROUP], 0));
    let all = cell.ask(Role::CellKey, pt::ListEntries { kinds: 3, start: 0 }).unwrap();
    assert_eq!((all.entries.len(), all.next), (1 + 1 + 5 + 4 + 3 + 1, -1));
    let is_in = pt::IsAMemberOf { member: ViceId(3), group: GROUP };
    assert!(cell.ask(Role::User("bob"), is_in).unwrap().is_member);
    let max = cell.ask(Role::Anonymous, pt::ListMax {}).unwrap();
    assert_eq!((max.user, max.group), (DAVE, ViceId(-208)));
}

#[test]
fn a_name_of_this_cell_may_stand_behind_a_name() {
    let cell = Cell::new(2);
    cell.user("alice");
    for (name, id) in [("alice@test.cell", 2), ("alice@Test.Realm", 2), ("alice@far.org", 32766)] {
        let names = BoundedVec::first_of([NameChars::truncated(name.as_bytes())]);
        let ids = cell.ask(Role::Anonymous, pt::NameToId { names }).unwrap().ids;
        assert_eq!(ids.to_vec(), [ViceId(id)], "{name}");
    }
}

/// A vulnerability of other servers: foreign callers that the server took for its own administrators.
#[test]
fn a_foreign_caller_is_nobody_here() {
    let cell = cell(3, ProtectionOptions::default(), None);
    for role in [
        Role::Foreign("admin", "far.org"),
        Role::Foreign("system:administrators", "far.org"),
        Role::Foreign("afs", "far.org"),
        Role::Foreign("alice", "far.org"),
    ] {
        assert_eq!(cell.code(role, new_user()), AbortCode::PRPERM, "{role:?}");
        assert_eq!(cell.code(role, new_group()), AbortCode::PRPERM, "{role:?}");
        let own = pt::NewEntry { name: text("x@far.org:g"), kind: EntryKind::GROUP, owner: ViceId(0) };
        assert_eq!(cell.code(role, own), AbortCode::PRPERM, "{role:?}");
        let other = pt::NewEntry { name: text("yves@far.org"), ..new_user() };
        assert_eq!(cell.code(role, other), AbortCode::PRPERM, "{role:?}");
        assert_eq!(cell.code(role, pt::AddToGroup { member: CAROL, group: ViceId(-204) }), AbortCode::PRPERM);
    }
    // What it may do: register under exactly its authenticated name, once.
    let itself = pt::NewEntry { name: text("Yves@far.org"), ..new_user() };
    let role = Role::Foreign("yves", "far.org");
    let id = cell.ask(role, itself.clone()).unwrap().id;
    assert!(id.0 > 0xffff);
    assert_eq!(cell.code(role, itself), AbortCode::PREXIST);
    assert_eq!(cell.code(role, pt::ListEntry { id }), AbortCode::PRPERM, "not even then");
    let entry = cell.ask(Role::CellKey, pt::ListEntry { id }).unwrap().entry;
    assert_eq!(entry.owner, ViceId(-204), "and it does not own itself");
}

#[test]
fn local_names_that_are_not_users_are_refused() {
    let cell = cell(4, ProtectionOptions::default(), None);
    for name in ["nobody", "afs", "system:administrators", "anonymous", "zoe@far.org", "-204", "1"] {
        assert_eq!(cell.code(Role::User(name), pt::ListMax {}), AbortCode::PRPERM, "{name}");
        assert_eq!(cell.code(Role::User(name), new_group()), AbortCode::PRPERM, "{name}");
    }
    assert_eq!(cell.code(Role::User("ADMIN"), new_user()), AbortCode::OK, "names are folded");
}

/// A vulnerability of other servers: lengths on the wire that decide how much memory is allocated.
#[test]
fn lists_and_texts_are_bounded() {
    let cell = cell(5, ProtectionOptions::default(), None);
    let refused = |bytes: Vec<u8>| match cell.raw(ServiceId::PROTECTION, bytes) {
        Err(CallError::Abort(code)) => code,
        other => panic!("{other:?}"),
    };
    for opcode in [pt::NameToId::OPCODE, pt::IdToName::OPCODE] {
        for count in [1u32, 255, 500_000, 500_001, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let mut call = opcode.to_bytes();
            count.encode(&mut call);
            assert_eq!(refused(call), AbortCode::RXGEN_SS_UNMARSHAL, "{opcode} {count}");
        }
    }
    let many = BoundedVec::first_of((0..4001).map(ViceId));
    assert_eq!(cell.code(Role::CellKey, pt::IdToName { ids: many }), AbortCode::PRTOOMANY);
    let enough = BoundedVec::first_of((0..4000).map(ViceId));
    assert_eq!(cell.ask(Role::CellKey, pt::IdToName { ids: enough }).unwrap().names.len(), 4000);
    let names = BoundedVec::first_of((0..300).map(|_| NameChars::default()));
    assert_eq!(refused(encode_call(&pt::NameToId { names })), AbortCode::RXGEN_SS_UNMARSHAL, "over 64 KiB");
    let mut long_name = encode_call(&new_user());
    long_name[4..8].copy_from_slice(&65u32.to_be_bytes());
    long_name.extend([0; 64]);
    assert_eq!(refused(long_name), AbortCode::RXGEN_SS_UNMARSHAL);
    // The longest that can be decoded is too long for a name.
    let long = pt::NewEntry { name: NameText::new([b'a'; 64]).unwrap(), ..new_user() };
    assert_eq!(cell.code(Role::CellKey, long), AbortCode::PRBADNAM);
    let not_text = pt::NewEntry { name: NameText::new([0xff, b'a']).unwrap(), ..new_user() };
    assert_eq!(cell.code(Role::CellKey, not_text), AbortCode::PRBADNAM);
    let without_nul = NameChars::from([b'a'; 64]);
    let ids =
        cell.ask(Role::Anonymous, pt::NameToId { names: BoundedVec::first_of([without_nul]) }).unwrap().ids;
    assert_eq!(ids.to_vec(), [ViceId::ANONYMOUS]);
}

/// A vulnerability of other servers: uninitialised words of a reply.
#[test]
fn unused_words_of_replies_are_zero() {
    let cell = cell(6, ProtectionOptions::default(), None);
    let reply = cell.raw(ServiceId::PROTECTION, encode_call(&pt::ListEntry { id: CAROL })).unwrap();
    assert_eq!(reply.len(), pt::Entry::WIRE_LEN);
    assert!(reply[28..48].iter().all(|byte| *byte == 0), "reserved");
    assert!(reply[48 + 4 * 5..].iter().all(|byte| *byte == 0), "after the name");
    let ids = BoundedVec::first_of([CAROL, ViceId(-4711)]);
    let reply = cell.raw(ServiceId::PROTECTION, encode_call(&pt::IdToName { ids })).unwrap();
    assert_eq!(reply.len(), 4 + 2 * 256);
    assert!(reply[4 + 20..260].iter().chain(&reply[260 + 20..]).all(|byte| *byte == 0));
}

#[test]
fn odd_numbers_have_their_codes() {
    let cell = cell(7, ProtectionOptions::default(), None);
    let key = Role::CellKey;
    let entry = |kind| pt::NewEntry { kind, ..new_user() };
    for (kind, code) in [
        (EntryKind(1), AbortCode::PRBADARG),
        (EntryKind(-1), AbortCode::PRBADARG),
        (EntryKind(i32::MIN), AbortCode::PRBADARG),
        (EntryKind::FOREIGN, AbortCode::PRPERM),
    ] {
        assert_eq!(cell.code(key, entry(kind)), code, "{kind:?}");
    }
    for (id, code) in [
        (0, AbortCode::PRPERM),
        (i32::MIN, AbortCode::PRBADARG),
        (2, AbortCode::PRIDEXIST),
        (i32::MAX, AbortCode::OK),
    ] {
        let new = pt::INewEntry { name: text("frank"), id: ViceId(id), owner: ViceId(0) };
        assert_eq!(cell.code(key, new), code, "{id}");
    }
    let before = pt::INewEntry { name: text("grace"), id: ViceId(i32::MAX - 1), owner: ViceId(0) };
    assert_eq!(cell.code(key, before), AbortCode::OK);
    assert_eq!(cell.code(key, new_user()), AbortCode::PRNOIDS, "the counter does not wrap");
    for id in [0, i32::MIN, i32::MAX - 2, -1] {
        let id = ViceId(id);
        assert_eq!(cell.code(key, pt::ListEntry { id }), AbortCode::PRNOENT);
        assert_eq!(cell.code(key, pt::GetCps { id }), AbortCode::PRNOENT);
        assert_eq!(cell.code(key, pt::Delete { id }), AbortCode::PRNOENT);
        assert_eq!(cell.code(key, pt::AddToGroup { member: id, group: GROUP }), AbortCode::PRNOENT);
        assert_eq!(cell.code(key, pt::AddToGroup { member: CAROL, group: id }), AbortCode::PRNOENT);
    }
    let quota = pt::SetFieldsEntry { group_quota: -1, ..set_fields(CAROL, field_mask::GROUP_QUOTA, 0) };
    assert_eq!(cell.code(key, quota), AbortCode::PRBADARG);
    for start in [i32::MIN, -1, i32::MAX] {
        cell.ask(key, pt::ListEntries { kinds: u32::MAX, start }).unwrap();
        cell.ask(key, pt::ListOwned { owner: ViceId(2), last: start }).unwrap();
    }
    assert_eq!(cell.code(key, pt::SetMax { id: ViceId(-1), kind: EntryKind::USER }), AbortCode::PRBADARG);
    assert_eq!(cell.code(key, pt::SetMax { id: ViceId(1), kind: EntryKind::GROUP }), AbortCode::PRBADARG);
}

#[test]
fn ubik_tools_see_a_healthy_quorum_of_one() {
    let cell = Cell::new(8);
    let reply = cell.raw(ServiceId::UBIK_VOTE, 10_006u32.to_bytes()).unwrap();
    assert_eq!(reply.len(), 4 * (28 + 256 + 1));
    assert_eq!(reply[4 * 24..4 * 25], [0, 0, 0, 0x1f]);
}
