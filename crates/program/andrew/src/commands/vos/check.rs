//! `andrew vos check`, and its halves under OpenAFS's names, `syncvldb` and `syncserv`.

use super::ops::Ops;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::{CheckDirection, CheckOptions, CheckResult, Finding, GivenUp, IllPartition, Remedy};
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;

/// Options of `andrew vos check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Compares the location database with the servers, and lists the inconsistencies; the exit
status is 1 if there are any. With --repair the database is corrected wherever that can be
decided: a volume without an entry gets one, a lost
read-only copy waits for the next release. Volumes are neither changed nor deleted: problems
that need a decision are listed with the command to run. The entry of a read-write volume that is
nowhere stays, unless --lost names it: a disk may be missing. Volumes of operations in progress, and
volumes on servers that do not reply or on partitions that are off line, are left alone.

Examples:
  andrew vos check
  andrew vos check 192.0.2.2 --repair
  andrew vos check --repair --lost user.alice
  andrew vos check --volume projects --json")]
pub struct Args {
    /// Only what is on this server, or should be
    #[arg(value_name = "SERVER", conflicts_with = "volume")]
    bare: Option<String>,
    /// The same
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["bare", "volume"])]
    server: Option<String>,
    /// Only this volume, by name or number
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    /// Repair the location database
    #[arg(long)]
    repair: bool,
    /// With --repair: remove the entries of these read-write volumes, which are lost
    #[arg(long, value_name = "NAME", num_args = 1.., requires = "repair")]
    lost: Vec<String>,
}

/// Options of `andrew vos syncvldb` and `syncserv`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
One direction of `andrew vos check --repair`, as in OpenAFS's vos: syncvldb enters the volumes that the
servers have, syncserv removes entries of volumes that they do not have, of read-write volumes too.

Examples:
  andrew vos syncvldb -server 192.0.2.2
  andrew vos syncserv -server 192.0.2.2 -dryrun")]
pub struct SyncArgs {
    /// Only what is on this server, or should be
    #[arg(value_name = "SERVER", conflicts_with = "volume")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["bare", "volume"])]
    server: Option<String>,
    /// Only this volume, by name or number
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    /// Only show what is wrong
    #[arg(long)]
    dryrun: bool,
}

#[derive(Serialize)]
struct Shown {
    #[serde(rename = "id")]
    volume: u32,
    name: String,
    server: Option<Ipv4Addr>,
    partition: Option<String>,
    /// Kind of the fault, as one word.
    fault: &'static str,
    says: String,
    /// `repair`, `mended`, `failed` or `person`.
    remedy: &'static str,
    /// A command that the administrator may run.
    run: Option<String>,
    /// Why the repair failed.
    error: Option<String>,
}

#[derive(Serialize)]
struct Unreachable {
    server: Ipv4Addr,
    why: String,
}

/// A partition that is not well.
#[derive(Serialize)]
struct ShownPartition {
    server: Ipv4Addr,
    partition: String,
    /// `offline` or `failing`.
    state: &'static str,
}

#[derive(Serialize)]
struct CheckReport {
    servers: usize,
    volumes: u64,
    findings: Vec<Shown>,
    silent: Vec<Unreachable>,
    partitions: Vec<ShownPartition>,
    /// Whether there were more faults than one check lists.
    more: bool,
}

impl Args {
    /// Compares the location database with the servers.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::check`]; status 1 if there is a fault, or a server does not reply.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let server = self.server.or(self.bare).map(|s| ops.server(&s)).transpose()?;
        check(
            ops,
            json,
            CheckOptions {
                server,
                volume: self.volume,
                direction: CheckDirection::Both,
                repair: self.repair,
                given_up: GivenUp::Named(self.lost),
            },
        )
    }
}

impl SyncArgs {
    /// Runs one direction of the check.
    ///
    /// # Errors
    /// As [`Args::run`].
    pub fn run(self, ops: &Ops, json: bool, direction: CheckDirection) -> CommandResult {
        let server = self.server.or(self.bare).map(|s| ops.server(&s)).transpose()?;
        let (repair, given_up) = (!self.dryrun, GivenUp::All);
        check(ops, json, CheckOptions { server, volume: self.volume, direction, repair, given_up })
    }
}

fn check(ops: &Ops, json: bool, options: CheckOptions) -> CommandResult {
    let repair = options.repair;
    let checked = ops.run(|admin| async move { admin.check(&options).await })?;
    let clean = checked.is_clean();
    let left = checked.findings.iter().filter(|f| f.remedy != Remedy::Mended).count();
    let mendable = checked.findings.iter().any(|f| f.remedy == Remedy::Repair);
    output::show(json, &CheckReport::from(checked));
    if clean {
        return Ok(());
    }
    let hint =
        if mendable && !repair { "; `andrew vos check --repair` repairs what can be decided" } else { "" };
    let what = match left {
        0 => "not everything could be checked".to_owned(),
        1 => "there is one problem".to_owned(),
        left => format!("there are {left} problems"),
    };
    Err(CommandError::failed(format!("vos: {what}{hint}")))
}

impl From<CheckResult> for CheckReport {
    fn from(checked: CheckResult) -> Self {
        let silent = checked.silent.into_iter().map(|s| Unreachable { server: s.server, why: s.why });
        Self {
            servers: checked.servers,
            volumes: checked.volumes,
            findings: checked.findings.into_iter().map(Shown::from).collect(),
            silent: silent.collect(),
            partitions: checked.partitions.iter().map(ShownPartition::from).collect(),
            more: checked.more,
        }
    }
}

impl From<&IllPartition> for ShownPartition {
    fn from(ill: &IllPartition) -> Self {
        let partition = super::entries::partition(ill.place.partition.check());
        Self { server: ill.place.server, partition, state: ill.state.word() }
    }
}

impl From<Finding> for Shown {
    fn from(finding: Finding) -> Self {
        let (remedy, run, error) = match finding.remedy {
            Remedy::Repair => ("repair", None, None),
            Remedy::Mended => ("mended", None, None),
            Remedy::Failed(why) => ("failed", None, Some(why)),
            Remedy::Person(run) => ("person", Some(run), None),
        };
        Self {
            volume: finding.volume.0,
            name: finding.name,
            server: finding.place.map(|p| p.server),
            partition: finding.place.map(|p| super::entries::partition(p.partition.check())),
            fault: finding.fault.word(),
            says: finding.says,
            remedy,
            run,
            error,
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "volume" } else { &self.name };
        write!(f, "{name} ({}): {}", self.volume, self.says)?;
        match (self.remedy, &self.run, &self.error) {
            (_, Some(run), _) => writeln!(f, "\n    decide, and run: {run}"),
            (_, _, Some(error)) => writeln!(f, "\n    could not be repaired: {error}"),
            ("mended", ..) => writeln!(f, ": mended"),
            _ => writeln!(f),
        }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|one| write!(f, "{one}"))?;
        for Unreachable { server, why } in &self.silent {
            writeln!(f, "server {server} does not reply, and its volumes were left alone: {why}")?;
        }
        for ShownPartition { server, partition, state } in &self.partitions {
            let so =
                if *state == "offline" { "off line, and its volumes were left alone" } else { "failing" };
            writeln!(f, "partition {partition} of server {server} is {so}; `andrew status` there says why")?;
        }
        if self.more {
            writeln!(f, "there are more problems than one check can list: check again afterwards")?;
        }
        let nothing = self.findings.is_empty() && self.silent.is_empty() && self.partitions.is_empty();
        let came = if nothing { ": all is well" } else { "" };
        let servers = if self.servers == 1 { "server" } else { "servers" };
        writeln!(f, "Checked {} volumes on {} {servers}{came}", self.volumes, self.servers)
    }
}
