//! Roles of a server process, with the names that OpenAFS's tools use.

/// A role of a process in its cell. Its name is the instance name that OpenAFS's servers usually have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// File service and volume service: `fs`.
    Files,
    /// Location service: `vlserver`.
    Locations,
    /// Protection service: `ptserver`.
    Protection,
}

impl Role {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Role::Files => "fs",
            Role::Locations => "vlserver",
            Role::Protection => "ptserver",
        }
    }

    pub(super) const fn kind(self) -> &'static str {
        match self {
            Role::Files => "fs",
            Role::Locations | Role::Protection => "simple",
        }
    }

    /// Status text besides "running".
    pub(super) const fn auxiliary(self) -> &'static str {
        match self {
            Role::Files => "file server running",
            Role::Locations | Role::Protection => "",
        }
    }
}
