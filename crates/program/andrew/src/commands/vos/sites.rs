//! `andrew vos addsite`, `remsite`, `changeloc` and `convertROtoRW`: changes of a volume's sites.

use super::ops::Ops;
use super::site_words::SiteWords;
use crate::error::CommandResult;
use crate::output;
use afs_admin::{ConvertOptions, ServerPartition};
use serde::Serialize;
use std::fmt;

/// Arguments for a volume and a partition.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    at: SiteWords,
    /// Name or number, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
}

/// Options of `andrew vos addsite`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The next `andrew vos release` writes the copy to the site.

Examples:
  andrew vos addsite 192.0.2.2 a projects && andrew vos release projects")]
pub struct AddArgs {
    #[command(flatten)]
    site: Args,
    /// The site already has a copy with the present state
    #[arg(long)]
    valid: bool,
}

/// Options of `andrew vos convertROtoRW`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
For use after the loss of the server with the read-write volume: changes since the last release are lost.

Examples:
  andrew vos convertROtoRW 192.0.2.2 a projects --force")]
pub struct ConvertArgs {
    #[command(flatten)]
    site: Args,
    /// Convert although the location database names a read-write volume elsewhere
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct SiteChange {
    done: &'static str,
    volume: String,
    place: String,
}

impl Args {
    fn parts(self, ops: &Ops) -> CommandResult<(ServerPartition, String)> {
        ops.place_and_volume(self.at.with(self.id))
    }

    /// Removes a read-only site from the entry.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::remove_site`].
    pub fn remove(self, ops: &Ops, json: bool) -> CommandResult {
        let (place, volume) = self.parts(ops)?;
        let name = volume.clone();
        ops.run(|admin| async move { admin.remove_site(&name, place).await })?;
        shown(json, "removed the site", volume, place)
    }

    /// Records in the entry that the read-write volume is at this site.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::change_location`].
    pub fn change(self, ops: &Ops, json: bool) -> CommandResult {
        let (place, volume) = self.parts(ops)?;
        let name = volume.clone();
        ops.run(|admin| async move { admin.change_location(&name, place).await })?;
        shown(json, "changed the place", volume, place)
    }
}

impl AddArgs {
    /// Adds the site.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::add_site`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let (place, volume) = self.site.parts(ops)?;
        let name = volume.clone();
        ops.run(|admin| async move { admin.add_site(&name, place, self.valid).await })?;
        shown(json, "added the site", volume, place)
    }
}

impl ConvertArgs {
    /// Converts the copy.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::convert`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let (place, volume) = self.site.parts(ops)?;
        let options = ConvertOptions { volume: volume.clone(), place, force: self.force };
        ops.run(|admin| async move { admin.convert(&options).await })?;
        shown(json, "made the copy read-write", volume, place)
    }
}

fn shown(json: bool, done: &'static str, volume: String, place: ServerPartition) -> CommandResult {
    output::show(json, &SiteChange { done, volume, place: place.to_string() });
    Ok(())
}

impl fmt::Display for SiteChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} on {}", self.volume, self.done, self.place)
    }
}
