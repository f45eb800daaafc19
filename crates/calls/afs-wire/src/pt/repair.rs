//! Calls on the records of OpenAFS's own database file; optional for other servers.

use super::{EntryUpdate, NameChars, NameText, SERVICE};
use crate::ids::ViceId;
use crate::rpc::Nothing;

xdr_struct! {
    /// `prdebugentry`: a record of OpenAFS's database, with its hash chains as positions in the file.
    #[derive(Copy, Default)]
    pub struct DebugEntry {
        /// Flags as stored.
        pub flags: i32,
        /// Its id.
        pub id: ViceId,
        /// Its cell; not used.
        pub cell: i32,
        /// Continuation of the record.
        pub next: i32,
        /// Zeros.
        pub reserved: [i32; 5],
        /// The first memberships.
        pub entries: [i32; 10],
        /// Next in the chain of ids.
        pub next_id: i32,
        /// Next in the chain of names.
        pub next_name: i32,
        /// Its owner.
        pub owner: ViceId,
        /// Its creator.
        pub creator: ViceId,
        /// Quota of groups.
        pub group_quota: i32,
        /// Quota of foreign users.
        pub user_quota: i32,
        /// Memberships.
        pub count: i32,
        /// Not used.
        pub instance: i32,
        /// First owned group.
        pub owned: i32,
        /// Next in the chain of its owner.
        pub next_owned: i32,
        /// Not used.
        pub parent: i32,
        /// Not used.
        pub sibling: i32,
        /// Not used.
        pub child: i32,
        /// The name.
        pub name: NameChars,
    }
}

impl DebugEntry {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 4 * (32 + 64);
}

calls! {
    service SERVICE;

    /// Reads the position of a record in the file.
    501 "WhereIsIt" WhereIsIt { id: ViceId } -> WhereIsItReply { position: i32 };

    /// Reads the record at a position in the file.
    502 "DumpEntry" DumpEntry { position: i32 } -> DumpEntryReply { entry: DebugEntry };

    /// Repairs a record.
    520 "UpdateEntry" UpdateEntry { id: ViceId, name: NameText, update: EntryUpdate } -> Nothing;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, Encode};

    #[test]
    fn a_record_has_96_words() {
        let wire = DebugEntry::default().to_bytes();
        assert_eq!(wire.len(), DebugEntry::WIRE_LEN);
        assert_eq!(DebugEntry::from_bytes(&wire), Ok(DebugEntry::default()));
    }
}
