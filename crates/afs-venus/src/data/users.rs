//! Who uses the data of a version, counted: so that it is dropped by the last of them, and not before.

/// Users of one version of a file. Each is counted when it comes and not any more when it leaves, by [`crate::files`] alone.
/// Of the users some are writers, and of the writers some are direct.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Users {
    all: u32,
    writers: u32,
    direct: u32,
}

impl Users {
    /// Handles that read or write it, and whoever else must not lose it.
    pub fn count(&self) -> u32 {
        self.all
    }

    /// Handles that may write.
    pub fn writers(&self) -> u32 {
        self.writers
    }

    /// Handles through which the kernel may write without telling us.
    pub fn direct(&self) -> u32 {
        self.direct
    }

    /// One more, who may write or not.
    pub fn come(&mut self, writes: bool) {
        self.all += 1;
        self.writers += u32::from(writes);
    }

    /// One that came as such a one, and is not direct any more.
    pub fn leave(&mut self, writes: bool) {
        self.all = self.all.saturating_sub(1);
        self.writers = self.writers.saturating_sub(u32::from(writes));
    }

    /// The kernel writes by itself for one of the writers.
    pub fn go_direct(&mut self) {
        self.direct += 1;
    }

    /// It does so no more.
    pub fn leave_direct(&mut self) {
        self.direct = self.direct.saturating_sub(1);
    }
}
