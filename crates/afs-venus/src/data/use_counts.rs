//! Who uses the data of a version, counted: so that it is dropped by the last of them, and not before.

/// Users of one version of a file. Each is counted when it comes and not any more when it leaves, by [`crate::files`] alone.
/// Of the users some are writers, and of the writers some are direct.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct UseCounts {
    all: u32,
    writers: u32,
    passthrough: u32,
}

impl UseCounts {
    /// Handles that read or write it, and whoever else must not lose it.
    pub fn count(&self) -> u32 {
        self.all
    }

    /// Handles that may write.
    pub fn writers(&self) -> u32 {
        self.writers
    }

    /// Handles through which the kernel may write without telling us.
    pub fn passthrough(&self) -> u32 {
        self.passthrough
    }

    /// One more, who may write or not.
    pub fn add(&mut self, writes: bool) {
        self.all += 1;
        self.writers += u32::from(writes);
    }

    /// One that came as such a one, and is not direct any more.
    pub fn remove(&mut self, writes: bool) {
        self.all = self.all.saturating_sub(1);
        self.writers = self.writers.saturating_sub(u32::from(writes));
    }

    /// The kernel writes by itself for one of the writers.
    pub fn add_passthrough(&mut self) {
        self.passthrough += 1;
    }

    /// It does so no more.
    pub fn remove_passthrough(&mut self) {
        self.passthrough = self.passthrough.saturating_sub(1);
    }
}
