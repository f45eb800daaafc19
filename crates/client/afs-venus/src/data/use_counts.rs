//! Reference counts of the data of a version: the last release determines what becomes of it.

/// Reference counts of one version of a file, changed by [`crate::files`] alone. Writers are also counted in the total,
/// and passthrough writers also as writers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct UseCounts {
    all: u32,
    writers: u32,
    passthrough: u32,
}

impl UseCounts {
    /// Number of handles and other references that prevent the data from being dropped.
    pub fn count(&self) -> u32 {
        self.all
    }

    /// Number of handles that may write.
    pub fn writers(&self) -> u32 {
        self.writers
    }

    /// Number of handles through which the kernel writes by passthrough.
    pub fn passthrough(&self) -> u32 {
        self.passthrough
    }

    /// Adds a reference, of a writer or not.
    pub fn add(&mut self, writes: bool) {
        self.all += 1;
        self.writers += u32::from(writes);
    }

    /// Removes a reference that was added with the same argument and is no passthrough writer any more.
    pub fn remove(&mut self, writes: bool) {
        self.all = self.all.saturating_sub(1);
        self.writers = self.writers.saturating_sub(u32::from(writes));
    }

    /// Counts a writer as a passthrough writer.
    pub fn add_passthrough(&mut self) {
        self.passthrough += 1;
    }

    /// Undoes that.
    pub fn remove_passthrough(&mut self) {
        self.passthrough = self.passthrough.saturating_sub(1);
    }
}
