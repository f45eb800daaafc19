//! Security settings of a cell: `security.toml` in the state directory. Without the file the defaults apply.

use crate::configuration::FileError;
use crate::error::CellResult;
use afs_own::Opening;
use afs_server::Requirement;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Name of the file.
pub const FILE: &str = "security.toml";
/// Longest lifetime of a token of the login service, in hours: 30 days, as Kerberos tickets have at most.
const TOKEN_HOURS_MAX: u32 = 720;

/// Contents of the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct SecurityFile {
    /// Which connections are accepted.
    pub connections: Connections,
    /// Requirement on connections that access a volume, by the volume's name.
    #[serde(deserialize_with = "requirements")]
    pub volumes: BTreeMap<String, Requirement>,
    /// Kerberos realms whose users are users of this cell.
    pub realms: Realms,
    /// The cell's own login service.
    pub login: Login,
    /// The audit log.
    pub audit: Audit,
}

/// Which connections are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Connections {
    /// Whether unauthenticated connections are accepted; they have the rights of `system:anyuser`.
    pub anonymous: bool,
    /// Whether rxkad is accepted, if the cell has keys for it.
    pub rxkad: bool,
    /// Requirement on every connection to the file service.
    #[serde(deserialize_with = "requirement")]
    pub minimum: Requirement,
}

/// Kerberos realms.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Realms {
    /// Local realms besides the one with the cell's name.
    pub local: Vec<String>,
    /// `name@REALM` of foreign users in a local realm.
    pub except: Vec<String>,
}

/// The login service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Login {
    /// Whether the login service is offered.
    pub enabled: bool,
    /// Lifetime of a token, in hours: 1 to 720.
    pub token_hours: u32,
    /// Time during which a token may be renewed without a new login, in hours: at most 720.
    pub renewable_hours: u32,
}

/// The audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// Whether there is an audit log.
    pub enabled: bool,
    /// Whether it includes permitted calls that only read.
    pub reads: bool,
}

impl Default for Connections {
    fn default() -> Self {
        Self { anonymous: true, rxkad: true, minimum: Requirement::None }
    }
}

impl Default for Login {
    fn default() -> Self {
        Self { enabled: true, token_hours: 25, renewable_hours: 168 }
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self { enabled: true, reads: false }
    }
}

fn requirement<'a, D: Deserializer<'a>>(from: D) -> Result<Requirement, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

fn requirements<'a, D: Deserializer<'a>>(from: D) -> Result<BTreeMap<String, Requirement>, D::Error> {
    let words = BTreeMap::<String, String>::deserialize(from)?;
    let parsed = words.into_iter().map(|(volume, word)| match word.parse() {
        Ok(requirement) => Ok((volume, requirement)),
        Err(error) => Err(serde::de::Error::custom(error)),
    });
    parsed.collect()
}

impl SecurityFile {
    /// Reads the state directory's file; the defaults if there is none.
    ///
    /// # Errors
    /// The file cannot be read or is invalid; the message names the line.
    pub fn read(state: &Path) -> CellResult<Self> {
        let path = state.join(FILE);
        match Opening::read().open(&path).and_then(io::read_to_string) {
            Ok(text) => Self::parse(&text).map_err(|why| FileError::Configuration { path, why }.into()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(FileError::Read { path, error }.into()),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        let Login { token_hours, renewable_hours, .. } = file.login;
        if !(1..=TOKEN_HOURS_MAX).contains(&token_hours) || renewable_hours > TOKEN_HOURS_MAX {
            return Err(format!("token_hours is 1 to {TOKEN_HOURS_MAX}, renewable_hours at most that"));
        }
        Ok(file)
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(text: &str) -> bool {
    let Ok(file) = SecurityFile::parse(text) else { return false };
    assert!((1..=TOKEN_HOURS_MAX).contains(&file.login.token_hours));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_absent_have_their_defaults() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(SecurityFile::read(dir.path()).unwrap(), SecurityFile::default());
        let file = SecurityFile::parse("[volumes]\n\"user.alice\" = \"rxgk-crypt\"\n").unwrap();
        assert_eq!(file.volumes["user.alice"], Requirement::RxgkCrypt);
        assert!(file.connections.anonymous && file.login.enabled);
        let file = SecurityFile::parse("[connections]\nanonymous = false\nminimum = \"crypt\"\n").unwrap();
        assert_eq!(file.connections.minimum, Requirement::Crypt);
        assert!(!file.connections.anonymous && file.connections.rxkad);
    }

    #[test]
    fn an_invalid_setting_is_an_error_that_names_it() {
        for (text, word) in [
            ("[conections]\n", "conections"),
            ("[connections]\nminimum = \"strong\"\n", "strong"),
            ("[login]\ntoken_hours = 0\n", "token_hours"),
        ] {
            let why = SecurityFile::parse(text).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
