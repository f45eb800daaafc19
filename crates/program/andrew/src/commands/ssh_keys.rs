//! `andrew ssh-keys`: SSH keys to log in with.

use super::login::cell_choice::CellOptions;
use super::login::signers::public_of_file;
use super::passwd::CredentialEditor;
use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::units;
use afs_login::UserKey;
use afs_login::client;
use afs_wire::login::Ways;
use clap::Subcommand;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Options of `andrew ssh-keys`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Accepts Ed25519 keys, ECDSA keys over nistp256, and Ed25519 keys on a security key. Users can change their own keys;
an administrator, and the owner of the cell that runs here, those of any user.

Examples:
  andrew ssh-keys add ~/.ssh/id_ed25519.pub
  andrew ssh-keys list
  andrew ssh-keys remove SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU --user alice"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    /// User whose keys to show or change [default: you]
    #[arg(long, value_name = "USER", global = true)]
    user: Option<String>,
    #[command(flatten)]
    cell: CellOptions,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the keys, and whether the user has a passphrase
    List,
    /// Add a key to log in with
    Add {
        /// Key file, public or private; of a private key the public half is used
        file: PathBuf,
    },
    /// Remove a key
    Remove {
        /// Fingerprint of the key, or a key file
        key: String,
    },
}

#[derive(Serialize)]
struct CredentialList {
    user: String,
    /// When the passphrase was set, in Unix seconds; 0: there is none.
    #[serde(rename = "passphrase_set", serialize_with = "units::time")]
    passphrase: u32,
    keys: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    fingerprint: String,
    comment: String,
    /// When the key was added, in Unix seconds.
    #[serde(serialize_with = "units::time")]
    added: u32,
}

impl Args {
    /// Lists, adds or removes keys.
    ///
    /// # Errors
    /// The refusal of the login service, or an invalid key file.
    pub fn run(self, json: bool) -> CommandResult {
        let editor = CredentialEditor::open(self.cell.choose()?, self.user.as_deref())?;
        match &self.command {
            Command::List => {
                output::show(json, &list(&editor)?);
                Ok(())
            }
            Command::Add { file } => add(&editor, file),
            Command::Remove { key } => remove(&editor, key),
        }
    }
}

fn ways(editor: &CredentialEditor) -> CommandResult<Ways> {
    let user = &editor.user;
    editor.run(|service| async move { client::list_ways(&service, user).await })
}

fn list(editor: &CredentialEditor) -> CommandResult<CredentialList> {
    let ways = ways(editor)?;
    let row = |info: &afs_wire::login::SshKeyInfo| Row {
        fingerprint: UserKey::from_wire(&info.key)
            .map_or_else(|error| error.to_string(), |key| key.to_string()),
        comment: info.comment.to_text(),
        added: info.added.0,
    };
    Ok(CredentialList {
        user: editor.user.to_string(),
        passphrase: ways.passphrase.0,
        keys: ways.keys.iter().map(row).collect(),
    })
}

fn add(editor: &CredentialEditor, file: &Path) -> CommandResult {
    let public = public_of_file(file)?;
    let key =
        UserKey::new(&public).map_err(|error| CommandError::usage(format!("{}: {error}", file.display())))?;
    let (user, key, comment) = (&editor.user, &key, public.comment());
    editor.run(|service| async move { client::add_ssh_key(&service, user, key, comment).await })
}

fn remove(editor: &CredentialEditor, which: &str) -> CommandResult {
    let named = |key: &UserKey| key.to_string() == which;
    let keys = ways(editor)?.keys;
    let known = keys.iter().filter_map(|info| UserKey::from_wire(&info.key).ok()).find(named);
    let key = match known {
        Some(key) => key,
        None if which.starts_with("SHA256:") => {
            let user = &editor.user;
            return Err(CommandError::usage(format!(
                "{user} has no key {which}; `andrew ssh-keys list` shows them"
            )));
        }
        None => UserKey::new(&public_of_file(Path::new(which))?).map_err(CommandError::usage)?,
    };
    let (user, key) = (&editor.user, &key);
    editor.run(|service| async move { client::remove_ssh_key(&service, user, key).await })
}

impl fmt::Display for CredentialList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passphrase = if self.passphrase > 0 { "a passphrase" } else { "no passphrase" };
        writeln!(f, "{} has {passphrase} and {} SSH keys", self.user, self.keys.len())?;
        self.keys.iter().try_for_each(|key| writeln!(f, "{} {}", key.fingerprint, key.comment.escape_debug()))
    }
}
