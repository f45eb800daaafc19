//! Validation of names and paths.

use afs_wire::fs::Name;

use crate::error::{ErrorKind, Result, VenusError};

/// Longest name (the kernel's bound; the format would hold one byte more).
pub(crate) const NAME_MAX: usize = 255;

/// Checks a name for a new entry.
///
/// # Errors
/// ENAMETOOLONG beyond 255 bytes; EINVAL for an empty name, `.`, `..`, and a name with `/` or NUL.
pub(crate) fn checked(name: &[u8]) -> Result<Name> {
    let kind = match name {
        b"" | b"." | b".." => ErrorKind::Invalid,
        name if name.len() > NAME_MAX => ErrorKind::NameTooLong,
        name if name.contains(&0) || name.contains(&b'/') => ErrorKind::Invalid,
        name => return Name::new(name).map_err(|_| VenusError::new(ErrorKind::NameTooLong, "name")),
    };
    Err(VenusError::new(kind, "name"))
}

/// Components of a path, last one first.
pub(crate) fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let mut parts: Vec<Vec<u8>> = parts.map(<[u8]>::to_vec).collect();
    parts.reverse();
    parts
}

/// True for `.` and `..`.
pub(crate) fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_be_given() {
        let kind = |name: &[u8]| checked(name).err().map(|error| error.kind);
        assert_eq!(kind(b"a"), None);
        assert_eq!(kind(&[b'a'; NAME_MAX]), None);
        assert_eq!(kind(&[b'a'; NAME_MAX + 1]), Some(ErrorKind::NameTooLong));
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
            assert_eq!(kind(bad), Some(ErrorKind::Invalid), "{bad:?}");
        }
    }

    #[test]
    fn a_path_is_walked_from_its_first_component() {
        let of = |path: &str| components(path.as_bytes());
        assert_eq!(of("/a//./b/../c/"), [b"c".to_vec(), b"..".to_vec(), b"b".to_vec(), b"a".to_vec()]);
        assert!(of("/").is_empty() && of("").is_empty());
    }
}
