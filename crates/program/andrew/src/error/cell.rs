//! Exit status and advice for each error of `afs-cell`.

use super::{CommandError, is_bad_file};
use afs_cell::control::ControlError;
use afs_cell::state::StateError;
use afs_cell::tokens::TokenError;
use afs_cell::{CellError, ClientError, FileError, StartError};
use afs_fuse::MountError;

impl From<CellError> for CommandError {
    fn from(error: CellError) -> Self {
        let advice = advice(&error);
        Self::of(is_input(&error), format!("{error}{advice}"))
    }
}

/// End of the message: which options of `andrew` may help.
fn advice(error: &CellError) -> String {
    match error {
        CellError::State(error) => of_state(error).to_owned(),
        CellError::File(error) => of_file(error),
        CellError::Start(error) => of_start(error),
        CellError::Client(error) => of_client(error),
        CellError::Token(TokenError::Session) => "; unset it, or use `andrew run-with-token`".to_owned(),
        CellError::Token(TokenError::File { .. }) => "; `andrew login` makes a new one".to_owned(),
        CellError::Control(ControlError::NotRunning(_)) => {
            "; start one with `andrew up`, or name servers with --servers".to_owned()
        }
        CellError::SecretFile(_)
        | CellError::VersionedFile(_)
        | CellError::Cells(_)
        | CellError::Drives(_)
        | CellError::Token(_)
        | CellError::Control(_)
        | CellError::MountTable(_)
        | CellError::Path { .. } => String::new(),
    }
}

fn of_state(error: &StateError) -> &'static str {
    match error {
        StateError::NoHome => "; give --state DIR",
        StateError::Make { .. } | StateError::Unusable { .. } => "; give another with --state",
        StateError::InUse { .. } => "; stop it with `andrew down` or give another directory with --state",
        StateError::Record(_) => "",
    }
}

fn of_file(error: &FileError) -> String {
    match error {
        FileError::DatabasesHere => ", or add a host with --roles files".to_owned(),
        FileError::NoJoinFile(_) => "; make it with `andrew server add` on a server of the cell".to_owned(),
        FileError::OfAServer { config, .. } => format!(
            "; start it with `andrew serve --config {}`, or give another directory with --state",
            config.display()
        ),
        _ => String::new(),
    }
}

fn of_start(error: &StartError) -> String {
    match error {
        StartError::OtherCell { cell, .. } => {
            format!("; give --cell {cell}, or another directory with --state")
        }
        StartError::PortTaken(_) => ", or give other ports with --base-port".to_owned(),
        StartError::NotOfThisHost(_) => "; give one with --listen (`ip -4 addr` shows them)".to_owned(),
        StartError::NotJoined(_) => {
            "; on a server of the cell make a file with `andrew server add`, and start this one with `andrew serve --join FILE`".to_owned()
        }
        _ => String::new(),
    }
}

fn of_client(error: &ClientError) -> String {
    match error {
        ClientError::Cache { .. } => "; give another directory with --cache".to_owned(),
        ClientError::OpenCache { .. } => "; move away what is named, apart from unsaved data: the rest is fetched again; or give another directory with --cache".to_owned(),
        ClientError::CacheInUse { .. } => "; give another with --cache".to_owned(),
        ClientError::OtherCell { name, .. } => {
            format!("; give --cell {name}, or its own servers and --base-port")
        }
        ClientError::NoServer { .. } => "; check --servers and --base-port, or start its servers".to_owned(),
        _ => String::new(),
    }
}

/// Whether the command line, or a file or directory named there, was invalid.
fn is_input(error: &CellError) -> bool {
    match error {
        CellError::SecretFile(error) => is_bad_file(error),
        CellError::State(error) => !matches!(error, StateError::Record(_)),
        CellError::File(error) => match error {
            FileError::Configuration { .. }
            | FileError::DatabasesHere
            | FileError::NoJoinFile(_)
            | FileError::OfAServer { .. }
            | FileError::NotOfJoinFile(_)
            | FileError::Base64 { .. } => true,
            FileError::Read { .. }
            | FileError::Write { .. }
            | FileError::Keys { .. }
            | FileError::NewKey(_)
            | FileError::Text(_) => false,
        },
        CellError::Start(error) => is_input_of_start(error),
        CellError::Client(error) => is_input_of_client(error),
        CellError::Token(error) => matches!(error, TokenError::Session | TokenError::File { .. }),
        CellError::Control(error) => matches!(error, ControlError::NotRunning(_)),
        CellError::VersionedFile(_) | CellError::MountTable(_) | CellError::Drives(_) => false,
        CellError::Path { .. } | CellError::Cells(_) => true,
    }
}

fn is_input_of_start(error: &StartError) -> bool {
    match error {
        StartError::OtherCell { .. }
        | StartError::PortTaken(_)
        | StartError::NotOfThisHost(_)
        | StartError::NoKeys(_)
        | StartError::Etcd(_)
        | StartError::NoPassword(_)
        | StartError::PasswordNotText(_)
        | StartError::TwoDatabases(_)
        | StartError::NotJoined(_) => true,
        StartError::Listen { .. }
        | StartError::Offer(_)
        | StartError::Missing { .. }
        | StartError::NotThePartition { .. }
        | StartError::Store { .. }
        | StartError::DamagedStore { .. }
        | StartError::FirstStart(_)
        | StartError::LoginSecret { .. }
        | StartError::Shared { .. }
        | StartError::Copy(_)
        | StartError::HalfCopied
        | StartError::NothingToJoin(_)
        | StartError::Rename { .. }
        | StartError::Membership(_) => false,
    }
}

/// A fault of the mount point is invalid input; a fault of the machine is not.
fn is_input_of_client(error: &ClientError) -> bool {
    match error {
        ClientError::Cache { .. }
        | ClientError::CacheInUse { .. }
        | ClientError::CacheKey { .. }
        | ClientError::OtherCell { .. }
        | ClientError::Stores(_) => true,
        ClientError::Mount(error) => matches!(
            error,
            MountError::Missing(_)
                | MountError::NotDirectory(_)
                | MountError::NotEmpty(_)
                | MountError::Mounted(_)
        ),
        ClientError::OpenCache { .. }
        | ClientError::Key(_)
        | ClientError::Socket(_)
        | ClientError::Threads(_)
        | ClientError::Name(_)
        | ClientError::Unreachable { .. }
        | ClientError::NoServer { .. }
        | ClientError::NotStored(_)
        | ClientError::Unmount(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_cell::KeptOptions;
    use afs_cell::state::{CellProcess, StateDir};
    use std::net::{Ipv4Addr, SocketAddr};

    fn said(error: impl Into<CellError>) -> CommandError {
        CommandError::from(error.into())
    }

    #[test]
    fn a_state_directory_in_use_says_by_whom_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::resolve(Some(&dir.path().join("s"))).unwrap();
        state.make().unwrap();
        let mut lock = state.lock().unwrap();
        let own = CellProcess::own("andrew.local", Ipv4Addr::LOCALHOST, 7000);
        let running = CellProcess { pid: 4711, mount: Some("/home/a b/afs".into()), ..own };
        lock.record(&running).unwrap();
        let error = said(state.lock().unwrap_err());
        assert_eq!(error.status, CommandError::USAGE);
        assert_eq!(
            error.message,
            format!(
                "a cell is already running on {} (process 4711); stop it with `andrew down` or give another directory with --state",
                state.path().display()
            )
        );
    }

    #[test]
    fn damaged_options_are_named_with_what_is_to_be_done() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("options.toml"), "base_port = 'x'").unwrap();
        let error = said(KeptOptions::read(dir.path()).unwrap_err());
        let begins = format!("{}/options.toml is damaged: ", dir.path().display());
        assert!(
            error.message.starts_with(&begins) && error.message.contains("; give the options"),
            "{error}"
        );
        assert_eq!(error.status, CommandError::FAILURE);
    }

    #[test]
    fn advice_names_the_options_of_the_program() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 7000));
        for (error, message) in [
            (
                said(StartError::PortTaken(at)),
                "port 7000 of 127.0.0.1 is taken; stop what uses it, or give other ports with --base-port",
            ),
            (
                said(StartError::NotOfThisHost(at)),
                "127.0.0.1 is not an address of this host; give one with --listen (`ip -4 addr` shows them)",
            ),
            (
                said(FileError::DatabasesHere),
                "the databases of this cell are on this host alone; put them into etcd first (docs/servers.md), or add a host with --roles files",
            ),
            (
                said(FileError::NoJoinFile("/j".into())),
                "/j: not there; make it with `andrew server add` on a server of the cell",
            ),
            (
                said(FileError::OfAServer { state: "/s".into(), config: "/s/server.toml".into() }),
                "/s is of a server already; start it with `andrew serve --config /s/server.toml`, or give another directory with --state",
            ),
            (
                said(ClientError::CacheInUse { path: "/c".into(), holder: None }),
                "the cache /c is in use by another mount; give another with --cache",
            ),
            (
                said(TokenError::Session),
                "ANDREW_SESSION is not a session; unset it, or use `andrew run-with-token`",
            ),
            (
                said(ControlError::NotRunning("/s".into())),
                "no cell is running on /s; start one with `andrew up`, or name servers with --servers",
            ),
        ] {
            assert_eq!((error.message.as_str(), error.status), (message, CommandError::USAGE));
        }
    }

    #[test]
    fn a_cell_whose_servers_are_unreachable_is_a_failure() {
        let servers = vec![Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
        let cell = afs_wire::ids::CellName::new("example.org").unwrap();
        let error = said(ClientError::NoServer { cell, servers, port: 7003 });
        assert_eq!(error.status, CommandError::FAILURE);
        assert_eq!(
            error.message,
            "no location server of the cell example.org answers at 192.0.2.1, 192.0.2.2, port 7003; check --servers and --base-port, or start its servers"
        );
    }
}
