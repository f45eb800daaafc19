//! Host ids: small numbers that are reused.

use std::sync::Arc;

use parking_lot::Mutex;

/// Identifies a host in the tables of this server while it is known. Ids are small and reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct HostId(pub u32);

/// Allocator of the lowest free ids.
#[derive(Default)]
pub(crate) struct Numbers {
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    returned: std::collections::BTreeSet<u32>,
    next: u32,
}

impl Numbers {
    /// An id that no other host has until it is dropped.
    pub(crate) fn take(self: &Arc<Self>) -> Number {
        let mut free = self.free.lock();
        let number = free.returned.pop_first().unwrap_or_else(|| {
            free.next += 1;
            free.next - 1
        });
        Number { id: HostId(number), numbers: self.clone() }
    }
}

/// An allocated id.
pub(crate) struct Number {
    id: HostId,
    numbers: Arc<Numbers>,
}

impl Number {
    pub(crate) fn id(&self) -> HostId {
        self.id
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let mut free = self.numbers.free.lock();
        free.returned.insert(self.id.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = Arc::new(Numbers::default());
        let (a, b, c) = (numbers.take(), numbers.take(), numbers.take());
        assert_eq!([a.id(), b.id(), c.id()], [HostId(0), HostId(1), HostId(2)]);
        drop(b);
        assert_eq!(numbers.take().id(), HostId(1));
    }
}
