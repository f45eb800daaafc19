//! Rows of a cell's databases in etcd: connection, copy from a state directory, and the check that only servers of the
//! cell use them.

use crate::configuration::options::{EtcdOptions, ServerOptions};
use crate::error::CellResult;
use crate::servers::StartError;
use crate::servers::error::cannot_open;
use crate::servers::index::index;
use afs_db::shared::{SharedError, SharedOptions, SharedRows, Sharing, copy, is_empty};
use afs_db::{LocationError, RowsMut, Store};
use afs_etcd::{ConfigError, Etcd, EtcdConfig, Password, TlsFiles};
use afs_files::secret_file;
use afs_kv::Kv;
use afs_login::LoginSecret;
use afs_net::System;
use afs_own as own;
use afs_rpc::{EnvExt, EnvRef};
use afs_wire::ids::{CellName, Uuid};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Directory of the databases of a single server, in its state directory.
pub(crate) const EMBEDDED: &str = "db";
/// Name of that directory once its databases are in etcd.
const TAKEN_OVER: &str = "db.taken-over";
/// How long a start waits for etcd, which may be starting too.
const START_MAX: Duration = Duration::from_secs(60);
const START_PAUSE: Duration = Duration::from_secs(1);
/// Row that names the cell of these databases. It cannot be the name of a user.
const MEMBERSHIP: (&str, &[u8]) = ("login", b"\0cell");

/// The databases in a state directory, created if they are missing.
pub(super) fn embedded_rows(system: &Arc<System>, directory: &Path) -> CellResult<Kv> {
    own::given_directory(directory).map_err(|e| cannot_open(directory, e))?;
    index(system, directory, afs_db::TABLES)
}

/// Connects to etcd and reads the rows.
pub(super) async fn open(
    system: &Arc<System>,
    place: &EtcdOptions,
    server: Uuid,
) -> CellResult<Arc<Sharing>> {
    let config = config(place)?;
    let etcd = Etcd::open(&config).map_err(StartError::Etcd)?;
    let options = SharedOptions { stale_max: place.stale_max, ..SharedOptions::default() };
    let (env, etcd) = (system.env(), Arc::new(etcd));
    let deadline = env.now() + START_MAX;
    loop {
        match Sharing::start(env.clone(), etcd.clone(), server, options).await {
            Ok(sharing) => return Ok(sharing),
            Err(error) => pause(&env, error, deadline, place).await?,
        }
    }
}

async fn pause(
    env: &EnvRef,
    error: SharedError,
    deadline: afs_rpc::Instant,
    place: &EtcdOptions,
) -> CellResult {
    let passing = !matches!(error, SharedError::Refused(_));
    if passing && env.now() < deadline {
        tracing::warn!(%error, "waiting for etcd");
        env.sleep(START_PAUSE).await;
        return Ok(());
    }
    let endpoints = place.endpoints.join(", ");
    Err(StartError::Shared { endpoints, error }.into())
}

fn config(place: &EtcdOptions) -> CellResult<EtcdConfig> {
    let endpoints: Result<Vec<_>, ConfigError> =
        place.endpoints.iter().map(|endpoint| endpoint.parse()).collect();
    let user = match &place.user {
        Some((name, file)) => Some((name.clone(), password(file)?)),
        None => None,
    };
    Ok(EtcdConfig {
        endpoints: endpoints.map_err(StartError::Etcd)?,
        prefix: place.prefix.clone(),
        user,
        tls: TlsFiles {
            authority: place.authority.clone(),
            certificate: place.certificate.clone(),
            key: place.key.clone(),
        },
    })
}

fn password(file: &Path) -> CellResult<Password> {
    let bytes = secret_file::read(file)?.ok_or_else(|| StartError::NoPassword(file.to_owned()))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| StartError::PasswordNotText(file.to_owned()))?;
    Ok(Password::new(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Copies the databases of a single server into etcd, once, if etcd has none of the cell and the server may found one.
pub(super) async fn take_over(
    system: &Arc<System>,
    sharing: &Arc<Sharing>,
    options: &ServerOptions,
) -> CellResult {
    let (own, aside) = (options.directory.join(EMBEDDED), options.directory.join(TAKEN_OVER));
    match (is_empty(sharing).await.map_err(StartError::Copy)?, own.exists()) {
        (copy::State::Unfinished, false) => return Err(StartError::HalfCopied.into()),
        (copy::State::Empty, _) if options.joins => {
            return Err(StartError::NothingToJoin(options.cell.clone()).into());
        }
        (copy::State::Full, true) => return Err(StartError::TwoDatabases(own).into()),
        (_, false) => return Ok(()),
        (_, true) => {}
    }
    copy::copy(&embedded_rows(system, &own)?, sharing).await.map_err(StartError::Copy)?;
    fs::rename(&own, &aside).map_err(|error| StartError::Rename {
        from: own.clone(),
        to: aside.clone(),
        error,
    })?;
    tracing::info!("the databases are in etcd from now on; what they were is in {}", aside.display());
    Ok(())
}

/// Refuses a server that was not joined to the cell: it would have other keys.
pub(super) async fn check_membership(rows: &SharedRows, secret: &LoginSecret, cell: &CellName) -> CellResult {
    let own = Sha256::digest(&secret.encode()[..]).to_vec();
    let change = move |rows: &mut dyn RowsMut| -> Result<bool, LocationError> {
        let (table, key) = MEMBERSHIP;
        match rows.get(table, key)? {
            Some(known) => Ok(known == own),
            None => rows.put(table, key, &own).map(|()| true),
        }
    };
    let member = rows.change(change).await;
    match member {
        Ok(true) => Ok(()),
        Ok(false) => Err(StartError::NotJoined(cell.clone()).into()),
        Err(error) => Err(StartError::Membership(error).into()),
    }
}
