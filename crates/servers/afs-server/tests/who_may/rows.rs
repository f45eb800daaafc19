//! Tables of the calls of the location and volume services, with the callers that may make each.

use std::net::Ipv4Addr;

use afs_wire::ids::{Fid, KindNumber, PartitionNumber, UnixSeconds, Uuid, VolumeId};
use afs_wire::rpc::{Request, encode_call};
use afs_wire::vl;
use afs_wire::vol::{self, AttachFlags, TransactionId, VolumeFlags};
use afs_wire::xdr::BoundedVec;

use crate::who_may::scene::{ADMINISTRATORS, EVERYBODY};

/// A call with the group of callers that may make it.
pub struct Row {
    pub call: &'static str,
    pub allowed: &'static str,
    pub request: Vec<u8>,
}

pub fn row<R: Request>(allowed: &'static str, request: R) -> Row {
    Row { call: R::NAME, allowed, request: encode_call(&request) }
}

pub fn location_rows() -> Vec<Row> {
    let text = || vl::NameText::new(b"nothing".as_slice()).unwrap();
    let (volume, kind, release) = (VolumeId(77), KindNumber::ANY, vl::ReleaseType::ALL);
    let entry = vl::Entry::default;
    let attributes = vl::Attributes::default;
    let page = |pattern: &[u8]| vl::ListAttributesN2 {
        attributes: attributes(),
        name: vl::NameText::new(pattern).unwrap(),
        start: 0,
    };
    let query = vl::ServerKey::Index(1).into();
    let uuid = Uuid([3; 16]);
    vec![
        row(ADMINISTRATORS, vl::CreateEntry { entry: entry().into() }),
        row(ADMINISTRATORS, vl::CreateEntryN { entry: entry() }),
        row(ADMINISTRATORS, vl::DeleteEntry { volume, kind }),
        row(ADMINISTRATORS, vl::ReplaceEntry { volume, kind, entry: entry().into(), release }),
        row(ADMINISTRATORS, vl::ReplaceEntryN { volume, kind, entry: entry(), release }),
        row(ADMINISTRATORS, vl::ExchangeNames { one: volume, other: volume }),
        row(ADMINISTRATORS, vl::UpdateEntry { volume, kind, update: Default::default(), release }),
        row(ADMINISTRATORS, vl::UpdateEntryByName { name: text(), update: Default::default(), release }),
        row(ADMINISTRATORS, vl::SetLock { volume, kind, operation: vl::LockOperation::MOVE }),
        row(ADMINISTRATORS, vl::ReleaseLock { volume, kind, release }),
        row(ADMINISTRATORS, vl::GetNewVolumeId { count: 1 }),
        row(ADMINISTRATORS, vl::ChangeAddr { old: Ipv4Addr::LOCALHOST, new: Ipv4Addr::LOCALHOST }),
        row(ADMINISTRATORS, vl::RegisterAddrs { uuid, spare: 0, addresses: BoundedVec::new() }),
        row(ADMINISTRATORS, page(b"root.*")),
        row(EVERYBODY, page(b".*")),
        row(EVERYBODY, vl::GetEntryById { volume, kind }),
        row(EVERYBODY, vl::GetEntryByIdN { volume, kind }),
        row(EVERYBODY, vl::GetEntryByNameO { name: text() }),
        row(EVERYBODY, vl::GetEntryByNameN { name: text() }),
        row(EVERYBODY, vl::GetEntryByNameU { name: text() }),
        row(EVERYBODY, vl::ListEntry { previous: 0 }),
        row(EVERYBODY, vl::ListEntryN { previous: 0 }),
        row(EVERYBODY, vl::ListAttributes { attributes: attributes() }),
        row(EVERYBODY, vl::ListAttributesN { attributes: attributes() }),
        row(EVERYBODY, vl::LinkedList { attributes: attributes() }),
        row(EVERYBODY, vl::LinkedListN { attributes: attributes() }),
        row(EVERYBODY, vl::GetAddrs { handle: 0, spare: 0 }),
        row(EVERYBODY, vl::GetAddrsU { query }),
        row(EVERYBODY, vl::GetStats {}),
        row(EVERYBODY, vl::ProbeServer {}),
    ]
}

/// Opcodes without a call.
pub const UNKNOWN_LOCATION_CALLS: &[&str] = &[
    "CreateEntryU",
    "GetEntryByIDU",
    "ReplaceEntryU",
    "ListEntryU",
    "ListAttributesU",
    "LinkedListU",
    "YFSVL.GetEndpoints",
    "YFSVL.GetCellName",
    "GetCapabilities",
];

pub fn volume_rows() -> Vec<Row> {
    let text = || vol::NameText::new(b"nothing".as_slice()).unwrap();
    let slots = || vol::PartitionText::new(b"/vicepa".as_slice()).unwrap();
    let (transaction, partition) = (TransactionId(9999), PartitionNumber(0));
    let (volume, none, kind, date) = (VolumeId(77), VolumeId(0), KindNumber(0), UnixSeconds(1));
    let info = vol::VolumeInfo::unchanged();
    // The last caller creates the volume for good; it is refused to the others before its name counts.
    let create = vol::CreateVolume { partition, name: text(), kind: KindNumber(9), parent: none, volume };
    let ids = vol::SetIdsTypes { transaction, name: text(), kind, parent: none, clone: none, backup: none };
    let cookie = vol::RestoreCookie::default();
    let destination = vol::Destination { host: Ipv4Addr::LOCALHOST, port: 7005, security: 1 };
    let destination_transaction = transaction;
    let forward = vol::Forward { transaction, from_date: date, destination, destination_transaction, cookie };
    let (replicas, spare) = (BoundedVec::new(), 0);
    let forward_multiple = vol::ForwardMultiple { transaction, from_date: date, replicas, spare, cookie };
    vec![
        row(ADMINISTRATORS, create),
        row(ADMINISTRATORS, vol::DeleteVolume { transaction }),
        row(ADMINISTRATORS, vol::NukeVolume { partition, volume }),
        row(ADMINISTRATORS, vol::TransCreate { volume, partition, flags: AttachFlags::BUSY }),
        row(ADMINISTRATORS, vol::EndTrans { transaction }),
        row(ADMINISTRATORS, vol::SetFlags { transaction, flags: VolumeFlags(0) }),
        row(ADMINISTRATORS, vol::SetInfo { transaction, info }),
        row(ADMINISTRATORS, vol::SetDate { transaction, date }),
        row(ADMINISTRATORS, ids),
        row(ADMINISTRATORS, vol::SetForwarding { transaction, site: Ipv4Addr::LOCALHOST }),
        row(EVERYBODY, vol::GetFlags { transaction }),
        row(EVERYBODY, vol::GetName { transaction }),
        row(EVERYBODY, vol::GetStatus { transaction }),
        row(EVERYBODY, vol::SignalRestore { name: text(), kind, parent: none, clone: none }),
        row(EVERYBODY, vol::Monitor {}),
        row(EVERYBODY, vol::ListVolumes { partition, flags: 1 }),
        row(EVERYBODY, vol::XListVolumes { partition, flags: 1 }),
        row(EVERYBODY, vol::ListOneVolume { partition, volume }),
        row(EVERYBODY, vol::XListOneVolume { partition, volume }),
        row(EVERYBODY, vol::ListPartitions {}),
        row(EVERYBODY, vol::XListPartitions {}),
        row(EVERYBODY, vol::PartitionInfo { name: slots() }),
        row(EVERYBODY, vol::PartitionInfo64 { name: slots() }),
        row(EVERYBODY, vol::GetNthVolume { index: 0 }),
        row(EVERYBODY, vol::ListSnapshots { volume }),
        row(EVERYBODY, vol::DumpFormats {}),
        row(EVERYBODY, vol::GetRoute { volume }),
        row(ADMINISTRATORS, vol::SetRoute { transaction, route: vol::DataRoute::Calls }),
        row(EVERYBODY, vol::GetPlacement { volume }),
        row(ADMINISTRATORS, vol::SetPlacement { transaction, placement: vol::Placement::default() }),
        row(EVERYBODY, vol::GetLending { volume }),
        row(ADMINISTRATORS, vol::SetLending { transaction, lending: vol::Lending::Off }),
        row(ADMINISTRATORS, vol::GetPrivacy { volume }),
        row(ADMINISTRATORS, vol::SetPrivacy { transaction, privacy: vol::Privacy::default() }),
        row(
            ADMINISTRATORS,
            vol::FetchPart {
                fid: Fid::root(volume),
                data_version: afs_wire::ids::DataVersion(0),
                position: 0,
                length: 1,
            },
        ),
        row(
            ADMINISTRATORS,
            vol::ForwardDifference {
                transaction,
                base: volume,
                destination,
                destination_transaction,
                cookie,
            },
        ),
        row(ADMINISTRATORS, vol::Clone { transaction, purge: none, kind, name: text(), volume }),
        row(ADMINISTRATORS, vol::ReClone { transaction, clone: volume }),
        row(ADMINISTRATORS, vol::ConvertRoToRw { partition, volume }),
        row(ADMINISTRATORS, vol::Restore { transaction, flags: 0, cookie }),
        row(ADMINISTRATORS, vol::Dump { transaction, from_date: date }),
        row(ADMINISTRATORS, vol::DumpV2 { transaction, from_date: date, flags: 0 }),
        row(ADMINISTRATORS, vol::DumpByPath { transaction, from_date: date, flags: 0 }),
        row(ADMINISTRATORS, vol::RestoreByPath { transaction, flags: 0, cookie }),
        row(ADMINISTRATORS, vol::GetSize { transaction, from_date: date }),
        row(ADMINISTRATORS, forward),
        row(ADMINISTRATORS, forward_multiple),
    ]
}

/// Opcodes without a call.
pub const UNKNOWN_VOLUME_CALLS: &[&str] = &[
    "OsdSupport",
    "Traverse",
    "WipeCand",
    "OldSalvage",
    "OldArchCand",
    "Salvage",
    "ListObjects",
    "SplitVolume",
    "ArchCand",
];
