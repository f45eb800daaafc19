//! Names of packs and of their objects.

use std::fmt;

use afs_drive::ChunkId;

/// Number of a run of a drive: the time from one opening to the next. A later run has a greater number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunId(pub(crate) u32);

/// Number of a pack: its run (upper 32 bits), and its number in the run (lower 32 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PackId(pub(crate) u64);

/// Prefix of the keys of packs. Their listing is in the order of the numbers.
pub(crate) const PACKS: &str = "packs/";
/// Prefix of the keys of runs.
pub(crate) const RUNS: &str = "runs/";
/// Key of the owner's object.
pub(crate) const OWNER: &str = "owner";

impl RunId {
    /// The key of its object.
    pub(crate) fn key(self) -> String {
        format!("{RUNS}{:08x}", self.0)
    }

    /// The run of an object's key; `None` for a key that a drive does not make.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        let number = key.strip_prefix(RUNS).filter(|digits| digits.len() == 8)?;
        let run = Self(u32::from_str_radix(number, 16).ok()?);
        (run.key() == key).then_some(run)
    }

    /// The least number that a pack of this run has.
    pub(crate) fn first_pack(self) -> PackId {
        PackId(u64::from(self.0) << 32)
    }
}

impl PackId {
    /// The pack of a chunk.
    pub(crate) fn of(chunk: ChunkId) -> Self {
        Self(chunk.parts().0)
    }

    pub(crate) fn run(self) -> RunId {
        RunId((self.0 >> 32) as u32)
    }

    /// The key of its object.
    pub(crate) fn key(self) -> String {
        format!("{PACKS}{:016x}", self.0)
    }

    /// The pack of an object's key; `None` for a key that a drive does not make.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        let number = key.strip_prefix(PACKS).filter(|digits| digits.len() == 16)?;
        let pack = Self(u64::from_str_radix(number, 16).ok()?);
        (pack.key() == key).then_some(pack)
    }

    /// The id of the chunk at an offset.
    pub(crate) fn chunk(self, offset: u32) -> ChunkId {
        ChunkId::from_parts(self.0, offset.into())
    }

    /// Ids between which all ids of its chunks are.
    pub(crate) fn chunks(self) -> (ChunkId, ChunkId) {
        (ChunkId::from_parts(self.0, 0), ChunkId::from_parts(self.0, u64::MAX))
    }
}

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_packs_and_runs_alone() {
        let pack = PackId(0x0000_0012_0000_abcd);
        assert_eq!(pack.key(), "packs/000000120000abcd");
        assert_eq!((PackId::of_key(&pack.key()), pack.run()), (Some(pack), RunId(0x12)));
        assert_eq!(RunId::of_key("runs/000000ff"), Some(RunId(255)));
        for wrong in
            ["packs/12", "packs/+00000120000abcd", "packs/000000120000ABCD", "runs/000000FF", "owner", ""]
        {
            assert_eq!((PackId::of_key(wrong), RunId::of_key(wrong)), (None, None), "{wrong}");
        }
        let (first, last) = pack.chunks();
        assert!(first <= pack.chunk(0) && pack.chunk(u32::MAX) <= last);
        assert!(last < PackId(pack.0 + 1).chunk(0));
    }
}
