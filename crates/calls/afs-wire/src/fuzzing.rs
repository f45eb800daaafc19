//! Entry points of fuzz targets: each function takes any bytes and must not panic.
//!
//! They also check a property of every value that decodes: encoding and decoding it again changes nothing. `fuzz/`
//! calls them with inputs of libFuzzer, `tests/fuzzing.rs` with seeded ones.

use crate::acl::{Acl, BLOCK_LEN, NamedAcl, WellKnownNames};
use crate::decoders::{Decoders, survives};
use crate::dir::{self, Blob, PAGE_LEN};
use crate::dump::{DumpError, DumpReader, DumpWriter, Event, VnodeEnd, VnodeFields};
use crate::ids::{CellName, PartitionId, Rights, Uniquifier, Uuid, VnodeId, VolumeName};
use crate::mountpoint::MountPoint;

/// A target: its name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("file_service", file_service),
    ("callback_service", callback_service),
    ("location_service", location_service),
    ("volume_service", volume_service),
    ("protection_service", protection_service),
    ("login_service", login_service),
    ("overseer_service", overseer_service),
    ("operations_service", operations_service),
    ("directory", directory),
    ("dump", dump),
    ("acl", acl),
    ("mount_point", mount_point),
    ("names", names),
];

/// A copy of valid input with changes: the first two bytes of `changes` are the length to truncate it to (0: none), each
/// three bytes after them an offset and the byte to write there.
pub fn changed(valid: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut out = valid.to_vec();
    let Some((length, changes)) = changes.split_first_chunk::<2>() else { return out };
    match usize::from(u16::from_be_bytes(*length)) {
        0 => {}
        length => out.truncate(length),
    }
    for change in changes.chunks_exact(3) {
        let offset = usize::from(u16::from_be_bytes([change[0], change[1]])) % out.len().max(1);
        if let Some(byte) = out.get_mut(offset) {
            *byte = change[2];
        }
    }
    out
}

/// Arguments and results of the file service. The first byte chooses the call, the second arguments or results.
pub fn file_service(bytes: &[u8]) {
    service(bytes, crate::fs::DECODERS);
}

/// Arguments and results of the callback service.
pub fn callback_service(bytes: &[u8]) {
    service(bytes, crate::cb::DECODERS);
}

/// Arguments and results of the location service.
pub fn location_service(bytes: &[u8]) {
    service(bytes, crate::vl::DECODERS);
}

/// Arguments and results of the volume service, and the grant that precedes the result of some.
pub fn volume_service(bytes: &[u8]) {
    survives::<crate::vol::StreamGrant>(bytes);
    service(bytes, crate::vol::DECODERS);
}

/// Arguments and results of the protection service.
pub fn protection_service(bytes: &[u8]) {
    service(bytes, crate::pt::DECODERS);
}

/// Arguments and results of the journal of operations.
pub fn operations_service(bytes: &[u8]) {
    service(bytes, crate::operations::DECODERS);
}

/// Arguments and results of the login service.
pub fn login_service(bytes: &[u8]) {
    service(bytes, crate::login::DECODERS);
}

/// Arguments and results of the overseer service.
pub fn overseer_service(bytes: &[u8]) {
    service(bytes, crate::bos::DECODERS);
}

fn service(bytes: &[u8], tables: &[&[Decoders]]) {
    let [call, direction, bytes @ ..] = bytes else { return };
    let count: usize = tables.iter().map(|table| table.len()).sum();
    let chosen = tables.iter().copied().flatten().nth(usize::from(*call) % count.max(1));
    if let Some((arguments, results)) = chosen {
        if direction & 1 == 1 { results(bytes) } else { arguments(bytes) }
    }
}

/// A directory of up to eight pages made of the bytes, then read and edited in every way.
pub fn directory(bytes: &[u8]) {
    let [names, bytes @ ..] = bytes else { return };
    let len = bytes.len().clamp(1, 8 * PAGE_LEN).next_multiple_of(PAGE_LEN);
    let mut data: Vec<u8> = bytes.iter().copied().take(len).collect();
    data.resize(len, 0);
    let Ok(mut blob) = Blob::from_bytes(data) else { return };
    let sound = dir::check(&mut blob);
    let entries = blob.entries(0).count();
    assert!(entries <= len / 32, "a walk ends");
    let _ = dir::is_empty(&mut blob);
    edit(&mut blob, *names);
    if sound.is_ok() {
        let checked = dir::check(&mut blob);
        assert!(checked.is_ok(), "edits keep a sound directory sound: {checked:?}");
    }
}

fn edit(blob: &mut Blob, seed: u8) {
    let found: Vec<Vec<u8>> = blob.entries(0).take(40).map(|entry| entry.name.to_vec()).collect();
    let target = (VnodeId(seed.into()), Uniquifier(1));
    for name in found.iter().filter(|name| !matches!(name.as_slice(), b"." | b"..")) {
        let _ = blob.lookup(name);
        let _ = dir::replace(blob, name, target);
        if name.len() % 2 == usize::from(seed % 2) {
            let _ = dir::remove(blob, name);
        }
    }
    for len in [1, 15, 16, 47, 48, 255, 256] {
        let name = vec![b'a' + seed % 26; len];
        let _ = dir::insert(blob, &name, target);
        let _ = blob.lookup(&name);
    }
}

/// A dump, in one piece and in pieces whose size the first byte gives, then written again and read again.
pub fn dump(bytes: &[u8]) {
    let [piece, bytes @ ..] = bytes else { return };
    let (read, written) = rewrite_dump(bytes, bytes.len());
    assert_eq!((&read, &written), (&rewrite_dump(bytes, (*piece).into()).0, &rewrite_dump(bytes, 1).1));
    if read.is_ok() {
        // Entries of one id change places in an access list each time.
        let (again, twice) = rewrite_dump(&written, usize::MAX);
        let (once_more, thrice) = rewrite_dump(&twice, usize::MAX);
        assert_eq!((again, once_more, thrice), (Ok(()), Ok(()), written));
    }
}

/// Reads a dump in pieces and writes its contents in the writer's order.
pub fn rewrite_dump(bytes: &[u8], piece_len: usize) -> (Result<(), DumpError>, Vec<u8>) {
    let (mut reader, mut writer) = (DumpReader::default(), DumpWriter::default());
    let (mut vnode, mut data, mut pieces) = (Default::default(), Vec::new(), Vec::new());
    for mut piece in bytes.chunks(piece_len.max(1)) {
        loop {
            match reader.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(Event::Dump(header))) => writer.header(&header),
                Ok(Some(Event::Volume(volume))) => writer.volume(&volume),
                Ok(Some(Event::Vnode(number, unique))) => vnode = (number, unique),
                Ok(Some(Event::Data(part))) => data.extend_from_slice(part),
                Ok(Some(Event::Hole(hole))) => pieces.push((hole, data.len())),
                Ok(Some(Event::VnodeEnd(VnodeEnd::Bare))) => writer.bare_vnode(vnode.0, vnode.1),
                Ok(Some(Event::VnodeEnd(VnodeEnd::Full(fields)))) => {
                    let (data, pieces) = (std::mem::take(&mut data), std::mem::take(&mut pieces));
                    write_vnode(&mut writer, vnode, &fields, &data, &pieces);
                }
                Ok(Some(Event::End)) => writer.end(),
                Ok(Some(Event::Length(_) | Event::Ignored(..))) => {}
                Err(error) => return (Err(error), writer.take()),
            }
        }
        assert!(piece.is_empty(), "a piece is used up");
    }
    (reader.finish(), writer.take())
}

/// A vnode with its data, with holes before some of the bytes.
fn write_vnode(
    writer: &mut DumpWriter,
    (vnode, unique): (VnodeId, Uniquifier),
    fields: &VnodeFields,
    data: &[u8],
    holes: &[(u64, usize)],
) {
    if holes.is_empty() {
        writer.vnode(vnode, unique, fields, data.len() as u64);
        return writer.data(data);
    }
    let length = holes.iter().fold(data.len() as u64, |length, (hole, _)| length + hole);
    writer.sparse_vnode(vnode, unique, fields, length);
    let before = holes.first().map_or(0, |(_, at)| *at);
    if before > 0 {
        writer.piece(0, before as u64);
        writer.data(&data[..before]);
    }
    let ends = holes.iter().skip(1).map(|(_, at)| *at).chain([data.len()]);
    for ((hole, at), end) in holes.iter().zip(ends) {
        writer.piece(*hole, (end - at) as u64);
        writer.data(&data[*at..end]);
    }
}

/// An access list as text, and as a block of a dump.
pub fn acl(bytes: &[u8]) {
    if let Ok(named) = NamedAcl::from_text(bytes) {
        assert_eq!(NamedAcl::from_text(named.to_string().as_bytes()).as_ref(), Ok(&named));
        let _ = named.to_opaque();
        let _ = named.resolve(&WellKnownNames);
    }
    let _ = NamedAcl::from_opaque(bytes);
    if let Some(acl) = bytes.first_chunk::<BLOCK_LEN>().and_then(|block| Acl::from_block(block).ok()) {
        assert_eq!(Acl::from_block(&acl.to_block()).as_ref(), Ok(&acl));
        let _ = acl.named(&WellKnownNames).to_opaque();
    }
}

/// The text of a mount point.
pub fn mount_point(bytes: &[u8]) {
    if let Ok(mount_point) = MountPoint::parse(bytes) {
        assert_eq!(MountPoint::parse(mount_point.to_string().as_bytes()).as_ref(), Ok(&mount_point));
    }
}

/// Names, rights, partitions and UUIDs in text form.
pub fn names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    reads_back::<VolumeName>(text);
    reads_back::<CellName>(text);
    reads_back::<Rights>(text);
    reads_back::<PartitionId>(text);
    reads_back::<Uuid>(text);
    let _ = crate::volname::split(text);
}

fn reads_back<T: std::str::FromStr + ToString + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert!(value.to_string().parse::<T>().is_ok_and(|again| again == value), "{text:?}");
    }
}
