//! Calls on the programs, the logs and the clock of an overseer's host.

use super::{RestartKind, RestartTime, SERVICE, Text};
use crate::ids::UnixSeconds;
use crate::rpc::{Nothing, Streamed};

/// Bits of [`Prune::flags`].
pub mod prune_flags {
    /// Programs before the last.
    pub const OLD: i32 = 1;
    /// The last programs.
    pub const BAK: i32 = 2;
    /// Core files.
    pub const CORE: i32 = 4;
}

calls! {
    service SERVICE;

    /// Installs a program. Its path, size, mode and time are part of the bytes that follow: no server here decodes
    /// them.
    105 "Install" Install {} -> Nothing;

    /// Restores the program replaced by the last installation.
    106 "UnInstall" UnInstall { path: Text } -> Nothing;

    /// Reads the modification times of a program and of its older versions. 0 stands for a missing one.
    107 "GetDates" GetDates { path: Text } -> GetDatesReply {
        new: UnixSeconds,
        bak: UnixSeconds,
        old: UnixSeconds,
    };

    /// Runs a command of the shell.
    108 "Exec" Exec { command: Text } -> Nothing;

    /// Removes old programs and core files.
    109 "Prune" Prune {
        /// See [`prune_flags`].
        flags: i32,
    } -> Nothing;

    /// Sets a restart time.
    110 "SetRestartTime" SetRestartTime { kind: RestartKind, time: RestartTime } -> Nothing;

    /// Reads a restart time.
    111 "GetRestartTime" GetRestartTime { kind: RestartKind } -> GetRestartTimeReply { time: RestartTime };

    /// Reads a log: its bytes follow, ended by a NUL.
    112 "GetLog" GetLog { name: Text } -> Nothing;
}

impl Streamed for Install {
    const HEAD_LEN: usize = 4;
    const COUNT_LEN: usize = 0;
}
