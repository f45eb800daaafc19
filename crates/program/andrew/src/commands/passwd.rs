//! `andrew passwd`: sets or removes a passphrase.

use super::login::cell_choice::{CellOptions, ChosenCell};
use super::login::obtain::{LoginOptions, local_user};
use super::login::passphrase::{self, PASSPHRASE};
use super::login::service::{Network, OwnService, Service, refused};
use crate::commands::auth_options::is_without_groups;
use crate::commands::pts::names;
use crate::commands::pts::route::RouteOptions;
use crate::error::{CommandError, CommandResult};
use afs_cell::tokens::{CellLocation, KeptToken, TokenStore};
use afs_login::UserName;
use afs_login::client::{self, LoginError};
use afs_rpc::Env;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `andrew passwd`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Users can set their own passphrase; an administrator, and the owner of the cell that runs here, that of any user. The
login service never sees a passphrase. Tokens obtained with an earlier one are valid until they expire, but are not renewed.

Examples:
  andrew passwd
  andrew passwd alice
  andrew passwd alice --passphrase-file /root/alice.pass
  andrew passwd --remove alice")]
pub struct Args {
    /// User whose passphrase to set [default: you]
    user: Option<String>,
    #[command(flatten)]
    cell: CellOptions,
    /// Read the new passphrase from the first line of a file (mode 600), or of an open descriptor given by its number
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Remove the passphrase
    #[arg(long, conflicts_with = "passphrase_file")]
    remove: bool,
}

impl Args {
    /// Sets, changes or removes a passphrase.
    ///
    /// # Errors
    /// The refusal of the login service, or a missing passphrase.
    pub fn run(self, _json: bool) -> CommandResult {
        let chosen = self.cell.choose()?;
        let editor = CredentialEditor::open(chosen, self.user.as_deref())?;
        let user = &editor.user;
        if self.remove {
            return editor.run(|service| async move { client::remove_passphrase(&service, user).await });
        }
        let secret = match &self.passphrase_file {
            Some(file) => passphrase::from_file(PASSPHRASE, file)?,
            None => passphrase::ask_new(user.as_str())?,
        };
        let (cell, secret, env) = (&editor.route.chosen.cell, &secret, &editor.route.network.system.env());
        editor.run(
            |service| async move { client::register_passphrase(&service, cell, user, secret, env).await },
        )
    }
}

/// Access to the login service: as the cell's owner, or with a token.
pub(super) struct LoginRoute {
    chosen: ChosenCell,
    network: Network,
    own: Option<Arc<OwnService>>,
    token: Option<KeptToken>,
}

/// Access to a user's credentials.
pub(super) struct CredentialEditor {
    route: LoginRoute,
    pub(super) user: UserName,
}

impl LoginRoute {
    /// The route of this process's user; without a token, `user` logs in.
    pub(super) fn open(chosen: ChosenCell, user: Option<&str>) -> CommandResult<Self> {
        let network = Network::open()?;
        let own =
            if is_without_groups(&chosen.cell)? { None } else { OwnService::of(&chosen)?.map(Arc::new) };
        let mut token =
            TokenStore::current()?.get(&chosen.cell)?.filter(|kept| kept.is_good_at(network.system.wall()));
        if own.is_none() && token.is_none() {
            token = Some(LoginOptions::default().obtain(user, &chosen)?);
        }
        Ok(Self { chosen, network, own, token })
    }

    /// Runs an operation at the login service.
    pub(super) fn run<T, F>(&self, work: impl Fn(Service) -> F) -> CommandResult<T>
    where
        F: Future<Output = Result<T, LoginError>>,
    {
        let done = match &self.own {
            Some(own) => self.network.system.block_on(work(Service::Own(own.clone()))),
            None => self
                .network
                .first(&self.chosen, self.token.as_ref(), |service| work(Service::Network(service))),
        };
        done.map_err(|error| refused(&self.chosen, &error))
    }
}

impl CredentialEditor {
    /// Access to the credentials of `user`, or of the user of the command.
    pub(super) fn open(chosen: ChosenCell, user: Option<&str>) -> CommandResult<Self> {
        let route = LoginRoute::open(chosen, user)?;
        let is_named = user.is_some();
        let asker = || route.token.as_ref().map_or_else(local_user, |kept| Ok(kept.user.clone()));
        let user = user.map_or_else(asker, |user| Ok(user.to_owned()))?;
        let user = UserName::new(&user).map_err(CommandError::usage)?;
        let editor = Self { route, user };
        if is_named {
            editor.require_user()?;
        }
        Ok(editor)
    }

    /// Checks that the user exists, before a passphrase is typed. If the protection service does not reply, the login
    /// service decides.
    ///
    /// # Errors
    /// The user does not exist.
    fn require_user(&self) -> CommandResult {
        let ChosenCell { cell, servers, base_port, state } = self.route.chosen.clone();
        let chosen = CellLocation { cell, servers, base_port, mount: None };
        let found = RouteOptions::of(&chosen, state.as_ref())
            .open()
            .and_then(|mut target| names::find(&mut target, self.user.as_str()));
        match found {
            Err(error) if error.status == CommandError::USAGE => Err(CommandError::usage(format!(
                "there is no user '{}' in {}; `andrew pts createuser` makes one",
                self.user, chosen.cell
            ))),
            _ => Ok(()),
        }
    }

    /// Runs an operation at the login service.
    pub(super) fn run<T, F>(&self, work: impl Fn(Service) -> F) -> CommandResult<T>
    where
        F: Future<Output = Result<T, LoginError>>,
    {
        self.route.run(work)
    }
}
