//! A mark on the thread that stands for a socket's receiving thread, so that disks can count what it reads itself.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static RECEIVING: Cell<bool> = const { Cell::new(false) };
}

/// Datagrams are being handled on this thread, until this is dropped.
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
