//! Open files whose promise has ended: what the kernel must look up again, and what it reads without asking.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::key::Key;
use crate::promises::Promises;
use crate::vnode::Vnode;

impl Promises {
    /// Invalidates an object whose promise has ended. The names of a file that is open for reading alone are invalidated too: its handles
    /// may keep a version under the inode number that they have, and then the newest one gets another number.
    pub(super) fn ended(&self, vnode: &Vnode) {
        self.invalidate(vnode.key);
        let reading = {
            let state = vnode.state();
            let data = state.file.data().filter(|data| {
                let uses = data.content().uses;
                uses.count() > 0 && uses.writers() == 0
            });
            data.map(|data| data.backed.load(Ordering::SeqCst))
        };
        let Some(is_backed) = reading else { return };
        self.parts.kernel.invalidate_names_of(vnode.key);
        if is_backed {
            self.unwatched.lock().insert(vnode.key);
        }
    }

    /// Takes the open files whose newest version must be asked for, since their kernel asks for nothing.
    pub fn take_unwatched(&self) -> BTreeSet<Key> {
        std::mem::take(&mut *self.unwatched.lock())
    }

    /// The newest version of a file could not be asked for: it is asked for again later.
    pub fn still_unwatched(&self, key: Key) {
        self.unwatched.lock().insert(key);
    }
}
