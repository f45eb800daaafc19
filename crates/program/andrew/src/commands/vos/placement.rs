//! `andrew vos setcopies` and `setwidth`: on which drives of its file server the data of a volume go.

use super::ops::Ops;
use super::single_volume::changed;
use crate::error::CommandResult;
use afs_wire::vol::DriveCount;

/// Options of `andrew vos setcopies`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A store then waits until its data are durable on so many of the drives that `andrew drive use NAME --copy OTHER` lists for the
partition, so that what a program has stored survives the loss of any one of them. While one of them is away or full, stores succeed
with the others, and the copies that are missing are made when it is back. 1 has no copies made at all. With default, a store
waits for the first drive, and the others get copies in the background.
What is stored already gets its copies in the background; copies beyond the number stay.
Files of up to 16 KiB, directories and names are on the disk of the file server alone.
Clients that store at drives themselves (`andrew vos setpath NAME nasd`) store at all of them.
A move, release or copy takes the setting along; what is restored from a dump has the default.

Examples:
  andrew drive use big --copy other
  andrew vos setcopies projects 2
  andrew vos setcopies scratch 1")]
pub struct CopiesArgs {
    /// The volume's name or number
    #[arg(value_name = "NAME")]
    volume: String,
    /// On how many drives data are when a store is complete
    #[arg(value_name = "COPIES", value_parser = ["1", "2", "3", "default"])]
    copies: String,
}

/// Options of `andrew vos setwidth`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The mebibytes of each file go round so many of the drives that `andrew drive use NAME --copy OTHER` lists for the partition, so that a
large file is read from all of them at once. Copies of each part are on other drives than the part. What is stored stays where it is.
Without copies (`andrew vos setcopies NAME 1`) a file needs all of these drives.
Clients that store at drives themselves (`andrew vos setpath NAME nasd`) go round the same drives.
A move, release or copy takes the setting along; what is restored from a dump has the default, 1.

Examples:
  andrew drive use big --copy other --copy third
  andrew vos setwidth videos 3")]
pub struct WidthArgs {
    /// The volume's name or number
    #[arg(value_name = "NAME")]
    volume: String,
    /// Over how many drives the data of a file go round
    #[arg(value_name = "WIDTH", value_parser = clap::value_parser!(u32).range(1..=i64::from(DriveCount::MAX)))]
    width: u32,
}

impl CopiesArgs {
    /// Sets the number.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::set_copies`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let copies = self.copies.parse().ok().and_then(DriveCount::new);
        let done = match copies {
            Some(DriveCount::ONE) => "set to 1 drive, without copies".to_owned(),
            Some(count) => format!("set to {count} drives before a store is complete"),
            None => "set to the default of its partition".to_owned(),
        };
        changed(
            ops,
            json,
            self.volume,
            done,
            |admin, name| async move { admin.set_copies(&name, copies).await },
        )
    }
}

impl WidthArgs {
    /// Sets the number.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::set_width`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let width = DriveCount::new(self.width).unwrap_or(DriveCount::ONE);
        changed(ops, json, self.volume, format!("set to a width of {width}"), |admin, name| async move {
            admin.set_width(&name, width).await
        })
    }
}
