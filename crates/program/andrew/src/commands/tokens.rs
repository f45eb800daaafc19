//! `andrew tokens`: lists tokens.

use crate::commands::duration_text::in_words;
use crate::error::CommandResult;
use crate::output;
use crate::units;
use afs_cell::tokens::{HeldToken, KeptToken, Mounts, SessionId, TokenStore, warning};
use afs_net::System;
use afs_rpc::{Env, Level, UnixTime};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew tokens`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew tokens\n  andrew tokens --json | jq '.tokens[].expires'")]
pub struct Args {}

#[derive(Serialize)]
struct TokenList {
    /// The session of this process, if it is in one.
    session: Option<String>,
    tokens: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    cell: String,
    user: String,
    /// The groups whose rights it does not have.
    without: Vec<String>,
    /// Time of expiry, in Unix seconds; `None`: never.
    #[serde(serialize_with = "units::some_time")]
    expires: Option<u64>,
    /// Time until which it may be renewed, in Unix seconds; `None`: not renewable.
    #[serde(serialize_with = "units::some_time")]
    renewable_until: Option<u64>,
    level: Option<&'static str>,
    /// Whether it is in a token file.
    file: bool,
    /// Number of mounts that use it.
    mounts: usize,
    /// Mount points of mounts that know the cell and have no token of it.
    lacking: Vec<PathBuf>,
    warning: Option<String>,
    #[serde(skip)]
    now: u64,
}

impl Args {
    /// Lists the tokens of this user, or of this session.
    ///
    /// # Errors
    /// A token file cannot be read, or others may read it too.
    pub fn run(self, json: bool) -> CommandResult {
        let session = SessionId::current()?;
        let now = System::with_workers(1).map_err(crate::error::CommandError::failed)?.wall();
        let by_mount = Mounts::running().held_by_mount(session);
        let held: Vec<HeldToken> = by_mount.iter().flat_map(|mount| mount.tokens.clone()).collect();
        let mut rows: Vec<Row> =
            TokenStore::current()?.all()?.iter().map(|kept| Row::of(kept, &held, now)).collect();
        for held in &held {
            match rows.iter_mut().find(|row| (&row.cell, &row.without) == (&held.cell, &held.without)) {
                Some(row) => row.mounts += 1,
                None => rows.push(Row::of_mount(held, now)),
            }
        }
        for row in &mut rows {
            row.lacking =
                by_mount.iter().filter_map(|mount| mount.lacks(&row.cell)).map(PathBuf::from).collect();
        }
        let session = session.map(|_| "a session of its own".to_owned());
        output::show(json, &TokenList { session, tokens: rows });
        Ok(())
    }
}

impl Row {
    fn of(kept: &KeptToken, held: &[HeldToken], now: UnixTime) -> Self {
        // A mount may have renewed it meanwhile.
        let here = kept.token().expires().map(|end| end.secs);
        let in_mounts = held
            .iter()
            .filter(|held| held.cell == kept.cell.as_str() && held.without == kept.grant.without)
            .filter_map(|held| held.expires);
        let level = match kept.token().level() {
            Level::Clear => "clear",
            Level::Auth => "auth",
            Level::Crypt => "crypt",
        };
        Self {
            cell: kept.cell.to_string(),
            user: kept.user.clone(),
            without: kept.grant.without.clone(),
            expires: in_mounts.max().max(here),
            renewable_until: Some(kept.grant.renewable_until.secs).filter(|_| !kept.grant.renewal.is_empty()),
            level: Some(level),
            file: true,
            mounts: 0,
            lacking: Vec::new(),
            warning: warning(kept, now),
            now: now.secs,
        }
    }

    fn of_mount(held: &HeldToken, now: UnixTime) -> Self {
        Self {
            cell: held.cell.clone(),
            user: held.user.clone(),
            without: held.without.clone(),
            expires: held.expires,
            renewable_until: None,
            level: None,
            file: false,
            mounts: 1,
            lacking: Vec::new(),
            warning: None,
            now: now.secs,
        }
    }
}

impl fmt::Display for TokenList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(session) = &self.session {
            writeln!(f, "this is {session}")?;
        }
        if self.tokens.is_empty() {
            return writeln!(f, "no tokens; `andrew login` gets one");
        }
        self.tokens.iter().try_for_each(|row| row.fmt(f))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.user, self.cell)?;
        match self.expires {
            None => write!(f, ", without end")?,
            Some(end) if end <= self.now => write!(f, ", ended")?,
            Some(end) => write!(f, ", ends in {}", in_words(end - self.now))?,
        }
        if let Some(until) = self.renewable_until.filter(|until| *until > self.now) {
            write!(f, ", renewable for {}", in_words(until - self.now))?;
        }
        if let Some(level) = self.level {
            write!(f, ", {level}")?;
        }
        if !self.without.is_empty() {
            write!(f, ", without the rights of {}", self.without.join(", "))?;
        }
        let mounts = if self.mounts == 1 { "mount" } else { "mounts" };
        writeln!(f, ", in use by {} {mounts}", self.mounts)?;
        for mount in &self.lacking {
            let cell = &self.cell;
            writeln!(
                f,
                "  not in use at {}: log in again: andrew login --cell {cell} {}",
                mount.display(),
                self.user
            )?;
        }
        self.warning.as_ref().map_or(Ok(()), |line| writeln!(f, "  {line}"))
    }
}
