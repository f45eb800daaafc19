//! Translation of the components of a Kerberos principal to name and instance.

/// Longest name and longest instance, in bytes. OpenAFS truncates longer ones, which can make two users one; they are
/// refused here.
const PART_LEN_MAX: usize = 63;

/// Longest realm, in bytes.
const REALM_LEN_MAX: usize = 255;

/// Services whose second component is a host name, of which the instance is the first label. The table is that of
/// MIT's krb524.
const HOST_SERVICES: [&str; 38] = [
    "host",
    "discuss",
    "rvdsrv",
    "sample",
    "olc",
    "pop",
    "sis",
    "rfs",
    "imap",
    "ftp",
    "ecat",
    "daemon",
    "gnats",
    "moira",
    "prms",
    "mandarin",
    "register",
    "changepw",
    "sms",
    "afpserver",
    "gdss",
    "news",
    "abs",
    "nfs",
    "tftp",
    "http",
    "khttp",
    "pgpsigner",
    "irc",
    "mandarin-agent",
    "write",
    "palladium",
    "smtp",
    "lmtp",
    "ldap",
    "acap",
    "argus",
    "mupdate",
];

/// Services whose second component is ignored.
const SINGLE_SERVICES: [&str; 2] = ["kadmin", "zephyr"];

/// A name in the form of AFS and Kerberos 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AfsName<'a> {
    /// Not empty.
    pub name: &'a str,
    /// Empty for most.
    pub instance: &'a str,
}

/// Why a name cannot be an AFS name. The messages do not repeat it: it is untrusted input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Neither one component nor two.
    #[error("a principal has one or two components")]
    Components,
    /// `alice.admin` and `alice/admin` would be one name.
    #[error("a principal's first component may not contain a dot")]
    Dot,
    /// A host's name without a domain.
    #[error("the host in a principal has no domain")]
    Host,
    /// Empty, or more than 63 bytes (a realm: 255).
    #[error("a part of the name is empty or too long")]
    Length,
    /// A character with a special meaning in AFS names, or an invisible one.
    #[error("a character in the name is not allowed")]
    Character,
    /// The reserved name of the cell's own servers.
    #[error("this name is the cell's own")]
    Reserved,
}

/// The AFS name of a Kerberos principal: `alice` is itself, `alice/admin` has instance `admin`, `host/x.example.org`
/// is `rcmd` with instance `x`.
///
/// # Errors
/// [`NameError`] for a principal without such a name.
pub fn afs_name<'a>(components: &[&'a str]) -> Result<AfsName<'a>, NameError> {
    let (name, instance) = match *components {
        [name] => (name, ""),
        [name, instance] => service_name(name, instance)?,
        _ => return Err(NameError::Components),
    };
    if name.contains('.') {
        return Err(NameError::Dot);
    }
    Ok(AfsName { name, instance })
}

fn service_name<'a>(name: &'a str, instance: &'a str) -> Result<(&'a str, &'a str), NameError> {
    if SINGLE_SERVICES.contains(&name) {
        return Ok((name, ""));
    }
    if !HOST_SERVICES.contains(&name) {
        return Ok((name, instance));
    }
    let (label, _domain) = instance.split_once('.').ok_or(NameError::Host)?;
    Ok((if name == "host" { "rcmd" } else { name }, label))
}

pub(super) fn check_part(part: &str) -> Result<(), NameError> {
    if part.len() > PART_LEN_MAX {
        return Err(NameError::Length);
    }
    check_characters(part)
}

pub(super) fn check_realm(realm: &str) -> Result<(), NameError> {
    if realm.len() > REALM_LEN_MAX {
        return Err(NameError::Length);
    }
    check_characters(realm)
}

/// `@` ends a name and `:` makes it a group's.
fn check_characters(text: &str) -> Result<(), NameError> {
    let meaningful = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '@' | ':' | '\\');
    if text.contains(meaningful) { Err(NameError::Character) } else { Ok(()) }
}
