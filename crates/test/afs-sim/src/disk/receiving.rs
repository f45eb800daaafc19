//! Thread-local mark of a socket's receiving thread, so that disks can count reads made on it.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static RECEIVING: Cell<bool> = const { Cell::new(false) };
}

/// Guard: datagrams are handled on this thread until it is dropped.
pub(crate) struct Receiving(PhantomData<*const ()>);

impl Receiving {
    pub(crate) fn begin() -> Self {
        RECEIVING.set(true);
        Self(PhantomData)
    }

    pub(crate) fn is_under_way() -> bool {
        RECEIVING.get()
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        RECEIVING.set(false);
    }
}
