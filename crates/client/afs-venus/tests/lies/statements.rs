//! Parts of replies, by the call: what a reply says of objects, volumes and servers, to be falsified.

use std::net::Ipv4Addr;

use afs_wire::fs::{self, CallBack, Status};
use afs_wire::ids::{Fid, VolumeId};
use afs_wire::rpc::{self, Opcode, Request, ServiceId, Streamed};
use afs_wire::vl;
use afs_wire::xdr::{BoundedVec, Encode};

use super::at_drives::{self, DrivePart};

/// A part that may be falsified.
pub enum Part<'a> {
    Fid(&'a mut Fid),
    Status(&'a mut Status),
    Promise(&'a mut CallBack),
    /// The count of bytes that follow.
    Count(&'a mut u64),
    Volume(&'a mut VolumeId),
    Address(&'a mut Ipv4Addr),
    AtDrive(DrivePart<'a>),
}

pub type Falsify<'a> = dyn FnMut(Part<'_>) + 'a;

/// The calls whose replies have parts of these kinds.
macro_rules! statements {
    ($($call:path { $($field:ident: $part:ident),* };)*) => {
        /// A reply with some of its parts falsified; `None` if it has none, or is no such reply.
        pub fn rewritten(service: ServiceId, opcode: Opcode, reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
            match (service, opcode.0) {
                (fs::FetchData64::SERVICE, fs::FetchData64::OPCODE) => fetched(reply, falsify),
                (fs::InlineBulkStatus::SERVICE, fs::InlineBulkStatus::OPCODE) => bulk(reply, falsify),
                (vl::GetEntryByNameU::SERVICE, vl::GetEntryByNameU::OPCODE) => entry(reply, falsify),
                (vl::GetEntryByNameN::SERVICE, vl::GetEntryByNameN::OPCODE) => plain_entry(reply, falsify),
                (vl::GetAddrsU::SERVICE, vl::GetAddrsU::OPCODE) => addresses(reply, falsify),
                $((<$call as Request>::SERVICE, <$call as Request>::OPCODE) => {
                    let mut reply = rpc::decode_reply::<$call>(reply).ok()?;
                    $(falsify(Part::$part(&mut reply.$field));)*
                    Some(reply.to_bytes())
                })*
                _ => at_drives::rewritten(service, opcode, reply, falsify),
            }
        }
    };
}

statements! {
    fs::FetchAcl { status: Status };
    fs::FetchStatus { status: Status, callback: Promise };
    fs::StoreStatus { status: Status };
    fs::StoreAcl { status: Status };
    fs::StoreData64 { status: Status };
    fs::StoreRanges { status: Status };
    fs::Commit { status: Status };
    fs::RemoveFile { dir_status: Status };
    fs::RemoveDir { dir_status: Status };
    fs::CreateFile { fid: Fid, status: Status, dir_status: Status, callback: Promise };
    fs::MakeDir { fid: Fid, status: Status, dir_status: Status, callback: Promise };
    fs::Symlink { fid: Fid, status: Status, dir_status: Status };
    fs::Link { status: Status, dir_status: Status };
    fs::Rename { old_dir_status: Status, new_dir_status: Status };
    fs::TakeLease { status: Status, callback: Promise };
}

/// Bytes of data are between the count and the status.
fn fetched(reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
    let (count, rest) = reply.split_first_chunk::<{ fs::FetchData64::COUNT_LEN }>()?;
    let mut count = u64::from_be_bytes(*count);
    let (data, tail) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    let mut tail = rpc::decode_reply::<fs::FetchData64>(tail).ok()?;
    falsify(Part::Count(&mut count));
    falsify(Part::Status(&mut tail.status));
    falsify(Part::Promise(&mut tail.callback));
    Some([&count.to_bytes(), data, &tail.to_bytes()].concat())
}

fn bulk(reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
    let fs::BulkStatusReply { statuses, callbacks, sync } =
        rpc::decode_reply::<fs::InlineBulkStatus>(reply).ok()?;
    let (mut statuses, mut callbacks) = (statuses.into_vec(), callbacks.into_vec());
    statuses.iter_mut().for_each(|status| falsify(Part::Status(status)));
    callbacks.iter_mut().for_each(|promise| falsify(Part::Promise(promise)));
    let (statuses, callbacks) = (BoundedVec::first_of(statuses), BoundedVec::first_of(callbacks));
    Some(fs::BulkStatusReply { statuses, callbacks, sync }.to_bytes())
}

fn entry(reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
    let mut reply = rpc::decode_reply::<vl::GetEntryByNameU>(reply).ok()?;
    reply.entry.ids.iter_mut().for_each(|id| falsify(Part::Volume(id)));
    Some(reply.to_bytes())
}

fn plain_entry(reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
    let mut reply = rpc::decode_reply::<vl::GetEntryByNameN>(reply).ok()?;
    let mut sites = std::mem::take(&mut reply.entry.sites).into_vec();
    sites.iter_mut().for_each(|site| falsify(Part::Address(&mut site.server)));
    reply.entry.sites = BoundedVec::first_of(sites);
    reply.entry.ids.iter_mut().for_each(|id| falsify(Part::Volume(id)));
    Some(reply.to_bytes())
}

fn addresses(reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
    let mut reply = rpc::decode_reply::<vl::GetAddrsU>(reply).ok()?;
    let mut addresses = std::mem::take(&mut reply.addresses).into_vec();
    addresses.iter_mut().for_each(|address| falsify(Part::Address(address)));
    reply.addresses = BoundedVec::first_of(addresses);
    Some(reply.to_bytes())
}
