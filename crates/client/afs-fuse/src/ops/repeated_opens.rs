//! Opens that the kernel repeats: after ESTALE it looks the name up once more, and opens what it finds, once.
//!
//! Where other machines replace the file again and again, what the second look-up finds may be gone by the second open,
//! or may not go with what is open under its inode number. The look-up therefore opens the file itself, of a directory
//! that it looks at anew until that succeeds, and the open gets that handle. The kernel always asks for the name itself
//! then: the thread that opens is the one that has looked up.

use crate::inodes::Inodes;
use crate::lengths::Moment;
use crate::ops::Operation;
use afs_env::EnvExt;
use afs_venus::{Entry, NodeId, OpenFlags, Opened, Result};
use fuser::INodeNo;
use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

/// Most threads whose opens are expected again.
const THREADS_MAX: usize = 1024;
/// For so long an open is expected again. A thread may have been killed, or may have opened without a name.
const EXPECTED_FOR: Duration = Duration::from_secs(10);

/// The threads of programs whose last open was answered with ESTALE.
#[derive(Default)]
pub(crate) struct RepeatedOpens(Mutex<Table>);

#[derive(Default)]
struct Table {
    last: u64,
    expected: HashMap<u32, Expected>,
}

/// Which attempt of a thread an open is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Attempt {
    pub(super) is_repeated: bool,
    /// When the one before was answered.
    since: Moment,
    /// It takes what was opened with the look-up.
    is_taken: bool,
}

/// An open that is expected again.
pub(crate) struct Expected {
    number: u64,
    flags: OpenFlags,
    /// When the last open was answered: the look-up was requested later.
    since: Moment,
    /// What the look-up has opened for it.
    opened: Option<(NodeId, Opened)>,
}

impl RepeatedOpens {
    /// Expects an open again; returns its number, or `None` if too many are.
    fn expect(&self, thread: u32, flags: OpenFlags, since: Moment) -> Option<u64> {
        let mut table = self.0.lock();
        if table.expected.len() >= THREADS_MAX {
            return None;
        }
        table.last += 1;
        let number = table.last;
        table.expected.insert(thread, Expected { number, flags, since, opened: None });
        Some(number)
    }

    /// How the file is opened that a thread looks up, if its open is expected, and since when.
    fn flags(&self, thread: u32) -> Option<(OpenFlags, Moment)> {
        self.0.lock().expected.get(&thread).map(|expected| (expected.flags, expected.since))
    }

    /// The thread has looked up this, which was opened for it. Returns what is not opened for it any more.
    fn opened(&self, thread: u32, node: NodeId, opened: Opened) -> Option<Opened> {
        match self.0.lock().expected.get_mut(&thread) {
            Some(expected) => expected.opened.replace((node, opened)).map(|(_, before)| before),
            None => Some(opened),
        }
    }

    /// Takes the open that a thread repeats.
    fn take(&self, thread: u32) -> Option<Expected> {
        self.0.lock().expected.remove(&thread)
    }

    /// Takes an open that was not repeated in time.
    fn take_number(&self, thread: u32, number: u64) -> Option<Expected> {
        let mut table = self.0.lock();
        let is_same = table.expected.get(&thread).is_some_and(|expected| expected.number == number);
        is_same.then(|| table.expected.remove(&thread)).flatten()
    }
}

impl Operation {
    /// Looks up a name. For a thread that repeats an open, what is found is opened at once.
    pub(super) async fn look_up(&self, directory: NodeId, name: &[u8]) -> Result<Entry> {
        let expected = self.repeated.flags(self.thread).filter(|(flags, _)| !flags.write && !flags.truncate);
        let Some((flags, since)) = expected else { return self.venus.lookup(directory, name).await };
        let (entry, opened) = self.venus.lookup_open(directory, name, flags).await?;
        if let Some(opened) = opened {
            self.keep_apart(entry.node, &opened);
            if !self.has_length(entry.node, &opened, since) {
                // The reply could be dropped again, but not that which makes an inode.
                self.inodes.renumber(entry.node);
            }
            self.cancel(self.repeated.opened(self.thread, entry.node, opened)).await;
        }
        Ok(entry)
    }

    /// Opens a file, or takes what was opened for this thread.
    pub(super) async fn open_or_take(&self, node: NodeId, flags: OpenFlags) -> (Result<Opened>, Attempt) {
        let Some(expected) = self.repeated.take(self.thread) else {
            return (self.venus.open(node, flags).await, Attempt::default());
        };
        let attempt = Attempt { is_repeated: true, since: expected.since, is_taken: false };
        match expected.opened {
            Some((of, opened)) if of == node && expected.flags == flags => {
                (Ok(opened), Attempt { is_taken: true, ..attempt })
            }
            other => {
                self.cancel(other.map(|(_, opened)| opened)).await;
                (self.venus.open(node, flags).await, attempt)
            }
        }
    }

    /// Whether the kernel surely has the length of what is opened under a number. A number that was made for what was
    /// opened with the look-up came with its length.
    pub(super) fn knows_length(&self, ino: INodeNo, node: NodeId, opened: &Opened, attempt: Attempt) -> bool {
        let is_new = attempt.is_taken && Inodes::is_reserved(ino);
        if !is_new && !self.has_length(node, opened, attempt.since) {
            return false;
        }
        self.lengths.arrived(node, attempt.since);
        true
    }

    /// Whether the kernel has the length of what was opened, if it has requested the attributes after a moment. It has that of the
    /// data in its pages, and needs none where it uses the cache file.
    fn has_length(&self, node: NodeId, opened: &Opened, since: Moment) -> bool {
        opened.keep_cache || opened.backing.is_some() || self.lengths.is_quiet_since(node, since)
    }

    /// An open of a number that is gone is about to be answered with ESTALE: the kernel repeats it, once.
    pub(super) async fn open_failed(&self, flags: OpenFlags) {
        match self.repeated.take(self.thread) {
            Some(expected) => self.cancel(expected.opened.map(|(_, opened)| opened)).await,
            None => self.expect_again(flags),
        }
    }

    /// The open is about to be answered with ESTALE: the kernel repeats it.
    pub(super) fn expect_again(&self, flags: OpenFlags) {
        let Some(number) = self.repeated.expect(self.thread, flags, self.lengths.now()) else { return };
        let (mount, thread) = (self.mount.clone(), self.thread);
        self.env.spawn(Box::pin(async move {
            mount.env.sleep(EXPECTED_FOR).await;
            let late = mount.repeated.take_number(thread, number).and_then(|expected| expected.opened);
            if let Some((_, opened)) = late {
                mount.venus.cancel_open(opened.handle).await;
            }
        }));
    }

    async fn cancel(&self, opened: Option<Opened>) {
        if let Some(opened) = opened {
            self.venus.cancel_open(opened.handle).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_venus::HandleId;

    fn opened(handle: u64) -> Opened {
        Opened { handle: HandleId(handle), keep_cache: false, data: 0, backing: None }
    }

    #[test]
    fn an_open_is_expected_of_the_thread_that_got_estale_and_once() {
        let table = RepeatedOpens::default();
        assert!(table.flags(7).is_none() && table.take(7).is_none());
        assert_eq!(table.opened(7, NodeId(5), opened(1)).unwrap().handle, HandleId(1), "nobody waits for it");
        let first = table.expect(7, OpenFlags::READ, Moment::default()).unwrap();
        assert!(table.flags(8).is_none());
        assert!(table.flags(7).is_some_and(|(flags, _)| flags == OpenFlags::READ));
        assert!(table.opened(7, NodeId(5), opened(2)).is_none());
        assert_eq!(table.opened(7, NodeId(6), opened(3)).unwrap().handle, HandleId(2), "looked up again");
        let (node, held) = table.take(7).unwrap().opened.unwrap();
        assert_eq!((node, held.handle), (NodeId(6), HandleId(3)));
        table.expect(7, OpenFlags::READ, Moment::default());
        assert!(table.take_number(7, first).is_none(), "a later one");
        assert!(table.take(7).is_some() && table.take(7).is_none());
    }

    #[test]
    fn the_opens_expected_are_bounded() {
        let table = RepeatedOpens::default();
        (0..THREADS_MAX as u32)
            .for_each(|thread| assert!(table.expect(thread, OpenFlags::READ, Moment::default()).is_some()));
        assert!(table.expect(u32::MAX, OpenFlags::READ, Moment::default()).is_none());
    }
}
