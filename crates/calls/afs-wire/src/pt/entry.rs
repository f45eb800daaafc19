//! Entry of a user or group.

use super::NameChars;
use crate::ids::ViceId;

xdr_struct! {
    /// `prcheckentry` and `prlistentries`, 304 bytes: a user or group.
    #[derive(Copy, Default)]
    pub struct Entry {
        /// The eight privacy bits (`docs/protocol/ptserver.md` "4. Access control inside PR").
        pub flags: u32,
        /// Its id.
        pub id: ViceId,
        /// Its owner, who may change it; with 0 only administrators may.
        pub owner: ViceId,
        /// Its creator.
        pub creator: ViceId,
        /// How many more groups it may create; of a foreign cell's group: how many more of that cell's users may come.
        pub group_quota: i32,
        /// Quota of foreign users; kept for the tools.
        pub user_quota: i32,
        /// Members of a group, or groups of a user.
        pub count: i32,
        /// Zeros; in our servers' the generation of a user's tokens in the first two (`docs/protocol/extensions.md` "Revoked
        /// tokens").
        pub reserved: [i32; 5],
        /// The name.
        pub name: NameChars,
    }
}

impl Entry {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 304;

    /// The reserved words of a user whose tokens are of this generation.
    #[must_use]
    pub const fn reserved_with(token_generation: u64) -> [i32; 5] {
        let [high, low] = [(token_generation >> 32) as u32, token_generation as u32];
        [high.cast_signed(), low.cast_signed(), 0, 0, 0]
    }

    /// The generation of the user's tokens.
    #[must_use]
    pub fn token_generation(&self) -> u64 {
        let [high, low, ..] = self.reserved.map(i32::cast_unsigned);
        u64::from(high) << 32 | u64::from(low)
    }
}

/// Bits of [`EntryUpdate::mask`]. Servers implement the last two only.
pub mod update_mask {
    /// The name.
    pub const NAME: u32 = 0x1;
    /// The id.
    pub const ID: u32 = 0x2;
    /// The flags.
    pub const FLAGS: u32 = 0x4;
    /// Put the name into the index again.
    pub const REHASH_NAME: u32 = 0x8;
    /// Put the id into the index again.
    pub const REHASH_ID: u32 = 0x10;
}

xdr_struct! {
    /// `PrUpdateEntry`: a repair of OpenAFS's database.
    #[derive(Copy, Default)]
    pub struct EntryUpdate {
        /// Which fields; see [`update_mask`].
        pub mask: u32,
        /// The fields.
        pub entry: Entry,
    }
}

id_without_display! {
    /// What kind of entry to make.
    pub struct EntryKind(i32);
}

impl EntryKind {
    /// A user of this cell, or of another one if the name says so.
    pub const USER: Self = Self(0);
    /// A group.
    pub const GROUP: Self = Self(2);
    /// A foreign user; refused everywhere.
    pub const FOREIGN: Self = Self(0x10);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, Encode};

    #[test]
    fn sizes_and_places() {
        let entry = Entry {
            flags: 0x90,
            id: ViceId(-206),
            count: 3,
            name: NameChars::new(b"alice:friends").unwrap(),
            ..Entry::default()
        };
        let wire = entry.to_bytes();
        assert_eq!(wire.len(), Entry::WIRE_LEN);
        assert_eq!(wire[4..8], [0xff, 0xff, 0xff, 0x32], "ids are signed");
        assert_eq!(wire[27], 3);
        assert_eq!(wire[48..56], [0, 0, 0, b'a', 0, 0, 0, b'l'], "a word a character");
        assert_eq!(Entry::from_bytes(&wire), Ok(entry));
        for generation in [0, 1_764_460_800, u64::MAX, 1 << 32] {
            assert_eq!(
                Entry { reserved: Entry::reserved_with(generation), ..entry }.token_generation(),
                generation
            );
        }
        assert_eq!(EntryUpdate { mask: 8, entry }.to_bytes().len(), 4 + Entry::WIRE_LEN);
    }
}
