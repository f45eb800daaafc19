//! Look-up of accounts of this machine through `getent`, which uses every configured source of its name service.

use std::process::{Command, Stdio};

/// An account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LocalUser {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Result of a look-up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum AccountLookup {
    /// The account exists.
    User(LocalUser),
    /// There is no such account.
    NotFound,
    /// The look-up failed.
    Unknown,
}

impl AccountLookup {
    pub(crate) fn user(&self) -> Option<&LocalUser> {
        match self {
            Self::User(user) => Some(user),
            Self::NotFound | Self::Unknown => None,
        }
    }
}

/// Exit status of `getent` for a key that does not exist.
const NOT_FOUND: i32 = 2;

/// Looks up the account with a name. Takes as long as the name service.
pub(crate) fn by_name(name: String) -> AccountLookup {
    // `getent` takes a number for a user id.
    if name.is_empty() || name.parse::<i64>().is_ok() {
        return AccountLookup::NotFound;
    }
    match ask(&name) {
        AccountLookup::User(user) if user.name != name => AccountLookup::NotFound,
        found => found,
    }
}

/// Looks up the account with a user id. Takes as long as the name service.
pub(crate) fn by_uid(uid: u32) -> AccountLookup {
    match ask(&uid.to_string()) {
        AccountLookup::User(user) if user.uid != uid => AccountLookup::NotFound,
        found => found,
    }
}

fn ask(key: &str) -> AccountLookup {
    let mut command = Command::new("getent");
    let output = command.args(["--", "passwd", key]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => parse(&String::from_utf8_lossy(&output.stdout))
            .map_or(AccountLookup::Unknown, AccountLookup::User),
        Ok(output) if output.status.code() == Some(NOT_FOUND) => AccountLookup::NotFound,
        _ => AccountLookup::Unknown,
    }
}

/// Parses the first line in the format of passwd(5): name, password, user id, group id, and more.
fn parse(text: &str) -> Option<LocalUser> {
    let mut fields = text.lines().next()?.split(':');
    let (name, _) = (fields.next()?.to_owned(), fields.next()?);
    Some(LocalUser { name, uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_name_service_is_read() {
        let user = parse("alice:x:1005:100:Alice:/home/alice:/bin/sh\n").unwrap();
        assert_eq!(user, LocalUser { name: "alice".into(), uid: 1005, gid: 100 });
        assert_eq!(parse("alice:x:a:b"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn root_is_found_by_name_and_by_number() {
        let root = LocalUser { name: "root".into(), uid: 0, gid: 0 };
        assert_eq!(by_name("root".into()), AccountLookup::User(root.clone()));
        assert_eq!(by_uid(0), AccountLookup::User(root));
        assert_eq!(by_name("0".into()), AccountLookup::NotFound);
        assert_eq!(by_name("no such user here".into()), AccountLookup::NotFound);
        assert_eq!(by_uid(3_999_999_999), AccountLookup::NotFound);
    }
}
