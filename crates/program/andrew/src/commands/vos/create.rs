//! `andrew vos create`: creates a volume.

use super::ops::{Ops, volume_id};
use super::site_words::{NamedSite, SiteWords};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::CreateOptions;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;

/// Options of `andrew vos create`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew vos create [OPTIONS] SERVER PARTITION NAME\n       andrew vos create [OPTIONS] NAME",
    after_help = "\
The name alone is enough if the cell runs here, or has one partition. A volume has no quota unless one
is given; `andrew fs setquota` sets one later.

Examples:
  andrew vos create projects && andrew fs mkmount ~/afs/projects projects
  andrew vos create -server localhost -partition a -name projects -maxquota 5000000"
)]
pub struct Args {
    #[command(flatten)]
    at: SiteWords,
    /// Name, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Quota in units of 1024 bytes; 0 is no limit
    #[arg(long, value_name = "KIB", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
    maxquota: i32,
    /// Number of the volume [default: the next free one]
    #[arg(long, value_name = "NUMBER")]
    id: Option<String>,
}

#[derive(Serialize)]
struct Created {
    name: String,
    id: u32,
    server: Ipv4Addr,
    partition: String,
}

impl Args {
    /// Creates the volume and its entry (docs/protocol/volserver.md "create").
    ///
    /// # Errors
    /// See [`afs_admin::Admin::create`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let options = self.options(ops)?;
        let (name, place) = (options.name.clone(), options.place);
        let id = ops.run(|admin| async move { admin.create(options).await })?;
        let partition = super::entries::partition(place.partition.check());
        output::show(json, &Created { name, id: id.0, server: place.server, partition });
        Ok(())
    }

    fn options(self, ops: &Ops) -> CommandResult<CreateOptions> {
        let missing = || {
            CommandError::usage(
                "vos: create needs a server, a partition and a name; see `andrew vos create --help`",
            )
        };
        let NamedSite { volume, server, partition, is_too_much } = self.at.with(self.name);
        let name = volume.filter(|_| !is_too_much).ok_or_else(missing)?;
        let place = ops.needed_place(server.as_deref(), partition.as_deref())?;
        let id = self.id.as_deref().map(volume_id).transpose()?;
        Ok(CreateOptions { name, place, quota: self.maxquota, id })
    }
}

impl fmt::Display for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume {} created on partition {} of {}", self.id, self.partition, self.server)
    }
}
