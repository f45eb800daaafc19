//! `andrew vos release`: brings the replicas of a volume up to date.

use super::ops::Ops;
use crate::error::CommandResult;
use crate::output;
use afs_admin::ReleaseOptions;
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos release`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
All sites are written in parallel. A site shows the new state only when it is complete. If nothing has changed
since the last release, nothing is done. Sites that cannot be reached get it with the next release.

Examples:
  andrew vos release projects
  andrew vos release projects --back-out")]
pub struct Args {
    /// The volume's name or number
    #[arg(value_name = "NAME", required_unless_present = "id")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME", conflicts_with = "bare")]
    id: Option<String>,
    /// Send everything to every site, even if nothing has changed
    #[arg(long)]
    force: bool,
    /// End a release that did not reach every site: those that have the new state keep it, the others the old one
    #[arg(long, conflicts_with = "force")]
    back_out: bool,
}

#[derive(Serialize)]
struct Released {
    #[serde(rename = "id")]
    volume: u32,
    name: String,
    sites: Vec<String>,
    unchanged: bool,
    backed_out: bool,
}

impl Args {
    /// Releases the volume.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::release`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let name = self.bare.or(self.id).unwrap_or_default();
        let options = ReleaseOptions { volume: name.clone(), force: self.force, back_out: self.back_out };
        let done = ops.run(|admin| async move { admin.release(options).await })?;
        let sites = done.sites.iter().map(ToString::to_string).collect();
        let (volume, unchanged, backed_out) = (done.volume.0, done.unchanged, self.back_out);
        output::show(json, &Released { volume, name, sites, unchanged, backed_out });
        Ok(())
    }
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unchanged {
            return writeln!(f, "Nothing has changed in {} since its last release", self.name);
        }
        if self.backed_out {
            return writeln!(
                f,
                "The release of {} is ended; sites without the new state keep the old one",
                self.name
            );
        }
        for site in &self.sites {
            writeln!(f, "  {site} has the new state")?;
        }
        writeln!(f, "Released volume {} successfully", self.name)
    }
}
