//! Lock that runs one test of a program at a time, for tests that share state of the machine.

use parking_lot::{Mutex, MutexGuard};

/// The lock. Other tests of the same program that take it wait until it is dropped.
///
/// For tests whose hosts have the same addresses, and for those that log in: root's token goes to every mount of root's
/// on the machine, also to that of another test whose cell has the same name and other keys.
#[derive(Debug)]
pub struct Exclusive(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Exclusive {
    /// Takes the lock; a test that failed has released it.
    #[must_use]
    pub fn take() -> Self {
        static TURNS: Mutex<()> = Mutex::new(());
        Self(TURNS.lock())
    }
}
