//! Principals: names of users and services, as text and as components.

use std::fmt::{self, Display, Write};

/// Why a text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// An invalid principal: the text.
    #[error("'{0}' is no Kerberos principal; one looks like afs/example.org@EXAMPLE.ORG")]
    Principal(String),
    /// No realm: the text.
    #[error("'{0}' is no Kerberos realm; one looks like EXAMPLE.ORG")]
    Realm(String),
}

/// A principal: components such as `afs` and `example.org`, and a realm. Compared byte by byte, as in Kerberos.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// At least one.
    pub components: Vec<String>,
    /// The realm that has its key.
    pub realm: String,
}

impl Principal {
    /// Most components of a name. Real names have one to three.
    pub const COMPONENTS_MAX: usize = 16;

    /// A principal with these components.
    pub fn new(components: &[&str], realm: &str) -> Self {
        Self { components: components.iter().map(|c| (*c).to_owned()).collect(), realm: realm.to_owned() }
    }

    /// The ticket-granting service of `realm` for users of `home`.
    pub fn ticket_granting(realm: &str, home: &str) -> Self {
        Self::new(&["krbtgt", realm], home)
    }

    /// Parses `component[/component]...[@REALM]`; a backslash escapes the character after it. Without a realm the name
    /// is in `realm`.
    ///
    /// # Errors
    /// A component or the realm is empty, or there are more than [`Principal::COMPONENTS_MAX`].
    pub fn parse(text: &str, realm: &str) -> Result<Self, NameError> {
        let (parts, given) = split(text);
        let principal = Self { components: parts, realm: given.unwrap_or_else(|| realm.to_owned()) };
        let is_good = !principal.realm.is_empty()
            && principal.components.len() <= Self::COMPONENTS_MAX
            && principal.components.iter().all(|c| !c.is_empty());
        if is_good {
            return Ok(principal);
        }
        Err(NameError::Principal(text.to_owned()))
    }
}

fn split(text: &str) -> (Vec<String>, Option<String>) {
    let (mut parts, mut part, mut in_realm) = (Vec::new(), String::new(), false);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => part.extend(characters.next()),
            '/' if !in_realm => parts.push(std::mem::take(&mut part)),
            '@' if !in_realm => {
                parts.push(std::mem::take(&mut part));
                in_realm = true;
            }
            c => part.push(c),
        }
    }
    if in_realm {
        return (parts, Some(part));
    }
    parts.push(part);
    (parts, None)
}

/// In the form that [`Principal::parse`] accepts.
impl Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, component) in self.components.iter().enumerate() {
            if index > 0 {
                f.write_char('/')?;
            }
            quoted(f, component, &['/', '@', '\\'])?;
        }
        f.write_char('@')?;
        quoted(f, &self.realm, &['\\'])
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str, special: &[char]) -> fmt::Result {
    for c in text.chars() {
        if special.contains(&c) {
            f.write_char('\\')?;
        }
        // Names come from files and from the network: control characters must not reach a terminal.
        f.write_char(if c.is_control() { '?' } else { c })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_and_written() {
        for (text, components, realm) in [
            ("alice", &["alice"][..], "HOME.TEST"),
            ("afs/example.org@EXAMPLE.ORG", &["afs", "example.org"], "EXAMPLE.ORG"),
            (r"a\/b\@c/d@R", &["a/b@c", "d"], "R"),
        ] {
            let principal = Principal::parse(text, "HOME.TEST").unwrap();
            assert_eq!(principal, Principal::new(components, realm));
            assert_eq!(Principal::parse(&principal.to_string(), "").unwrap(), principal);
        }
        for bad in ["", "@R", "a/@R", "a@", "/"] {
            assert!(Principal::parse(bad, "").is_err(), "{bad}");
        }
        assert!(Principal::parse(&"a/".repeat(40), "R").is_err());
    }
}
