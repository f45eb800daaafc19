//! The headers of a dump and of its volume, which precede the vnodes.

use super::item::{number, text};
use super::{MESSAGE_MAX, NAME_MAX};
use crate::ids::{UnixSeconds, ViceId, VolumeId};

/// Days of usage counts that a volume has.
pub const WEEK: usize = 7;

/// The dump's own header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpHeader {
    /// The volume that was dumped; never 0.
    pub volume: VolumeId,
    /// Its name, at most [`NAME_MAX`] bytes. Not authoritative.
    pub name: Vec<u8>,
    /// Periods of the changes in it: since when (0 is everything), and up to when. Merged dumps have more than one
    /// pair, at most [`SPANS_MAX`](super::SPANS_MAX).
    pub spans: Vec<(UnixSeconds, UnixSeconds)>,
}

impl DumpHeader {
    /// Start of the changes in it; 0 of a full dump.
    pub fn since(&self) -> UnixSeconds {
        self.spans.first().map_or(UnixSeconds(0), |span| span.0)
    }

    /// End of the changes in it, by the clock of its volume.
    pub fn until(&self) -> UnixSeconds {
        self.spans.iter().map(|span| span.1).max().unwrap_or_default()
    }

    pub(super) fn set(&mut self, tag: u8, item: &[u8]) {
        match tag {
            b'v' => self.volume = VolumeId(number(item)),
            b'n' => self.name = text(item, NAME_MAX),
            _ => {
                let (words, _) = item.get(2..).unwrap_or_default().as_chunks::<8>();
                let date = |bytes: &[u8]| UnixSeconds(number(bytes));
                self.spans = words.iter().map(|pair| (date(&pair[..4]), date(&pair[4..]))).collect();
            }
        }
    }
}

/// The volume's header, without fields that dumps do not carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFields {
    /// Its number.
    pub volume: VolumeId,
    /// Its name, at most [`NAME_MAX`] bytes.
    pub name: Vec<u8>,
    /// Switch of the operator. False in dumps of clones that were never published.
    pub in_service: bool,
    /// Switch of the administrator, true in practice.
    pub blessed: bool,
    /// The next uniquifier.
    pub next_unique: u32,
    /// 0 read-write, 1 read-only, 2 backup; not checked.
    pub kind: u8,
    /// The group's read-write volume.
    pub parent: VolumeId,
    /// The group's read-only volume.
    pub clone: VolumeId,
    /// Quota in KiB, 0 for none.
    pub max_quota: u32,
    /// Not used.
    pub min_quota: u32,
    /// KiB in use, according to the source: not to be trusted.
    pub disk_used: u32,
    /// Number of vnodes, according to the source: not to be trusted.
    pub file_count: u32,
    /// Not used.
    pub account: u32,
    /// Its owner.
    pub owner: ViceId,
    /// When the dumped instance was made.
    pub creation_date: UnixSeconds,
    /// Last use.
    pub access_date: UnixSeconds,
    /// Last change.
    pub update_date: UnixSeconds,
    /// Not used.
    pub expiration_date: UnixSeconds,
    /// When a backup volume was last made.
    pub backup_date: UnixSeconds,
    /// At most [`MESSAGE_MAX`] bytes. Often set by a tool and not by an operator.
    pub offline_message: Vec<u8>,
    /// Uses on each of the last seven days, the latest first.
    pub week_use: [u32; WEEK],
    /// The day that `day_use` counts.
    pub day_use_date: UnixSeconds,
    /// Uses on that day.
    pub day_use: u32,
}

impl VolumeFields {
    pub(super) fn set(&mut self, tag: u8, item: &[u8]) {
        let value = number(item);
        let date = UnixSeconds(value);
        match tag {
            b'i' => self.volume = VolumeId(value),
            b'n' => self.name = text(item, NAME_MAX),
            b's' => self.in_service = value != 0,
            b'b' => self.blessed = value != 0,
            b'u' => self.next_unique = value,
            b't' => self.kind = value as u8,
            b'p' => self.parent = VolumeId(value),
            b'c' => self.clone = VolumeId(value),
            b'q' => self.max_quota = value,
            b'm' => self.min_quota = value,
            b'd' => self.disk_used = value,
            b'f' => self.file_count = value,
            b'a' => self.account = value,
            b'o' => self.owner = ViceId(value as i32),
            b'C' => self.creation_date = date,
            b'A' => self.access_date = date,
            b'U' => self.update_date = date,
            b'E' => self.expiration_date = date,
            b'B' => self.backup_date = date,
            b'O' => self.offline_message = text(item, MESSAGE_MAX),
            b'W' => {
                let (days, _) = item.get(2..).unwrap_or_default().as_chunks::<4>();
                self.week_use = std::array::from_fn(|day| days.get(day).map_or(0, |word| number(word)));
            }
            b'D' => self.day_use_date = date,
            b'Z' => self.day_use = value,
            // The header's version, the message of the day and the change counter are ignored.
            _ => {}
        }
    }
}
