//! Requested changes of an object's status.

use super::status::{nanos_of, nanos_word};
use crate::ids::{FileTime, Mode, UnixSeconds, ViceId};
use crate::xdr::{Decode, DecodeError, Encode, Reader};

/// The fields of a status that a caller sets: `AFSStoreStatus`, 24 bytes. `None` leaves a field unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetStatus {
    /// Modification time as shown to users.
    pub mod_time: Option<FileTime>,
    /// The new owner.
    pub owner: Option<ViceId>,
    /// Unix group number.
    pub group: Option<u32>,
    /// Permission bits.
    pub mode: Option<Mode>,
    /// With a store: reply only when the data is on stable storage. File servers always do.
    pub fsync: bool,
}

impl SetStatus {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 24;

    /// Whether nothing is to change.
    pub fn is_empty(&self) -> bool {
        Self { fsync: false, ..*self } == Self::default()
    }
}

const MOD_TIME: u32 = 0x1;
const OWNER: u32 = 0x2;
const GROUP: u32 = 0x4;
const MODE: u32 = 0x8;
const FSYNC: u32 = 0x400;

impl Encode for SetStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let mask = bit(self.mod_time.is_some(), MOD_TIME)
            | bit(self.owner.is_some(), OWNER)
            | bit(self.group.is_some(), GROUP)
            | bit(self.mode.is_some(), MODE)
            | bit(self.fsync, FSYNC);
        mask.encode(out);
        let time = self.mod_time.unwrap_or_default();
        time.seconds().encode(out);
        self.owner.unwrap_or_default().encode(out);
        self.group.unwrap_or_default().encode(out);
        self.mode.unwrap_or_default().encode(out);
        nanos_word(time).encode(out); // segment size, which AFS-3 does not use
    }
}

impl Decode for SetStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [mask, mod_time, owner, group, mode, nanos] = <[u32; 6]>::decode(r)?;
        let set = |bit: u32| mask & bit != 0;
        Ok(Self {
            mod_time: set(MOD_TIME).then_some(FileTime::new(UnixSeconds(mod_time), nanos_of(nanos))),
            owner: set(OWNER).then_some(ViceId(owner as i32)),
            group: set(GROUP).then_some(group),
            mode: set(MODE).then_some(Mode(mode)),
            fsync: set(FSYNC),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_says_which_words_count() {
        let set = SetStatus { mode: Some(Mode(0o644)), fsync: true, ..SetStatus::default() };
        let wire = set.to_bytes();
        assert_eq!(wire.len(), SetStatus::WIRE_LEN);
        assert_eq!(wire[..4], [0, 0, 4, 8]);
        assert_eq!(wire[16..20], [0, 0, 1, 0xa4]);
        assert_eq!(SetStatus::from_bytes(&wire), Ok(set));
        let time = Some(FileTime::new(UnixSeconds(3), 5));
        let timed = SetStatus { mod_time: time, ..set };
        assert_eq!(timed.to_bytes()[20..], [0x80, 0, 0, 5]);
        assert_eq!(SetStatus::from_bytes(&timed.to_bytes()), Ok(timed));
        assert!(!set.is_empty() && SetStatus { fsync: true, ..SetStatus::default() }.is_empty());
    }
}
