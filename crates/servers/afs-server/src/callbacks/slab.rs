//! Slab: entries by 32-bit number, grown by fixed pieces, so that a million entries cost no copy and little
//! slack.

/// The null index: the end of every chain and list.
pub(super) const NONE: u32 = u32::MAX;

const PIECE: usize = 1024;

/// An entry that can be linked into the free list.
pub(super) trait Linked: Copy + Default {
    /// The next entry of the list.
    fn next(&self) -> u32;
    /// Sets the next entry of the list.
    fn set_next(&mut self, next: u32);
}

/// Entries by number. Numbers of removed entries are reused.
pub(super) struct Slab<T> {
    pieces: Vec<Box<[T]>>,
    free: u32,
    used: usize,
}

impl<T: Linked> Slab<T> {
    pub(super) fn new() -> Self {
        Slab { pieces: Vec::new(), free: NONE, used: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.pieces.len() * PIECE * size_of::<T>() + self.pieces.capacity() * size_of::<Box<[T]>>()
    }

    pub(super) fn insert(&mut self, entry: T) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let at = self.free;
        self.free = self.get(at).next();
        *self.get_mut(at) = entry;
        self.used += 1;
        at
    }

    pub(super) fn remove(&mut self, at: u32) {
        let mut freed = T::default();
        freed.set_next(self.free);
        *self.get_mut(at) = freed;
        self.free = at;
        self.used -= 1;
    }

    pub(super) fn get(&self, at: u32) -> &T {
        &self.pieces[at as usize / PIECE][at as usize % PIECE]
    }

    pub(super) fn get_mut(&mut self, at: u32) -> &mut T {
        &mut self.pieces[at as usize / PIECE][at as usize % PIECE]
    }

    /// Adds one piece and links its entries so that the lowest number is used first.
    fn grow(&mut self) {
        let first = (self.pieces.len() * PIECE) as u32;
        let mut piece = vec![T::default(); PIECE].into_boxed_slice();
        for (offset, place) in piece.iter_mut().enumerate() {
            let last = offset + 1 == PIECE;
            place.set_next(if last { NONE } else { first + offset as u32 + 1 });
        }
        self.pieces.push(piece);
        self.free = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Default)]
    struct Entry(u32);

    impl Linked for Entry {
        fn next(&self) -> u32 {
            self.0
        }
        fn set_next(&mut self, next: u32) {
            self.0 = next;
        }
    }

    #[test]
    fn numbers_are_used_again() {
        let mut slab = Slab::new();
        let numbers: Vec<u32> = (0..3000).map(|n| slab.insert(Entry(n))).collect();
        assert_eq!(numbers, (0..3000).collect::<Vec<_>>());
        slab.remove(7);
        slab.remove(2999);
        assert_eq!((slab.insert(Entry(1)), slab.insert(Entry(2)), slab.insert(Entry(3))), (2999, 7, 3000));
        assert_eq!((slab.len(), slab.get(2999).0), (3001, 1));
    }
}
