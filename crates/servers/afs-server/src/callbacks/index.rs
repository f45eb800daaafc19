//! Hash index over a slab, grown by linear hashing: no growth moves more than one chain, so no call pays for
//! the rehashing of a million entries.

use super::slab::{Linked, NONE, Slab};

const PIECE: usize = 1024;

/// An entry that the index can chain.
pub(super) trait Hashed: Linked {
    /// The hash of the entry's key.
    fn hash(&self, seed: u64) -> u32;
}

/// Heads of chains; the links are in the entries themselves.
pub(super) struct Index {
    heads: Vec<Box<[u32; PIECE]>>,
    /// Chains in use; at least [`PIECE`].
    chains: usize,
    seed: u64,
    entries: usize,
}

impl Index {
    pub(super) fn new(seed: u64) -> Self {
        Index { heads: vec![Box::new([NONE; PIECE])], chains: PIECE, seed, entries: 0 }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.heads.len() * PIECE * size_of::<u32>() + self.heads.capacity() * size_of::<usize>()
    }

    /// The first entry with this hash that satisfies `is`.
    pub(super) fn find<T: Hashed>(&self, slab: &Slab<T>, hash: u32, is: impl Fn(&T) -> bool) -> Option<u32> {
        let mut at = *self.head(self.chain(hash));
        while at != NONE {
            let entry = slab.get(at);
            if is(entry) {
                return Some(at);
            }
            at = entry.next();
        }
        None
    }

    pub(super) fn insert<T: Hashed>(&mut self, slab: &mut Slab<T>, at: u32) {
        let chain = self.chain(slab.get(at).hash(self.seed));
        self.push(slab, chain, at);
        self.entries += 1;
        if self.entries > self.chains {
            self.split(slab);
        }
    }

    /// Removes an entry from its chain. The entry must be in the index.
    pub(super) fn remove<T: Hashed>(&mut self, slab: &mut Slab<T>, at: u32) {
        let chain = self.chain(slab.get(at).hash(self.seed));
        let after = slab.get(at).next();
        let mut before = *self.head(chain);
        if before == at {
            *self.head_mut(chain) = after;
        } else {
            while slab.get(before).next() != at {
                before = slab.get(before).next();
            }
            slab.get_mut(before).set_next(after);
        }
        self.entries -= 1;
    }

    fn push<T: Hashed>(&mut self, slab: &mut Slab<T>, chain: usize, at: u32) {
        slab.get_mut(at).set_next(*self.head(chain));
        *self.head_mut(chain) = at;
    }

    /// The chain of a hash: the hash modulo the power of two above the count of chains, or, where that chain does
    /// not exist yet, modulo the one below.
    fn chain(&self, hash: u32) -> usize {
        let above = (self.chains + 1).next_power_of_two();
        let chain = hash as usize & (above - 1);
        if chain < self.chains { chain } else { hash as usize & (above / 2 - 1) }
    }

    /// Adds one chain and moves its entries into it, all of them from one other chain.
    fn split<T: Hashed>(&mut self, slab: &mut Slab<T>) {
        let new = self.chains;
        let above = (new + 1).next_power_of_two();
        let old = new & (above / 2 - 1);
        if new == self.heads.len() * PIECE {
            self.heads.push(Box::new([NONE; PIECE]));
        }
        let mut at = std::mem::replace(self.head_mut(old), NONE);
        self.chains += 1;
        while at != NONE {
            let next = slab.get(at).next();
            let chain = self.chain(slab.get(at).hash(self.seed));
            self.push(slab, chain, at);
            at = next;
        }
    }

    fn head(&self, chain: usize) -> &u32 {
        &self.heads[chain / PIECE][chain % PIECE]
    }

    fn head_mut(&mut self, chain: usize) -> &mut u32 {
        &mut self.heads[chain / PIECE][chain % PIECE]
    }
}

/// Mixes two words and a seed.
pub(super) fn mix(seed: u64, high: u32, low: u32) -> u32 {
    let mut word = (u64::from(high) << 32 | u64::from(low)) ^ seed;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ word >> 31) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Default)]
    struct Entry {
        key: u32,
        next: u32,
    }

    impl Linked for Entry {
        fn next(&self) -> u32 {
            self.next
        }
        fn set_next(&mut self, next: u32) {
            self.next = next;
        }
    }

    impl Hashed for Entry {
        fn hash(&self, seed: u64) -> u32 {
            mix(seed, 0, self.key)
        }
    }

    #[test]
    fn everything_inserted_is_found_while_the_index_grows_and_shrinks() {
        let (mut slab, mut index) = (Slab::new(), Index::new(42));
        let find =
            |index: &Index, slab: &Slab<Entry>, key| index.find(slab, mix(42, 0, key), |e| e.key == key);
        for key in 0..5000 {
            let at = slab.insert(Entry { key, next: NONE });
            index.insert(&mut slab, at);
        }
        for key in 0..5000 {
            assert!(find(&index, &slab, key).is_some(), "{key}");
        }
        for key in (0..5000).step_by(2) {
            let at = find(&index, &slab, key).unwrap();
            index.remove(&mut slab, at);
            slab.remove(at);
        }
        for key in 0..5000 {
            assert_eq!(find(&index, &slab, key).is_some(), key % 2 == 1, "{key}");
        }
    }
}
