//! Credentials of an object store, from a file of secrets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use afs_files::secret_file::{self, SecretFileError};
use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;

/// Why a file of credentials cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// It cannot be read, or others may read it.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// It does not exist.
    #[error("there is no file {}", .0.display())]
    Missing(PathBuf),
    /// It does not have a key id and a secret key.
    #[error(
        "{} has no credentials; write lines aws_access_key_id = ID and aws_secret_access_key = KEY, and aws_session_token = TOKEN if there is one",
        .0.display()
    )]
    Incomplete(PathBuf),
}

/// Reads the file for every request: its owner may replace it at any time.
#[derive(Debug)]
pub(crate) struct FileCredentials(pub(crate) PathBuf);

#[async_trait]
impl CredentialProvider for FileCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        // A small local file; this thread has no other work than requests, each of which is longer.
        read(&self.0)
            .map(Arc::new)
            .map_err(|error| object_store::Error::Generic { store: "S3", source: Box::new(error) })
    }
}

/// Reads a file in the format of the AWS tools' `credentials`: lines `name = value` of one profile. Section names, comments and
/// other names are passed over.
pub(crate) fn read(path: &Path) -> Result<AwsCredential, CredentialsError> {
    let bytes = secret_file::read(path)?.ok_or_else(|| CredentialsError::Missing(path.to_owned()))?;
    parse(&bytes).ok_or_else(|| CredentialsError::Incomplete(path.to_owned()))
}

/// The credentials in the contents of a file; `None` if there are none.
fn parse(bytes: &[u8]) -> Option<AwsCredential> {
    let text = std::str::from_utf8(bytes).ok()?;
    let value = |wanted: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once('='));
        let (_, value) = pairs.find(|(name, _)| name.trim() == wanted)?;
        Some(value.trim().to_owned())
            .filter(|value| !value.is_empty() && value.bytes().all(|b| b.is_ascii_graphic()))
    };
    Some(AwsCredential {
        key_id: value("aws_access_key_id")?,
        secret_key: value("aws_secret_access_key")?,
        token: value("aws_session_token"),
    })
}

/// Reads credentials of any bytes, for fuzzing: what is accepted goes into the headers of requests as it is.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_any(bytes: &[u8]) {
    let Some(credential) = parse(bytes) else { return };
    for value in [&credential.key_id, &credential.secret_key].into_iter().chain(&credential.token) {
        assert!(
            !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic()),
            "no value of a header"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn credentials_are_read_from_a_file_of_secrets_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials");
        assert!(matches!(read(&path), Err(CredentialsError::Missing(_))));
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("[default]\n# of the drive\naws_access_key_id = AKID\naws_secret_access_key=se/cr+et=\n");
        let found = read(&path).unwrap();
        assert_eq!((&*found.key_id, &*found.secret_key, found.token.as_deref()), ("AKID", "se/cr+et=", None));
        assert!(!format!("{found:?}").contains("se/cr"));
        write("aws_access_key_id = A\naws_secret_access_key = B\naws_session_token = C\n");
        assert_eq!(read(&path).unwrap().token.as_deref(), Some("C"));
        for text in ["", "aws_access_key_id = A\n", "aws_access_key_id = A\naws_secret_access_key = \n"] {
            write(text);
            let error = read(&path).err().unwrap().to_string();
            assert!(error.contains("aws_secret_access_key = KEY"), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&path).err().unwrap().to_string().contains("mode 0644"));
    }
}
