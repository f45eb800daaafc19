//! `andrew fs explain`: what the mount on this machine knows of paths.

use super::attribute;
use super::path_in_mount;
use super::paths::Paths;
use crate::commands::duration_text::in_words;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::tokens::{Mounts, SessionId};
use afs_venus::{
    ExplainedData, ExplainedLocks, ExplainedPromise, ExplainedRights, ExplainedServer, Explanation,
    Unpromised,
};
use rustix::io::Errno;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs explain`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The mount on this machine tells what it knows; no server is asked, so that the answer comes at once when
servers are down, too. What is said to be unknown may be known after the path was used.

Servers: which one is used and why, since when one does not answer, its last errors, whether bytes of
files come by its data path, and the drives at which they are read past it. Promise: while it is held, the server tells this machine of changes, and what
is cached is current. Rights: those that the server has reported to this user, and with whose token.

Examples:
  andrew fs explain ~/afs/slow.iso
  andrew fs explain --json ~/afs/readme | jq '.[0].servers[].errors'")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

#[derive(Serialize)]
struct Explained {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    #[serde(flatten)]
    told: Explanation,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Answer(Vec<Explained>);

impl Args {
    /// Prints what is known of the paths.
    ///
    /// # Errors
    /// The first path that is not in a mount of this user's or of root's, or whose mount does not reply.
    pub fn run(self, json: bool) -> CommandResult {
        let all = self.paths.all().into_iter().map(explain).collect::<CommandResult<_>>()?;
        output::show(json, &Answer(all));
        Ok(())
    }
}

fn explain(path: PathBuf) -> CommandResult<Explained> {
    let (mount, rest) = path_in_mount::split(&path)?;
    if afs_cell::mounts::is_dead(&mount.directory) {
        return Err(attribute::explain(&path, Errno::NOTCONN));
    }
    let shown = path.display();
    match Mounts::running().explain(&mount.device, SessionId::current()?, &rest) {
        Ok(Some(told)) => Ok(Explained { path, told: *told }),
        Ok(None) => Err(CommandError::failed(format!(
            "fs: the mount of '{shown}' is another user's, who alone can ask it; see `andrew status`"
        ))),
        Err(error) => {
            Err(CommandError::failed(format!("fs: the mount of '{shown}' gives no answer: {error}")))
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|explained| {
            writeln!(f, "{}", explained.path.display())?;
            write_told(f, &explained.told)
        })
    }
}

fn write_told(f: &mut fmt::Formatter<'_>, told: &Explanation) -> fmt::Result {
    if let Some(why) = &told.unknown {
        writeln!(f, "  not known: {why}")?;
        writeln!(f, "  what follows is of '/{}' in the mount", told.known_path)?;
    }
    write_place(f, told)?;
    told.servers.iter().try_for_each(|server| write_server(f, server))?;
    match &told.promise {
        Some(promise) => writeln!(f, "  promise: {}", promise_text(promise))?,
        None => writeln!(f, "  promise: not known")?,
    }
    match &told.status {
        Some(status) => {
            let how = if status.is_current {
                "cached and current"
            } else {
                "cached, to be fetched at the next use"
            };
            writeln!(f, "  status: {how}; version {}, {} bytes", status.data_version, status.length_bytes)?;
        }
        None => writeln!(f, "  status: not cached, or not for this user")?,
    }
    told.data.iter().try_for_each(|data| writeln!(f, "  data: {}", data_text(data)))?;
    if let Some(bypass) = &told.bypass {
        let how = if bypass.is_bypassed { "bypasses the disk cache" } else { "is cached" };
        let by = if bypass.reason == "none" { String::new() } else { format!(" by its {}", bypass.reason) };
        writeln!(f, "  cache: {how}{by} (request: {})", bypass.request)?;
    }
    told.rights.iter().try_for_each(|rights| writeln!(f, "  rights: {}", rights_text(rights)))?;
    open_in_spite_of_mode(told).map_or(Ok(()), |text| writeln!(f, "  others: {text}"))?;
    told.locks.iter().try_for_each(|locks| writeln!(f, "  locks: {}", locks_text(locks)))
}

fn write_place(f: &mut fmt::Formatter<'_>, told: &Explanation) -> fmt::Result {
    let kind = told.kind.as_deref().unwrap_or("object of unknown type");
    write!(f, "  {kind}")?;
    if let Some(fid) = &told.fid {
        write!(f, " {}.{}.{}", fid.volume, fid.vnode, fid.unique)?;
    }
    if let Some(cell) = &told.cell {
        write!(f, " in cell {cell}")?;
    }
    writeln!(f)?;
    match &told.volume {
        Some(volume) => {
            let ago = in_words(volume.located_seconds_ago);
            writeln!(f, "  volume: {} ({}, {}), located {ago} ago", volume.name, volume.id, volume.kind)
        }
        None => writeln!(f, "  volume: not known"),
    }
}

fn write_server(f: &mut fmt::Formatter<'_>, server: &ExplainedServer) -> fmt::Result {
    let used = if server.is_used { "used" } else { "not used" };
    write!(f, "  server {}: {used}, {}", server.addresses.join(" "), server.reason)?;
    if let Some(time) = server.unreachable_seconds {
        write!(f, "; has not answered for {}", in_words(time))?;
    }
    match server.last_reply_seconds_ago {
        Some(time) => write!(f, "; last reply {} ago", in_words(time))?,
        None => write!(f, "; has never replied to this mount")?,
    }
    if let Some(micros) = server.round_trip_micros {
        write!(f, "; round trip {}.{:03} ms", micros / 1000, micros % 1000)?;
    }
    writeln!(f, "; data path: {}", server.data_path)?;
    server.drives.iter().try_for_each(|drive| {
        write!(f, "    drive {}: {}", drive.address, drive.state)?;
        match drive.paused_seconds {
            Some(left) => writeln!(f, ", left alone for {}; the server is read", in_words(left)),
            None => writeln!(f),
        }
    })?;
    server.errors.iter().try_for_each(|error| {
        let ago = in_words(error.seconds_ago);
        let times = if error.times > 1 { format!(" ({} times)", error.times) } else { String::new() };
        writeln!(f, "    error {ago} ago: {}: {}{times}", error.operation, error.error)
    })
}

fn promise_text(promise: &ExplainedPromise) -> String {
    let of = if promise.is_of_volume { " for the whole volume" } else { "" };
    let mut text = match promise.seconds_left {
        Some(left) => format!("{}{of}, for {} more", promise.state, in_words(left)),
        None => format!("{}{of}", promise.state),
    };
    if let Some(Unpromised { since_seconds_ago, as_of_seconds_ago }) = promise.unpromised {
        let (since, as_of) = (in_words(since_seconds_ago), in_words(as_of_seconds_ago));
        text += &format!("; read without promise since {since} ago, as it was {as_of} ago");
    }
    text
}

fn data_text(data: &ExplainedData) -> String {
    let mut text = match data.cached_bytes {
        Some(cached) => format!("{cached} of {} bytes cached", data.length_bytes),
        None => format!("of {} bytes it is not known what is cached", data.length_bytes),
    };
    for (bytes, what) in [(data.dirty_bytes, "not stored yet"), (data.fetching_bytes, "being fetched")] {
        if bytes > 0 {
            text.push_str(&format!(", {bytes} {what}"));
        }
    }
    if data.open_handles > 0 {
        text.push_str(&format!("; open handles: {}", data.open_handles));
    }
    if data.failed_stores > 0 {
        text.push_str(&format!("; {} stores in a row have failed", data.failed_stores));
    }
    text
}

fn rights_text(rights: &ExplainedRights) -> String {
    let source = match (rights.source.as_str(), &rights.user) {
        ("token", Some(user)) => match rights.token_seconds_left {
            Some(left) => format!("with the token of {user}, valid for {}", in_words(left)),
            None => format!("with the token of {user}"),
        },
        ("mount", _) => "as the owner of the mount".into(),
        ("expired token", _) => "anonymous, since the token has expired".into(),
        _ => "anonymous".into(),
    };
    match (&rights.rights, &rights.everybody) {
        (Some(own), _) => {
            let own = if own.is_empty() { "none" } else { own };
            let ago = rights.seconds_ago.map(|ago| format!(", as reported {} ago", in_words(ago)));
            format!("{own}, {source}{}", ago.unwrap_or_default())
        }
        (None, Some(everybody)) => {
            let everybody = if everybody.is_empty() { "none" } else { everybody };
            format!("not reported yet to this user, {source}; everybody has: {everybody}")
        }
        (None, None) => format!("not known, {source}"),
    }
}

/// What a mode for the owner alone does not keep: others have the rights of the access list.
fn open_in_spite_of_mode(told: &Explanation) -> Option<String> {
    let mode = &told.status.as_ref()?.mode;
    let is_for_owner = u32::from_str_radix(mode, 8).is_ok_and(|mode| mode & 0o077 == 0);
    let everybody = told.rights.as_ref()?.everybody.as_ref().filter(|rights| !rights.is_empty())?;
    is_for_owner.then(|| {
        format!(
            "everybody has {everybody} here by the access list; mode {mode} keeps nobody out. \
             `andrew fs setacl DIR system:anyuser none` does"
        )
    })
}

fn locks_text(locks: &ExplainedLocks) -> String {
    let mut parts: Vec<String> = Vec::new();
    if locks.is_lost {
        parts.push("lost: what was written is not stored".into());
    }
    parts.extend(locks.at_server.iter().map(|kind| format!("{kind} lock held at the server")));
    parts.extend(locks.here.iter().map(|lock| {
        let last = lock.last.map_or("the end".to_owned(), |last| last.to_string());
        format!("{} lock of process {} on bytes {} to {last}", lock.kind, lock.pid, lock.first)
    }));
    if parts.is_empty() { "none of this machine".into() } else { parts.join(", ") }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
