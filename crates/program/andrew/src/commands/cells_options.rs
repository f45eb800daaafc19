//! Options of the cells that a mount knows, of all commands that mount.

use afs_cell::cells::OtherCell;
use afs_cell::{DnsUse, KeptCells, mounts};
use std::path::PathBuf;

/// Which cells a mount knows beside its own, and whether it shows them.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct CellsOptions {
    /// Show a directory of cells, as /afs is: DIR/CELL for each cell that the mount knows or DNS has, and DIR/.CELL for its read-write
    /// volumes; without it the top directory of one cell. Only cells that were used, or are named by options, are listed
    /// [default: off; of `andrew up` as in the last start]
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dynroot: Option<bool>,
    /// Another cell and its location servers; repeat it for further cells. Mount points may lead to it
    #[arg(long, value_name = "NAME=IP[,IP...][:PORT]")]
    other_cell: Vec<OtherCell>,
    /// File of further cells, in the format of OpenAFS's CellServDB, or "off" [default: ~/.config/andrew/CellServDB, and
    /// /etc/openafs/CellServDB]
    #[arg(long, value_name = "FILE")]
    cellservdb: Option<PathBuf>,
    /// Look up cells that no option and no file names in DNS (SRV and AFSDB records): on, off, or the server to ask [default: on with
    /// --dynroot, otherwise off]
    #[arg(long, value_name = "on|off|IP[:PORT]")]
    dns: Option<DnsUse>,
}

impl CellsOptions {
    /// What was given; the path of a file is made absolute.
    ///
    /// # Errors
    /// The current directory does not exist any more.
    pub fn given(&self) -> crate::error::CommandResult<KeptCells> {
        let absolute = |path: &PathBuf| match path.as_os_str() == "off" {
            true => Ok(path.clone()),
            false => mounts::absolute(path),
        };
        Ok(KeptCells {
            dynroot: self.dynroot,
            others: (!self.other_cell.is_empty()).then(|| self.other_cell.clone()),
            file: self.cellservdb.as_ref().map(absolute).transpose()?,
            dns: self.dns,
        })
    }
}
