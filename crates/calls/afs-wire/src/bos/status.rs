//! Status and history of an instance.

use crate::ids::UnixSeconds;

id_without_display! {
    /// Whether an instance runs, or should run.
    pub struct RunState(i32);
}

impl RunState {
    /// It does not run.
    pub const SHUT_DOWN: Self = Self(0);
    /// It runs.
    pub const RUNNING: Self = Self(1);
    /// It is being stopped; never a goal.
    pub const SHUTTING_DOWN: Self = Self(2);
    /// It is being started; never a goal.
    pub const STARTING_UP: Self = Self(3);
}

/// Bits of [`InstanceStatus::flags`].
pub mod status_flags {
    /// There is a core file.
    pub const CORE_PRESENT: u32 = 1;
    /// It failed too often and is not restarted.
    pub const STOPPED_AFTER_ERRORS: u32 = 2;
    /// The server's directories are writable by others.
    pub const BAD_DIRECTORY_MODES: u32 = 4;
}

xdr_struct! {
    /// `bozo_status`, 68 bytes: the history of an instance.
    #[derive(Copy, Default)]
    pub struct InstanceStatus {
        /// Its current goal.
        pub goal: RunState,
        /// Its goal when the overseer starts.
        pub file_goal: RunState,
        /// When a process of it was started last; 0 for never, as in the other times.
        pub process_started: UnixSeconds,
        /// How many times processes were started.
        pub process_starts: i32,
        /// When a process ended last, for whatever reason.
        pub last_any_exit: UnixSeconds,
        /// When a process ended last that should not have.
        pub last_error_exit: UnixSeconds,
        /// Its exit code.
        pub error_code: i32,
        /// Its signal.
        pub error_signal: i32,
        /// See [`status_flags`].
        pub flags: u32,
        /// Zeros.
        pub spare: [i32; 8],
    }
}

impl InstanceStatus {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 68;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, Encode};

    #[test]
    fn sizes_and_places() {
        let status = InstanceStatus {
            goal: RunState::RUNNING,
            process_started: UnixSeconds(7),
            flags: status_flags::CORE_PRESENT,
            ..InstanceStatus::default()
        };
        let wire = status.to_bytes();
        assert_eq!(wire.len(), InstanceStatus::WIRE_LEN);
        assert_eq!((wire[3], wire[11], wire[35]), (1, 7, 1));
        assert_eq!(InstanceStatus::from_bytes(&wire), Ok(status));
    }
}
