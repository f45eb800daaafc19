//! `andrew server empty`: moves all volumes away from a server.

use crate::commands::vos::ops::{Ops, partition_id};
use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::units;
use afs_admin::{EmptyOptions, EmptyPlan, EmptyTask};
use serde::Serialize;
use std::collections::VecDeque;
use std::fmt;

use parking_lot::Mutex;

/// Options of `andrew server empty`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Read-write volumes are moved while they are in use, each to the partition with the most free space, and their backup volumes
are made anew. Read-only copies are removed if there are others; the last one is first made on another server. If interrupted,
run the same command again to resume; an interrupted move is undone or completed by the cell's
servers.

Examples:
  andrew server empty 192.0.2.2 --plan
  andrew server empty 192.0.2.2 --to 192.0.2.1,192.0.2.3")]
pub struct Args {
    /// Name of the server, or any of its addresses
    #[arg(value_name = "SERVER")]
    server: String,
    /// Servers to move the volumes to [default: all others that reply]
    #[arg(long, value_name = "SERVER", value_delimiter = ',')]
    to: Vec<String>,
    /// Only this partition
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Show what would be done without doing it
    #[arg(long)]
    plan: bool,
    /// Number of volumes to move at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    jobs: u8,
}

#[derive(Serialize)]
struct Step {
    volume: String,
    #[serde(rename = "size_bytes", serialize_with = "units::bytes")]
    size_kib: i64,
    from: Option<String>,
    to: Option<String>,
    /// Where a read-only copy is created first.
    copy_to: Option<String>,
    /// Where read-only copies are removed.
    copies_removed: Vec<String>,
    done: bool,
}

#[derive(Serialize)]
struct RemainingVolume {
    volume: String,
    why: String,
}

#[derive(Serialize)]
struct Emptied {
    server: String,
    /// Whether this is only a plan.
    plan: bool,
    volumes: Vec<Step>,
    left: Vec<RemainingVolume>,
}

impl Args {
    /// Moves the volumes away.
    ///
    /// # Errors
    /// The location database or the server does not reply, there is no target, or some volume is left.
    pub(super) fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let options = EmptyOptions {
            server: ops.server(&self.server)?,
            partition: self.partition.as_deref().map(partition_id).transpose()?,
            to: self.to.iter().map(|name| ops.server(name)).collect::<CommandResult<_>>()?,
        };
        let server = options.server.to_string();
        let plan = ops.run(|admin| async move { admin.plan_empty(&options).await })?;
        let mut left = left(&plan);
        let outcomes = if self.plan { Vec::new() } else { work(ops, &plan, self.jobs) };
        for (task, outcome) in plan.tasks.iter().zip(&outcomes) {
            if let Err(error) = outcome {
                left.push(RemainingVolume { volume: task.name.clone(), why: error.message.clone() });
            }
        }
        let done = |index: usize| outcomes.get(index).is_some_and(Result::is_ok);
        let volumes = plan.tasks.iter().enumerate().map(|(index, task)| step(task, done(index))).collect();
        let count = left.len();
        output::show(json, &Emptied { server: server.clone(), plan: self.plan, volumes, left });
        match count {
            0 => Ok(()),
            _ if self.plan => Ok(()),
            count => Err(CommandError::failed(format!(
                "{count} volumes are still on {server}; resolve the problems above and run the same command again"
            ))),
        }
    }
}

/// Volumes that will be left when the plan is carried out.
fn left(plan: &EmptyPlan) -> Vec<RemainingVolume> {
    let stays =
        plan.stays.iter().map(|(volume, why)| RemainingVolume { volume: volume.clone(), why: why.clone() });
    let unlisted = plan.unlisted.iter().map(|(id, place)| RemainingVolume {
        volume: id.0.to_string(),
        why: format!("it is on {place} and not in the VLDB; examine it, and remove it with `andrew vos zap`"),
    });
    stays.chain(unlisted).collect()
}

/// Runs the tasks, some at a time, or fewer if the system grants no more threads; returns their outcomes in order.
fn work(ops: &Ops, plan: &EmptyPlan, jobs: u8) -> Vec<CommandResult> {
    let queue: Mutex<VecDeque<(usize, &EmptyTask)>> = Mutex::new(plan.tasks.iter().enumerate().collect());
    let outcomes = Mutex::new(plan.tasks.iter().map(|_| Ok(())).collect::<Vec<CommandResult>>());
    let work = || {
        loop {
            let next = queue.lock().pop_front();
            let Some((index, task)) = next else { break };
            let outcome = ops.run(|admin| async move { admin.empty_one(task).await });
            if let Some(slot) = outcomes.lock().get_mut(index) {
                *slot = outcome;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..usize::from(jobs).min(plan.tasks.len()) {
            if let Err(error) = std::thread::Builder::new().name("empty".into()).spawn_scoped(scope, work) {
                tracing::debug!("fewer at a time: {error}");
            }
        }
        work();
    });
    outcomes.into_inner()
}

fn step(task: &EmptyTask, done: bool) -> Step {
    Step {
        volume: task.name.clone(),
        size_kib: task.size_kib,
        from: task.moved.map(|(from, _)| from.to_string()),
        to: task.moved.map(|(_, to)| to.to_string()),
        copy_to: task.copied.map(|place| place.to_string()),
        copies_removed: task.removed.iter().map(ToString::to_string).collect(),
        done,
    }
}

impl fmt::Display for Emptied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, plan, volumes, left } = self;
        if volumes.is_empty() && left.is_empty() {
            return writeln!(f, "{server} has no volumes");
        }
        for step in volumes.iter().filter(|step| *plan || step.done) {
            write!(f, "{step}")?;
        }
        for RemainingVolume { volume, why } in left {
            writeln!(f, "{volume} stays: {why}")?;
        }
        let done = volumes.iter().filter(|step| step.done).count();
        match (plan, left.len()) {
            (true, left) => {
                writeln!(
                    f,
                    "{} to process, {left} cannot be processed; nothing has been done yet",
                    volumes.len()
                )
            }
            (false, 0) => writeln!(f, "{server} is empty: {done} volumes processed"),
            (false, left) => writeln!(f, "{done} volumes processed, {left} are left"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { volume, size_kib, .. } = self;
        if let Some(to) = &self.copy_to {
            writeln!(f, "{volume} ({size_kib} K): a read-only copy on {to}")?;
        }
        if let (Some(from), Some(to)) = (&self.from, &self.to) {
            writeln!(f, "{volume} ({size_kib} K): from {from} to {to}")?;
        }
        self.copies_removed.iter().try_for_each(|place| writeln!(f, "{volume}.readonly: off {place}"))
    }
}
