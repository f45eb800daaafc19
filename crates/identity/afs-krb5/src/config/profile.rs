//! List of the relations of `krb5.conf`, each with its path of section and names.

use super::source::Source;
use super::{ConfigError, KdcAddress};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The relations of the configuration, each with its path of section and names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile(Vec<(Vec<String>, String)>);

/// Path of the configuration, unless `KRB5_CONFIG` has another one.
const DEFAULT: &str = "/etc/krb5.conf";

impl Profile {
    /// Reads the files in `variable` (the value of `KRB5_CONFIG`), separated by `:`, or `/etc/krb5.conf`. A missing
    /// file counts as empty.
    ///
    /// # Errors
    /// A file cannot be read or is invalid; the message names the line.
    pub fn read(variable: Option<&OsStr>) -> Result<Self, ConfigError> {
        let mut profile = Self::default();
        let mut source = Source::new(&mut profile);
        let paths: Vec<PathBuf> = std::env::split_paths(variable.unwrap_or(OsStr::new(DEFAULT))).collect();
        for path in paths.iter().filter(|path| !path.as_os_str().is_empty()) {
            source.read(path)?;
        }
        Ok(profile)
    }

    /// Parses text; files that it includes are not read.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn of_text(text: &str) -> Self {
        let mut profile = Self::default();
        Source::new(&mut profile).lines_alone(text);
        profile
    }

    /// Adds a relation under the path in `place`.
    pub fn add(&mut self, place: &[String], name: &str, value: String) {
        let mut path = place.to_vec();
        path.push(name.to_owned());
        self.0.push((path, value));
    }

    /// All values of a relation, in the order of the files.
    pub fn values<'a>(&'a self, path: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(names, _)| names == path).map(|(_, value)| value.as_str())
    }

    /// The effective value: the first.
    pub fn value<'a>(&'a self, path: &'a [&str]) -> Option<&'a str> {
        self.values(path).next()
    }

    /// The realm of a host or domain, from the most specific line of `[domain_realm]`.
    pub fn realm_of(&self, domain: &str) -> Option<&str> {
        let parents = domain.match_indices('.').map(|(at, _)| &domain[at..]);
        // A line for `.example.org` applies to hosts in that domain, and to a cell with the domain's name.
        let dotted = format!(".{domain}");
        let mut names = vec![domain, &dotted];
        names.extend(parents);
        let line = |name: &str| {
            let is_it = |(path, _): &&(Vec<String>, String)| matches!(path.as_slice(), [section, domain] if section == "domain_realm" && domain.eq_ignore_ascii_case(name));
            self.0.iter().find(is_it).map(|(_, value)| value.as_str())
        };
        names.into_iter().find_map(line)
    }

    /// The KDCs of a realm.
    ///
    /// # Errors
    /// The realm has no KDC, or an address is invalid.
    pub fn kdcs(&self, realm: &str) -> Result<Vec<KdcAddress>, ConfigError> {
        let path = ["realms", realm, "kdc"];
        let kdcs: Vec<KdcAddress> = self.values(&path).map(KdcAddress::parse).collect::<Result<_, _>>()?;
        if kdcs.is_empty() {
            return Err(ConfigError::NoKdc(realm.to_owned()));
        }
        Ok(kdcs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(relations: &[(&[&str], &str)]) -> Profile {
        let mut profile = Profile::default();
        for (path, value) in relations {
            let (name, place) = path.split_last().unwrap();
            let place: Vec<String> = place.iter().map(|p| (*p).to_owned()).collect();
            profile.add(&place, name, (*value).to_owned());
        }
        profile
    }

    #[test]
    fn the_most_specific_domain_counts() {
        let profile = profile(&[
            (&["domain_realm", ".Example.org"], "EXAMPLE.ORG"),
            (&["domain_realm", ".cs.example.org"], "CS.EXAMPLE.ORG"),
            (&["domain_realm", "odd.example.org"], "ODD"),
        ]);
        for (domain, realm) in [
            ("example.org", Some("EXAMPLE.ORG")),
            ("a.example.org", Some("EXAMPLE.ORG")),
            ("a.cs.example.org", Some("CS.EXAMPLE.ORG")),
            ("cs.example.org", Some("CS.EXAMPLE.ORG")),
            ("odd.example.org", Some("ODD")),
            ("example.com", None),
        ] {
            assert_eq!(profile.realm_of(domain), realm, "{domain}");
        }
    }

    #[test]
    fn kdcs_are_of_their_realm() {
        let profile = profile(&[
            (&["realms", "A", "kdc"], "one"),
            (&["realms", "B", "kdc"], "two"),
            (&["realms", "A", "kdc"], "three:750"),
        ]);
        let shown: Vec<String> = profile.kdcs("A").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["one:88", "three:750"]);
        assert!(profile.kdcs("C").unwrap_err().to_string().contains("realm C"));
    }

    #[test]
    fn without_a_file_nothing_is_said() {
        assert_eq!(Profile::read(Some(OsStr::new("/nowhere/krb5.conf"))).unwrap(), Profile::default());
    }
}
