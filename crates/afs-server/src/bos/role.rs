//! What a process can be, in the words of OpenAFS's tools.

/// What a process does for its cell. The names are those under which OpenAFS's servers usually run.
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

    /// What is said of it besides that it runs.
    pub(super) const fn auxiliary(self) -> &'static str {
        match self {
            Role::Files => "file server running",
            Role::Locations | Role::Protection => "",
        }
    }
}
