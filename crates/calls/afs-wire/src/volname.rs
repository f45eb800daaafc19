//! Suffixes of volume names: `.readonly` and `.backup`.
//!
//! Source: `docs/protocol/vldb.md` "4. Semantics".

use crate::ids::{NameError, VolumeKind, VolumeName};

/// Splits a suffix off, unless nothing would be left, and returns the kind of volume that it denotes.
///
/// A name without suffix denotes no particular kind.
pub fn split(name: &str) -> (&str, Option<VolumeKind>) {
    let base_of = |kind: VolumeKind| name.strip_suffix(kind.suffix()).filter(|base| !base.is_empty());
    for kind in [VolumeKind::ReadOnly, VolumeKind::Backup] {
        if let Some(base) = base_of(kind) {
            return (base, Some(kind));
        }
    }
    (name, None)
}

/// The name of the volume of this kind in the group of `base`.
///
/// # Errors
/// [`NameError`] when the name is too long with its suffix.
pub fn join(base: &VolumeName, kind: VolumeKind) -> Result<VolumeName, NameError> {
    VolumeName::new(&format!("{base}{}", kind.suffix()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_suffix_comes_off_when_a_name_remains() {
        assert_eq!(split("root.cell"), ("root.cell", None));
        assert_eq!(split("root.cell.readonly"), ("root.cell", Some(VolumeKind::ReadOnly)));
        assert_eq!(split("a.backup"), ("a", Some(VolumeKind::Backup)));
        assert_eq!(split("a.readonly.backup"), ("a.readonly", Some(VolumeKind::Backup)));
        assert_eq!(split(".backup"), (".backup", None));
        assert_eq!(split(""), ("", None));
    }

    #[test]
    fn joining_is_splitting_backwards() {
        let base = VolumeName::new("user.alice").unwrap();
        for kind in VolumeKind::ALL {
            let name = join(&base, kind).unwrap();
            assert_eq!(split(name.as_str()).0, "user.alice");
        }
        assert!(join(&VolumeName::new(&"v".repeat(60)).unwrap(), VolumeKind::ReadOnly).is_err());
    }
}
