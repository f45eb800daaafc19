//! Lock of the machine that runs one test at a time, for tests that share state of the machine: a locked file, since each
//! test may be a process.

use std::fs::File;

/// The lock. Other tests that take it wait until it is dropped.
///
/// For tests whose hosts have the same addresses, and for those that log in: root's token goes to every mount of root's
/// on the machine, also to that of another test whose cell has the same name and other keys.
#[derive(Debug)]
pub struct Exclusive(#[expect(dead_code, reason = "held")] File);

impl Exclusive {
    /// Takes the lock; a test that failed has released it.
    ///
    /// # Panics
    ///
    /// If the file cannot be made or locked.
    #[must_use]
    pub fn take() -> Self {
        let path = std::env::temp_dir().join("andrew-tests-exclusive.lock");
        let open = || File::options().create(true).truncate(false).write(true).open(&path);
        match open().and_then(|file| file.lock().map(|()| file)) {
            Ok(file) => Self(file),
            Err(error) => panic!("{} cannot be locked: {error}", path.display()),
        }
    }
}
