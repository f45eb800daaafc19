//! One test of a program at a time, where tests share more than the machine.

use parking_lot::{Mutex, MutexGuard};

/// The turn of one test. Others of the same program that want one wait until it is dropped.
///
/// For tests whose hosts have the same addresses, and for those that log in: root's token goes to every mount of root's on the
/// machine, also to that of another test whose cell has the same name and other keys.
#[derive(Debug)]
pub struct Exclusive(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Exclusive {
    /// Waits for it. A test that failed in its turn has ended it.
    #[must_use]
    pub fn take() -> Self {
        static TURNS: Mutex<()> = Mutex::new(());
        Self(TURNS.lock())
    }
}
