//! Options of both `andrew up` and `andrew serve`.

use crate::error::{CommandError, CommandResult};
use afs_cell::state::StateDir;
use afs_cell::{BASE_PORT_MAX, BASE_PORT_MIN, CellIdentity, KeptOptions, Ports, ServerOptions};
use afs_wire::ids::{CellName, Rights};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Options of the servers.
#[derive(clap::Args, Debug)]
pub struct ServeOptions {
    /// State directory of the cell [default: $ANDREW_STATE, or ~/.local/state/andrew]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Name of the cell; cannot be changed after the first start [default: andrew.local]
    #[arg(long, value_name = "NAME", value_parser = cell_name)]
    pub cell: Option<CellName>,
    /// Address at which other hosts reach the servers [default: that of the last start, at first 127.0.0.1]
    #[arg(long, value_name = "IP")]
    pub listen: Option<Ipv4Addr>,
    /// Port of the file server; protection (+2), location (+3) and volume server (+5) follow from it [default: that of
    /// the last start, at first 7000]
    #[arg(long, value_name = "PORT",
          value_parser = clap::value_parser!(u16).range(i64::from(BASE_PORT_MIN)..=i64::from(BASE_PORT_MAX)))]
    pub base_port: Option<u16>,
    /// Rights of everyone in the top directory of a new cell: letters of rlidwka, or read, write, none
    #[arg(long, value_name = "RIGHTS", default_value = "rl", value_parser = rights)]
    pub anyuser: Rights,
    /// Make a key for rxkad if there is none, so that OpenAFS's tools and clients can authenticate; rxkad is weak
    #[arg(long)]
    pub rxkad: bool,
    /// Serve the bytes of files by TCP and TLS as well, at the port of the file server [default: that of the last start,
    /// at first true]
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub serve_data_path: Option<bool>,
}

/// Default base port.
const BASE_PORT: u16 = 7000;
/// Default cell name.
const CELL: &str = "andrew.local";

impl ServeOptions {
    /// The state directory.
    ///
    /// # Errors
    /// There is no home directory for the default.
    pub fn state(&self) -> CommandResult<StateDir> {
        Ok(StateDir::resolve(self.state.as_deref())?)
    }

    /// The options to keep in the state directory.
    #[must_use]
    pub fn to_keep(&self) -> KeptOptions {
        let (listen, base_port, serve_data_path) = (self.listen, self.base_port, self.serve_data_path);
        KeptOptions { listen, base_port, serve_data_path, ..KeptOptions::default() }
    }

    /// Options of the servers; `options` has those that were given now or at an earlier start. The name of an existing
    /// cell need not be repeated.
    ///
    /// # Errors
    /// An address that clients could not use, or a state directory that cannot be read.
    pub fn servers(&self, state: &StateDir, options: &KeptOptions) -> CommandResult<ServerOptions> {
        let listen = options.listen.unwrap_or(Ipv4Addr::LOCALHOST);
        if listen.is_unspecified() || listen.is_multicast() || listen.is_broadcast() {
            return Err(CommandError::usage(format!(
                "clients cannot reach {listen}; give one address of this host with --listen (`ip -4 addr` shows them)"
            )));
        }
        let kept = || CellIdentity::read(state.path()).map(|i| i.map(|i| i.cell));
        let cell = match &self.cell {
            Some(cell) => Some(cell.clone()),
            None => kept()?,
        };
        let cell = cell.map_or_else(|| CellName::new(CELL), Ok).map_err(CommandError::failed)?;
        let ports = Ports::from(options.base_port.unwrap_or(BASE_PORT));
        let alone = ServerOptions::alone(state.path(), cell, listen, ports);
        let data_path = alone.data_path.clone().filter(|_| options.serve_data_path != Some(false));
        Ok(ServerOptions { anyuser: self.anyuser, rxkad: self.rxkad, data_path, ..alone })
    }
}

/// Parses a cell name.
pub(super) fn cell_name(text: &str) -> Result<CellName, String> {
    CellName::new(text).map_err(|e| e.to_string())
}

/// Parses rights: letters or words.
fn rights(text: &str) -> Result<Rights, String> {
    match text {
        "none" => Ok(Rights::default()),
        "read" => Ok(Rights(0x09)),
        "write" => Ok(Rights(0x3f)),
        "all" => Ok(Rights(0x7f)),
        letters => letters
            .parse()
            .map_err(|_| "rights are letters of rlidwka, or read, write, all or none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(listen: Ipv4Addr) -> ServeOptions {
        ServeOptions {
            state: None,
            cell: None,
            listen: Some(listen),
            base_port: None,
            anyuser: Rights::default(),
            rxkad: false,
            serve_data_path: None,
        }
    }

    #[test]
    fn an_address_that_names_no_host_is_refused() {
        let state = StateDir::resolve(Some("/nonexistent".as_ref())).unwrap();
        let servers = |listen| options(listen).servers(&state, &options(listen).to_keep());
        let error = servers(Ipv4Addr::UNSPECIFIED).unwrap_err();
        assert_eq!(
            error.message,
            "clients cannot reach 0.0.0.0; give one address of this host with --listen (`ip -4 addr` shows them)"
        );
        assert_eq!(servers(Ipv4Addr::LOCALHOST).unwrap().cell.as_str(), CELL);
    }

    #[test]
    fn the_data_path_is_on_unless_it_was_switched_off() {
        let state = StateDir::resolve(Some("/nonexistent".as_ref())).unwrap();
        let given = |serve_data_path| ServeOptions { serve_data_path, ..options(Ipv4Addr::LOCALHOST) };
        let is_on = |data_path| {
            let given = given(data_path);
            given.servers(&state, &given.to_keep()).unwrap().data_path.is_some()
        };
        assert_eq!([is_on(None), is_on(Some(true)), is_on(Some(false))], [true, true, false]);
    }

    #[test]
    fn rights_are_letters_or_words() {
        assert_eq!(rights("rl"), Ok(Rights(9)));
        assert_eq!(rights("write"), Ok(Rights(63)));
        assert_eq!(rights("none"), Ok(Rights(0)));
        assert_eq!(
            rights("xyz"),
            Err("rights are letters of rlidwka, or read, write, all or none".to_owned())
        );
    }
}
