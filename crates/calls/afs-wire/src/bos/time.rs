//! Restart times of an overseer.

id_without_display! {
    /// Which restart time.
    pub struct RestartKind(i32);
}

impl RestartKind {
    /// Restart of everything.
    pub const EVERYTHING: Self = Self(1);
    /// Restart of servers with a newer program.
    pub const NEW_PROGRAMS: Self = Self(2);
}

/// Bits of [`RestartTime::mask`].
pub mod time_mask {
    /// The hour counts.
    pub const HOUR: i32 = 1;
    /// The minute counts.
    pub const MINUTE: i32 = 2;
    /// The second counts.
    pub const SECOND: i32 = 4;
    /// The day of the week counts.
    pub const DAY: i32 = 8;
    /// Never.
    pub const NEVER: i32 = 0x10;
    /// At once.
    pub const NOW: i32 = 0x20;
}

xdr_struct! {
    /// `bozo_netKTime`: a time of the day or the week, 20 bytes.
    #[derive(Copy, Default)]
    pub struct RestartTime {
        /// What counts; see [`time_mask`].
        pub mask: i32,
        /// 0 to 23.
        pub hour: i32,
        /// 0 to 59.
        pub minute: i32,
        /// 0 to 59.
        pub second: i32,
        /// 0 is Sunday.
        pub day: i32,
    }
}

impl RestartTime {
    /// No time at all.
    pub const NEVER: Self = Self { mask: time_mask::NEVER, hour: 0, minute: 0, second: 0, day: 0 };
}
