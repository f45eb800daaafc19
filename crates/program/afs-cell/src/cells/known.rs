//! Cells that a mount knows beside its own, gathered from options, files and DNS.

use super::other::{FILE_PORT, LOCATION_PORT};
use super::{CellServDb, CellsError, Dns, DnsServers, OtherCell};
use crate::error::CellResult;
use crate::state::config_file;
use afs_rpc::EnvRef;
use afs_venus::{CellConfig, CellResolver, Resolved};
use afs_wire::ids::CellName;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file of cells in the user's directory of configuration.
const FILE: &str = "CellServDB";
/// That of OpenAFS's client.
const OPENAFS: &str = "/etc/openafs/CellServDB";
/// Longest file of cells that is read; the public one has 40 KiB.
const LEN_MAX: u64 = 4 << 20;

/// Which file of cells is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CellFile {
    /// `CellServDB` in the user's directory of configuration, then that of OpenAFS's client, as far as they exist. A bad line is a warning
    /// in the log.
    #[default]
    Usual,
    /// None.
    Off,
    /// This file. A bad line is an error.
    At(PathBuf),
}

/// Cells beside the home cell, for a mount.
#[derive(Clone, Debug, Default)]
pub struct OtherCells {
    /// Whether the mount shows the directory of all cells in place of the home cell's top directory.
    pub shows_all: bool,
    /// The cells that options name.
    pub named: Vec<OtherCell>,
    /// The cells of the files.
    pub listed: Vec<OtherCell>,
    /// DNS; `None`: cells are not looked up.
    pub dns: Option<DnsServers>,
}

impl OtherCells {
    /// Gathers what the options say.
    ///
    /// # Errors
    /// A file cannot be read, or one that was named has a bad line.
    pub fn gather(
        shows_all: bool,
        named: Vec<OtherCell>,
        file: &CellFile,
        dns: Option<DnsServers>,
    ) -> CellResult<Self> {
        let listed = match file {
            CellFile::Off => Vec::new(),
            CellFile::At(path) => strict(path)?,
            CellFile::Usual => {
                let usual = [config_file(FILE), Some(PathBuf::from(OPENAFS))];
                usual.into_iter().flatten().flat_map(|path| lenient(&path)).collect()
            }
        };
        Ok(Self { shows_all, named, listed, dns })
    }

    /// Location servers of a cell of which no option names any: those of a file, else of DNS.
    ///
    /// # Errors
    /// Neither knows the cell, or it is at other ports.
    pub fn servers_of(&self, cell: &CellName, location_port: u16, env: &EnvRef) -> CellResult<Vec<Ipv4Addr>> {
        if let Some(listed) = self.named.iter().chain(&self.listed).find(|listed| listed.name == *cell) {
            return Ok(listed.servers.clone());
        }
        let unknown = |tried: Option<String>| CellsError::NoServers { cell: cell.clone(), tried };
        let dns = self.dns.as_ref().ok_or_else(|| unknown(None))?;
        match Dns::new(env.clone(), dns.clone()).resolve_now(cell) {
            Resolved::Found { location_servers, .. } => of_port(cell, &location_servers, location_port),
            Resolved::NotFound { .. } => Err(unknown(Some("DNS has no such cell".into())).into()),
            Resolved::Failed(why) => Err(unknown(Some(format!("DNS: {why}"))).into()),
        }
    }

    /// All of them as the cache manager takes them, each once: an option counts before a file, and the home cell before both.
    pub(crate) fn configs(&self, home: &CellName) -> Vec<CellConfig> {
        let mut seen = BTreeSet::from([home.clone()]);
        let named = self.named.iter().map(|cell| cell.config(true));
        // A program that lists all cells would wait for each of them.
        let listed = self.listed.iter().map(|cell| cell.config(false));
        named.chain(listed).filter(|cell| seen.insert(cell.name.clone())).collect()
    }

    /// The look-up of further cells.
    pub(crate) fn resolver(&self, env: &EnvRef) -> Option<Arc<dyn CellResolver>> {
        let dns = self.dns.clone()?;
        Some(Arc::new(Dns::new(env.clone(), dns)))
    }
}

/// The addresses with a port.
fn of_port(cell: &CellName, found: &[SocketAddr], port: u16) -> CellResult<Vec<Ipv4Addr>> {
    let address = |peer: &SocketAddr| match peer.ip() {
        IpAddr::V4(ip) if peer.port() == port => Some(ip),
        _ => None,
    };
    let servers: Vec<Ipv4Addr> = found.iter().filter_map(address).collect();
    let other = found.first().map_or(LOCATION_PORT, SocketAddr::port);
    if servers.is_empty() {
        return Err(CellsError::OtherPort { cell: cell.clone(), port: other }.into());
    }
    Ok(servers)
}

fn strict(path: &Path) -> CellResult<Vec<OtherCell>> {
    let read = |error| CellsError::Read { path: path.to_owned(), error };
    let parsed = read_file(path).map_err(read)?;
    match parsed.bad.into_iter().next() {
        Some(bad) => Err(CellsError::Line { path: path.to_owned(), bad }.into()),
        None => Ok(cells_of(parsed.cells)),
    }
}

/// The same without errors: a file that this program does not own must not keep it from mounting.
fn lenient(path: &Path) -> Vec<OtherCell> {
    match read_file(path) {
        Ok(parsed) => {
            for bad in &parsed.bad {
                tracing::warn!("the file of cells {}, {bad}", path.display());
            }
            cells_of(parsed.cells)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            tracing::warn!("the file of cells {} cannot be read: {error}", path.display());
            Vec::new()
        }
    }
}

fn read_file(path: &Path) -> io::Result<CellServDb> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LEN_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(io::Error::other("it is longer than 4 MiB"));
    }
    Ok(CellServDb::parse(&bytes))
}

fn cells_of(listed: Vec<super::ListedCell>) -> Vec<OtherCell> {
    let other =
        |cell: super::ListedCell| OtherCell { name: cell.name, servers: cell.servers, base_port: FILE_PORT };
    listed.into_iter().map(other).collect()
}
