//! `andrew fs setquota`: sets the quota of a volume.

use super::attribute;
use crate::error::{CommandError, CommandResult};
use std::path::PathBuf;

/// Options of `andrew fs setquota`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew fs setquota [PATH] KIB\n       andrew fs setquota [--path PATH] --max KIB",
    after_help = "KIB is in units of 1024 bytes; a number with k, M, G or T is in bytes of that unit. 0 is no limit.\n\nExamples:\n  andrew fs setquota ~/afs/projects 5000000\n  andrew fs sq ~/afs/projects 5G"
)]
pub struct Args {
    /// A path in the volume, then the quota
    #[arg(value_name = "PATH KIB", num_args = 0..=2)]
    bare: Vec<String>,
    /// A path in the volume, as OpenAFS's fs takes it
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
    /// The quota, as OpenAFS's fs takes it
    #[arg(long, value_name = "KIB")]
    max: Option<String>,
}

/// Largest quota: 31 bits of KiB (docs/protocol/volumes.md "4. Quotas and usage").
const QUOTA_KIB_MAX: u64 = i32::MAX as u64;

impl Args {
    /// Sets the quota.
    ///
    /// # Errors
    /// The quota is not a number, the path is not in AFS, or the user lacks the right.
    pub fn run(self) -> CommandResult {
        let mut bare = self.bare;
        let quota = self.max.or_else(|| bare.pop()).ok_or_else(|| {
            CommandError::usage("fs: setquota needs a quota; see `andrew fs setquota --help`")
        })?;
        let quota = kib(&quota)?;
        let path = self.path.or_else(|| bare.pop().map(PathBuf::from)).unwrap_or(".".into());
        attribute::set(&path, "afs.quota", quota.to_string().as_bytes())
    }
}

/// Parses a quota: a bare number is in KiB as in OpenAFS, a number with a unit in bytes of that unit.
pub(super) fn kib(text: &str) -> CommandResult<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    let bytes = crate::size::parse(text).map_err(|e| CommandError::usage(format!("fs: {e}")))?;
    let kib = if plain { bytes } else { bytes.div_ceil(1024) };
    if kib > QUOTA_KIB_MAX {
        return Err(CommandError::usage(format!(
            "fs: a quota is at most {QUOTA_KIB_MAX} KiB (2 TiB); 0 is no limit"
        )));
    }
    Ok(kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_kib() {
        assert_eq!(kib("5000"), Ok(5000));
        assert_eq!(kib("5G"), Ok(5 << 20));
        assert_eq!(kib("0"), Ok(0));
        assert_eq!(
            kib("3T").unwrap_err().message,
            "fs: a quota is at most 2147483647 KiB (2 TiB); 0 is no limit"
        );
        assert_eq!(
            kib("lots").unwrap_err().message,
            "fs: 'lots' is not a size; a size is a number with k, M, G or T, like 500M"
        );
    }
}
