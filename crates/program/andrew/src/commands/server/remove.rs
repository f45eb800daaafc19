//! `andrew server remove`: removes a server from the location database.

use crate::commands::vos::ops::Ops;
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;

/// Options of `andrew server remove`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Refused while the location database has a volume on the server: `andrew server empty` moves the volumes to others.

Examples:
  andrew server empty 192.0.2.2 && andrew server remove 192.0.2.2")]
pub struct Args {
    /// Name of the server, or any of its addresses
    #[arg(value_name = "SERVER")]
    server: String,
}

#[derive(Serialize)]
struct Removed {
    addresses: Vec<Ipv4Addr>,
    uuid: Option<String>,
    /// Whether it is also one of the cell's database servers.
    database: bool,
}

impl Args {
    /// Removes the server from the location database.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::remove_server`].
    pub(super) fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let address = ops.server(&self.server)?;
        let server = ops.run(|admin| async move { admin.remove_server(address).await })?;
        let database = ops.location_servers().iter().any(|other| server.addresses.contains(other));
        let uuid = server.uuid.map(|uuid| uuid.to_string());
        output::show(json, &Removed { addresses: server.addresses, uuid, database });
        Ok(())
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        writeln!(f, "{} is removed from the location database", addresses.join(", "))?;
        writeln!(
            f,
            "on that host, run `andrew down` and remove its state directory, which contains the cell's keys;"
        )?;
        writeln!(f, "if started again, it would register itself again")?;
        if self.database {
            writeln!(
                f,
                "it is a database server, too: remove it from database_servers and endpoints in the other hosts'"
            )?;
            writeln!(
                f,
                "server.toml, from etcd (`etcdctl member remove`), and from --servers of the clients"
            )?;
        }
        Ok(())
    }
}
