//! Encoder of a dump.

use super::tags::{
    CHANGE_NANOS_TAG, CHANGE_TIME_TAG, CLIENT_NANOS_TAG, CRITICAL, SERVER_NANOS_TAG, SPARSE_TAG,
};
use super::{
    BARE_VNODE_LEN, BEGIN_MAGIC, DUMP_SECTION, DumpHeader, END_MAGIC, END_SECTION, MESSAGE_MAX, NAME_MAX,
    SPANS_MAX, VERSION, VNODE_SECTION, VOLUME_SECTION, VnodeFields, VolumeFields,
};
use crate::fs::FileKind;
use crate::ids::{Mode, Uniquifier, VnodeId};

/// Encodes a dump without the data of vnodes, in OpenAFS's order: header, volume, vnodes, end.
///
/// After [`DumpWriter::vnode`] exactly the announced number of data bytes must follow, by [`DumpWriter::data`] or
/// from elsewhere after [`DumpWriter::take`].
#[derive(Debug, Default)]
pub struct DumpWriter {
    out: Vec<u8>,
    /// Whether times have nanoseconds.
    fine_times: bool,
}

impl DumpWriter {
    /// Writes times with nanoseconds, for a reader that has announced support.
    pub fn with_fine_times(&mut self) {
        self.fine_times = true;
    }

    /// The bytes written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Number of bytes that [`DumpWriter::take`] would return.
    pub fn pending(&self) -> usize {
        self.out.len()
    }

    /// The dump's header. Pairs of dates over [`SPANS_MAX`] are left out.
    pub fn header(&mut self, header: &DumpHeader) {
        self.out.push(DUMP_SECTION);
        self.word(BEGIN_MAGIC);
        self.word(VERSION);
        self.int(b'v', header.volume.0);
        self.text(b'n', &header.name, NAME_MAX);
        let spans = header.spans.iter().take(SPANS_MAX);
        self.array(b't', spans.flat_map(|(from, to)| [from.0, to.0]));
    }

    /// The volume's header.
    pub fn volume(&mut self, volume: &VolumeFields) {
        self.out.push(VOLUME_SECTION);
        self.int(b'i', volume.volume.0);
        self.int(b'v', VERSION);
        self.text(b'n', &volume.name, NAME_MAX);
        self.out.extend([b's', u8::from(volume.in_service), b'b', u8::from(volume.blessed)]);
        self.int(b'u', volume.next_unique);
        self.out.extend([b't', volume.kind]);
        self.int(b'p', volume.parent.0);
        self.int(b'c', volume.clone.0);
        self.int(b'q', volume.max_quota);
        self.int(b'm', volume.min_quota);
        self.int(b'd', volume.disk_used);
        self.int(b'f', volume.file_count);
        self.int(b'a', volume.account);
        self.int(b'o', volume.owner.0 as u32);
        self.int(b'C', volume.creation_date.0);
        self.int(b'A', volume.access_date.0);
        self.int(b'U', volume.update_date.0);
        self.int(b'E', volume.expiration_date.0);
        self.int(b'B', volume.backup_date.0);
        self.text(b'O', &volume.offline_message, MESSAGE_MAX);
        self.text(b'M', b"", 0);
        self.array(b'W', volume.week_use.into_iter());
        self.int(b'D', volume.day_use_date.0);
        self.int(b'Z', volume.day_use);
    }

    /// A vnode that exists and is unchanged.
    pub fn bare_vnode(&mut self, vnode: VnodeId, unique: Uniquifier) {
        self.out.push(VNODE_SECTION);
        self.word(vnode.0);
        self.word(unique.0);
    }

    /// A vnode; `length` bytes of data follow. Only directories get an access list.
    pub fn vnode(&mut self, vnode: VnodeId, unique: Uniquifier, fields: &VnodeFields, length: u64) {
        self.status(vnode, unique, fields);
        // Older readers support `f` only.
        match u32::try_from(length) {
            Ok(length) => self.int(b'f', length),
            Err(_) => self.long(b'h', length),
        }
    }

    /// A file with holes, of `length` bytes; pieces with this total length follow ([`DumpWriter::piece`]). Only for
    /// readers that have announced support.
    pub fn sparse_vnode(&mut self, vnode: VnodeId, unique: Uniquifier, fields: &VnodeFields, length: u64) {
        self.status(vnode, unique, fields);
        self.out.push(CRITICAL);
        self.long(SPARSE_TAG, length);
    }

    /// The next piece of a file with holes: `hole` bytes of zeros, then `length` bytes of data, which follow. Not both 0.
    pub fn piece(&mut self, hole: u64, length: u64) {
        self.out.extend_from_slice(&hole.to_be_bytes());
        self.out.extend_from_slice(&length.to_be_bytes());
    }

    fn status(&mut self, vnode: VnodeId, unique: Uniquifier, fields: &VnodeFields) {
        self.bare_vnode(vnode, unique);
        if fields.kind != FileKind::Invalid {
            self.out.extend([b't', fields.kind as u8]);
        }
        self.short(b'l', fields.link_count);
        self.int(b'v', fields.data_version);
        self.int(b'm', fields.client_mod_time.seconds().0);
        self.int(b'a', fields.author.0 as u32);
        self.int(b'o', fields.owner.0 as u32);
        if fields.group != 0 {
            self.int(b'g', fields.group);
        }
        self.short(b'b', (fields.mode.0 & Mode::ALL) as u16);
        self.int(b'p', fields.parent.0);
        self.int(b's', fields.server_mod_time.seconds().0);
        for (tag, time) in
            [(CLIENT_NANOS_TAG, fields.client_mod_time), (SERVER_NANOS_TAG, fields.server_mod_time)]
        {
            if self.fine_times && time.nanos() != 0 {
                self.int(tag, time.nanos());
            }
        }
        if let Some(time) = fields.change_time.filter(|_| self.fine_times) {
            self.int(CHANGE_TIME_TAG, time.seconds().0);
            self.int(CHANGE_NANOS_TAG, time.nanos());
        }
        if let Some(acl) = fields.acl.as_ref().filter(|_| fields.kind == FileKind::Directory) {
            self.out.push(b'A');
            self.out.extend_from_slice(&acl.to_block());
        }
    }

    /// Data of the preceding vnode.
    pub fn data(&mut self, data: &[u8]) {
        self.out.extend_from_slice(data);
    }

    /// The end.
    pub fn end(&mut self) {
        self.out.push(END_SECTION);
        self.word(END_MAGIC);
    }

    fn word(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    fn int(&mut self, tag: u8, value: u32) {
        self.out.push(tag);
        self.word(value);
    }

    fn long(&mut self, tag: u8, value: u64) {
        self.out.push(tag);
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    fn short(&mut self, tag: u8, value: u16) {
        self.out.push(tag);
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    fn text(&mut self, tag: u8, text: &[u8], len_max: usize) {
        self.out.push(tag);
        self.out.extend(text.iter().copied().take(len_max).take_while(|&byte| byte != 0));
        self.out.push(0);
    }

    fn array(&mut self, tag: u8, values: impl Iterator<Item = u32>) {
        let values: Vec<u32> = values.collect();
        self.short(tag, values.len() as u16);
        for value in values {
            self.word(value);
        }
    }
}

/// Bytes that [`DumpWriter::vnode`] writes, with the data that follow.
pub fn vnode_len(fields: &VnodeFields, length: u64) -> u64 {
    let status = 2 + 3 + 5 * 4 + 3 + 5 * 2;
    let group = if fields.group == 0 { 0 } else { 5 };
    let has_acl = fields.acl.is_some() && fields.kind == FileKind::Directory;
    let acl = if has_acl { 1 + crate::acl::BLOCK_LEN as u64 } else { 0 };
    let before_data = if u32::try_from(length).is_ok() { 5 } else { 9 };
    BARE_VNODE_LEN + status + group + acl + before_data + length
}
