//! Change of the keys of all servers of a running cell.

use crate::commands::vos::ops::Ops;
use crate::commands::vos::route_options::RouteOptions;
use crate::error::{CommandError, CommandResult};
use afs_admin::{KeyHolders, WantedKeys};
use afs_auth::Token;
use afs_auth::keys::{CellKey, KeyKind, KeyRing};
use afs_auth::rxgk::{Variant, local_tokens};
use afs_cell::person;
use afs_cell::state::StateDir;
use afs_net::System;
use afs_rpc::{EnvRef, Level, Security};
use afs_wire::bos::HeldKey;
use afs_wire::login::Fixed;
use std::net::Ipv4Addr;

/// The servers of the cell, called with the cell's keys.
pub(super) struct CellWide {
    ops: Ops,
    holders: KeyHolders,
    env: EnvRef,
}

impl CellWide {
    /// The servers of the cell that runs on a state directory, this one first, but for those left out.
    pub(super) fn open(state: &StateDir, keys: &KeyRing, without: &[Ipv4Addr]) -> CommandResult<Self> {
        let ops = Ops::open(&RouteOptions::of_state(state.path()), false)?;
        let system = System::with_workers(1).map_err(CommandError::failed)?;
        let env = system.env();
        let tokens = local_tokens(keys, Variant::OpenAfs, Level::Crypt, &env).into_iter();
        let person = person::of_process();
        let source = |token| Token::Rxgk(token).source_for(env.clone(), person.clone());
        let securities = tokens.map(|token| Security::new(source(token))).collect();
        let mut servers = vec![ops.server_or_own(None)?];
        servers.extend(ops.location_servers());
        let known = ops.run(|admin| async move { admin.servers().await })?;
        servers.extend(known.iter().map(afs_admin::KnownServer::address));
        let mut seen = Vec::new();
        servers.retain(|server| {
            let is_new = !seen.contains(server) && !without.contains(server);
            seen.push(*server);
            is_new
        });
        Ok(Self { ops, holders: KeyHolders { servers, securities }, env })
    }

    /// The newest keys of a kind that this host has, if a server does not use them: a change that was begun and not ended.
    pub(super) fn unfinished(&self, keys: &KeyRing, kind: Option<KeyKind>) -> CommandResult<KeyRing> {
        let Some(kind) = kind else { return Ok(KeyRing::default()) };
        let newest = keys.latest(kind);
        let all = || keys.iter().chain(keys.coming());
        let of_newest = all().filter(|key| key.kind == kind && Some(key.kvno) == newest).cloned();
        let mut ring = KeyRing::default();
        of_newest.into_iter().try_for_each(|key| ring.add(key)).map_err(CommandError::failed)?;
        let used: Vec<HeldKey> = ring.iter().map(held).collect();
        for server in self.holders.servers.clone() {
            let reply = self.ask(|admin, holders| async move { admin.held_keys(&holders, server).await })?;
            if !used.iter().all(|key| reply.keys.contains(key)) {
                return Ok(ring);
            }
        }
        Ok(KeyRing::default())
    }

    /// Gives keys to all servers, and makes them use these.
    pub(super) fn spread(&self, keys: &KeyRing) -> CommandResult {
        let env = self.env.clone();
        let wanted: Vec<HeldKey> = keys.iter().map(held).collect();
        let keys = keys.clone();
        let seal = move |share| afs_login::seal_keys(&keys, share, &env);
        self.ask(|admin, holders| async move {
            admin.spread_keys(&holders, &WantedKeys { keys: wanted, seal: &seal }).await
        })
    }

    /// Removes the keys of rxgk that are older than this host's last two, also where a server was away when others did.
    pub(super) fn remove_before_last(&self, keys: &KeyRing) -> CommandResult {
        let mut numbers: Vec<u32> =
            keys.iter().filter(|key| key.kind == KeyKind::Rxgk).map(|key| key.kvno).collect();
        numbers.dedup();
        let Some(oldest) = numbers.iter().rev().nth(1).copied() else { return Ok(()) };
        let kind = KeyKind::Rxgk.number();
        self.holders.servers.iter().copied().try_for_each(|server| {
            self.ask(|admin, holders| async move {
                let held = admin.held_keys(&holders, server).await?;
                let mut old: Vec<u32> = held
                    .keys
                    .iter()
                    .filter(|key| key.kind == kind && key.number < oldest)
                    .map(|key| key.number)
                    .collect();
                old.dedup();
                for number in old {
                    admin.remove_keys(&holders, server, (kind, number)).await?;
                }
                Ok(())
            })
        })
    }

    /// Removes used keys from all servers.
    pub(super) fn remove(&self, (kind, number): (KeyKind, u32)) -> CommandResult {
        self.holders.servers.iter().copied().try_for_each(|server| {
            let which = (kind.number(), number);
            self.ask(|admin, holders| async move { admin.remove_keys(&holders, server, which).await })
        })
    }

    /// Makes all servers forget coming keys.
    pub(super) fn forget(&self, (kind, number): (KeyKind, u32)) -> CommandResult {
        self.holders.servers.iter().copied().try_for_each(|server| {
            let which = (kind.number(), number);
            self.ask(|admin, holders| async move { admin.drop_keys(&holders, server, which).await })
        })
    }

    fn ask<T, F>(&self, work: impl FnOnce(afs_admin::Admin, KeyHolders) -> F) -> CommandResult<T>
    where
        F: Future<Output = afs_admin::AdminResult<T>>,
    {
        let holders = self.holders.clone();
        self.ops.run(|admin| work(admin, holders))
    }
}

fn held(key: &CellKey) -> HeldKey {
    let (kind, digest) = (key.kind.number(), Fixed(key.digest()));
    HeldKey { kind, number: key.kvno, enctype: key.enctype, coming: false, digest }
}
