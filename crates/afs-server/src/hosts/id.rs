//! A client's number in the tables of this server.

use std::sync::Arc;

use parking_lot::Mutex;

/// Numbers a host while the server knows it. Numbers are small and used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct HostId(pub u32);

/// Hands out the lowest free numbers.
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
    /// A number that nobody else has until it is dropped.
    pub(crate) fn take(self: &Arc<Self>) -> Number {
        let mut free = self.free.lock();
        let number = free.returned.pop_first().unwrap_or_else(|| {
            free.next += 1;
            free.next - 1
        });
        Number { id: HostId(number), numbers: self.clone() }
    }
}

/// A number in use.
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
