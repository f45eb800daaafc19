//! Captured packets of real peers: every call and reply decodes, and encodes to the same bytes.

#![allow(clippy::unwrap_used)]

use afs_wire::acl::NamedAcl;
use afs_wire::dir::{Blob, check, insert, remove};
use afs_wire::ids::{KindNumber, PartitionNumber, Rights, Uniquifier, VnodeId, VolumeId};
use afs_wire::rpc::{Opcode, Request, decode_arguments, decode_reply, encode_call, split_opcode};
use afs_wire::xdr::Encode;
use afs_wire::{cb, fs, vl, vol};

const OPENAFS: [&str; 2] =
    [include_str!("data/openafs-1.8.9.txt"), include_str!("data/openafs-1.8.9-cell.txt")];

/// Calls whose senders leave old memory in unused elements; they encode to zeros instead.
const HAVE_JUNK: &[&str] = &["CreateEntryN"];

struct Message {
    service: &'static str,
    call: bool,
    opcode: u32,
    bytes: Vec<u8>,
}

fn messages() -> Vec<Message> {
    let lines = OPENAFS.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [service, direction, opcode, bytes]: [&'static str; 4] =
                line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            Message {
                service,
                call: direction == "call",
                opcode: opcode.parse().unwrap(),
                bytes: if bytes == "-" { Vec::new() } else { hex(bytes) },
            }
        })
        .collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Decodes and encodes one message; false for a message of another call.
fn round_trip<R: Request>(service: &str, message: &Message) -> bool {
    if (service, R::OPCODE) != (message.service, message.opcode) {
        return false;
    }
    if message.call {
        call_round_trip::<R>(message)
    } else {
        reply_round_trip::<R>(message)
    }
    true
}

fn call_round_trip<R: Request>(message: &Message) {
    let (opcode, arguments) = split_opcode(&message.bytes).unwrap();
    assert_eq!(opcode, Opcode(R::OPCODE));
    let request = decode_arguments::<R>(arguments).unwrap();
    let encoded = encode_call(&request);
    if HAVE_JUNK.contains(&R::NAME) {
        let again = decode_arguments::<R>(&encoded[4..]).unwrap();
        assert_eq!(format!("{again:?}"), format!("{request:?}"));
    } else {
        // Data of stores follows the arguments.
        assert_eq!(encoded, message.bytes[..encoded.len()], "{request:?}");
        assert!(encoded.len() == message.bytes.len() || R::NAME.starts_with("StoreData"), "{request:?}");
    }
}

fn reply_round_trip<R: Request>(message: &Message) {
    // The data of fetches is before the results, after its count.
    let data_len = |count: &[u8]| count.len() + u32::from_be_bytes(*count.last_chunk().unwrap()) as usize;
    let skip = match R::NAME {
        "FetchData" => data_len(&message.bytes[..4]),
        "FetchData64" => data_len(&message.bytes[..8]),
        _ => 0,
    };
    let reply = decode_reply::<R>(&message.bytes[skip..]).unwrap();
    let encoded = reply.to_bytes();
    if HAVE_JUNK.contains(&R::NAME) {
        assert_eq!(format!("{:?}", decode_reply::<R>(&encoded).unwrap()), format!("{reply:?}"));
    } else {
        assert_eq!(encoded, message.bytes[skip..], "{reply:?}");
    }
}

macro_rules! any_of {
    ($message:expr; $($module:ident { $($call:ident)* })*) => {
        false $($(|| round_trip::<$module::$call>(stringify!($module), $message))*)*
    };
}

#[test]
fn every_captured_message_survives() {
    let messages = messages();
    assert!(messages.len() > 120);
    for message in &messages {
        let known = any_of!(message;
            vl {
                CreateEntryN GetAddrs GetAddrsU GetEntryByIdN GetEntryByNameN GetEntryByNameU GetNewVolumeId
                ListAttributesN2
            }
            vol {
                CreateVolume Dump EndTrans ListOneVolume ListVolumes Monitor PartitionInfo64 Restore SetFlags SetInfo
                TransCreate XListOneVolume XListPartitions
            }
            fs {
                CreateFile FetchAcl FetchData FetchData64 FetchStatus GetCapabilities GetTime GetVolumeStatus
                GiveUpCallBacks Link MakeDir OldStoreAcl ReleaseLock RemoveDir RemoveFile Rename SetLock StoreData
                StoreData64 StoreStatus StoreVolumeStatus Symlink
            }
            cb { CallBack InitCallBackState3 TellMeAboutYourself }
        );
        assert!(known, "service {} opcode {}", message.service, message.opcode);
    }
}

fn captured<R: Request>(service: &str, call: bool) -> Message {
    let wanted =
        |message: &Message| (message.service, message.opcode, message.call) == (service, R::OPCODE, call);
    messages().into_iter().find(wanted).unwrap()
}

fn captured_call<R: Request>(service: &str) -> R {
    decode_arguments(&captured::<R>(service, true).bytes[4..]).unwrap()
}

fn captured_reply<R: Request>(service: &str) -> R::Reply {
    decode_reply::<R>(&captured::<R>(service, false).bytes).unwrap()
}

#[test]
fn an_entry_says_where_a_volume_is() {
    let entry = captured_reply::<vl::GetEntryByNameN>("vl").entry;
    assert_eq!(entry.name.text(), b"big.vol");
    assert_eq!(entry.ids[0], VolumeId(536870915));
    assert_eq!(entry.flags, vl::EntryFlags::RW_EXISTS);
    assert_eq!(entry.sites.len(), 1);
    assert_eq!(entry.sites[0].server, std::net::Ipv4Addr::new(10, 77, 0, 1));
    assert_eq!(entry.sites[0].flags, vl::SiteFlags::RW_VOLUME);
    assert_eq!(captured::<vl::GetEntryByNameN>("vl", false).bytes.len(), vl::Entry::WIRE_LEN);
}

#[test]
fn captured_calls_of_tools_are_decoded() {
    let create = captured_call::<vol::CreateVolume>("vol");
    assert_eq!(create.name.as_bytes(), b"big2.vol");
    assert_eq!((create.kind, create.partition), (KindNumber(0), PartitionNumber(0)));
    assert_eq!(create.parent, create.volume, "a volume that is restored gets no root directory");

    let restore = captured_call::<vol::Restore>("vol");
    assert_eq!(restore.cookie.name.text(), b"big2.vol");
    assert_eq!(restore.flags, 1);

    let info = captured_call::<vol::SetInfo>("vol").info;
    assert_eq!(info.quota_max, 5000);
    let left_alone = vol::VolumeInfo { quota_max: 5000, ..vol::VolumeInfo::unchanged() };
    assert_eq!((info.day_use, info.creation_date), (left_alone.day_use, left_alone.creation_date));

    assert_eq!(captured_reply::<vl::ListAttributesN2>("vl").next, -1);
    assert_eq!(captured_call::<vol::TransCreate>("vol").flags, vol::AttachFlags::BUSY);
}

/// The root directory of a new volume, as an OpenAFS server dumped it, equals ours.
#[test]
fn a_new_root_directory_is_the_same_to_the_byte() {
    let root = (VnodeId(1), Uniquifier(1));
    let theirs = include_bytes!("data/openafs-root-directory.bin");
    let mut blob = Blob::from_bytes(theirs.to_vec()).unwrap();
    let summary = check(&mut blob).unwrap();
    assert_eq!((summary.this, summary.parent), (root, root));
    assert_eq!(blob.entries(0).count(), summary.entries as usize + 2);

    let mut ours = Blob::create(root, root);
    for entry in blob.entries(0).filter(|entry| !matches!(entry.name, b"." | b"..")) {
        insert(&mut ours, entry.name, (entry.vnode, entry.unique)).unwrap();
    }
    assert_eq!(ours, blob);
}

#[test]
fn a_file_server_tells_statuses_and_promises() {
    let reply = captured_reply::<fs::FetchStatus>("fs");
    assert_eq!(reply.status.kind, fs::FileKind::Directory);
    assert_eq!((reply.status.parent, reply.status.parent_unique), (VnodeId(1), Uniquifier(1)));
    assert_eq!((reply.callback.version, reply.callback.kind), (1, fs::CallBackKind::SHARED));
    assert!((1..=4 * 3600).contains(&reply.callback.expires_in), "relative seconds");

    let made = captured_reply::<fs::CreateFile>("fs");
    assert!(!made.fid.is_directory() && made.dir_status.kind == fs::FileKind::Directory);
    assert_eq!((made.status.length, made.status.data_version.0), (0, 0));
    assert!(made.status.caller_access.contains(Rights::ADMINISTER));

    let capabilities = captured_reply::<fs::GetCapabilities>("fs").capabilities;
    assert_eq!(capabilities[..], [7]);
    let acl = captured_reply::<fs::FetchAcl>("fs").acl;
    let named = NamedAcl::from_opaque(&acl).unwrap();
    assert!(named.positive.iter().any(|entry| entry.name == "system:administrators"));
    assert_eq!(named.to_opaque().unwrap(), acl);
}

#[test]
fn a_directory_that_was_worked_on_is_sound() {
    let bytes = captured::<fs::FetchData64>("fs", false).bytes;
    let mut blob = Blob::from_bytes(bytes[8..8 + 2048].to_vec()).unwrap();
    let summary = check(&mut blob).unwrap();
    assert_eq!(summary.this, (VnodeId(1), Uniquifier(1)));
}

/// The edits of a client in the captured cell, repeated here, give the directory that the server then sent: each
/// entry in the same slot, every chain in the same order.
#[test]
fn the_same_history_gives_the_same_bytes() {
    let replies = messages().into_iter().filter(|m| (m.service, m.opcode, m.call) == ("fs", 130, false));
    let theirs: Vec<Blob> =
        replies.map(|reply| Blob::from_bytes(reply.bytes[4..4 + 2048].to_vec()).unwrap()).collect();
    let root = (VnodeId(1), Uniquifier(1));
    let mut ours = Blob::create(root, root);
    let target = |vnode, unique| (VnodeId(vnode), Uniquifier(unique));
    insert(&mut ours, b"f1", target(2, 2)).unwrap();
    insert(&mut ours, b"d", target(3, 3)).unwrap();
    insert(&mut ours, b"f2", target(2, 2)).unwrap();
    remove(&mut ours, b"f1").unwrap();
    insert(&mut ours, b"f3", target(2, 2)).unwrap();
    insert(&mut ours, b"sl", target(4, 4)).unwrap();
    remove(&mut ours, b"f3").unwrap();
    remove(&mut ours, b"d").unwrap();
    insert(&mut ours, b"big", target(6, 5)).unwrap();
    assert_eq!(ours, theirs[0]);
    insert(&mut ours, b"g", target(8, 6)).unwrap();
    assert_eq!(ours, theirs[1]);
}

#[test]
fn a_client_says_who_it_is() {
    let told = captured_reply::<cb::TellMeAboutYourself>("cb");
    assert!(!told.addresses.uuid.is_nil());
    assert_eq!(told.capabilities[..], [fs::capability::ERROR_TRANSLATION]);
    assert!(!told.addresses.interfaces.is_empty());
    let broken = captured_call::<cb::CallBack>("cb");
    assert_eq!((broken.fids.len(), broken.callbacks.len()), (1, 0));
}

#[test]
fn a_client_finds_servers_by_uuid() {
    let entry = captured_reply::<vl::GetEntryByNameU>("vl").entry;
    let site = entry.sites[0];
    assert!(site.flags.contains(vl::SiteFlags::UUID));
    let addresses = captured_reply::<vl::GetAddrsU>("vl");
    assert_eq!((addresses.uuid, addresses.unique), (site.server, site.unique));
    assert_eq!(addresses.count, 1);
}

#[test]
fn tools_list_volumes() {
    let volumes = captured_reply::<vol::ListOneVolume>("vol").volumes;
    assert_eq!(volumes.len(), 1);
    assert_eq!((volumes[0].name.text(), volumes[0].status), (&b"scratch"[..], vol::InfoStatus::OK));
    assert!(volumes[0].in_use && !volumes[0].needs_salvage);
    let partition = captured_reply::<vol::PartitionInfo64>("vol").partition;
    assert_eq!(partition.name.text(), b"/vicepa");
    assert!(partition.free < partition.total);
}
