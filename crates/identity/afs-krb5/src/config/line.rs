//! Parser of one line of `krb5.conf`.

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Blank line or comment.
    Blank,
    /// `[name]`: the following lines belong to this section.
    Section(&'a str),
    /// `name = value`.
    Relation(&'a str, String),
    /// `name = {`: the following lines belong to this name.
    Open(&'a str),
    /// `}`.
    Close,
    /// `include PATH`.
    Include(&'a str),
    /// `includedir PATH`.
    IncludeDirectory(&'a str),
    /// `module PATH...`: the remaining configuration comes from a plug-in of the Kerberos library.
    Module,
}

impl<'a> Line<'a> {
    /// Parses a line; `None` if it is invalid.
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Some(Self::Blank);
        }
        if let Some(rest) = line.strip_prefix('[') {
            // A `*` after it, here and below, makes the value final: later files must not add to it.
            return rest.trim_end_matches('*').trim_end().strip_suffix(']').map(Self::Section);
        }
        if let Some(rest) = line.strip_prefix('}') {
            return rest.trim_matches(['*', ' ', '\t']).is_empty().then_some(Self::Close);
        }
        match line.split_once('=') {
            Some((name, value)) => relation(name.trim().trim_end_matches('*'), value.trim()),
            None => directive(line),
        }
    }
}

fn relation<'a>(name: &'a str, value: &str) -> Option<Line<'a>> {
    match value {
        _ if name.is_empty() || name.contains(char::is_whitespace) => None,
        "{" => Some(Line::Open(name)),
        _ if value.starts_with('{') => None,
        _ => unquoted(value).map(|value| Line::Relation(name, value)),
    }
}

fn directive(line: &str) -> Option<Line<'_>> {
    let (word, path) = line.split_once(char::is_whitespace)?;
    match word {
        "include" => Some(Line::Include(path.trim())),
        "includedir" => Some(Line::IncludeDirectory(path.trim())),
        "module" => Some(Line::Module),
        _ => None,
    }
}

/// A value without its quotes.
fn unquoted(value: &str) -> Option<String> {
    let Some(quoted) = value.strip_prefix('"') else { return Some(value.to_owned()) };
    let (mut text, mut characters) = (String::new(), quoted.chars());
    loop {
        match characters.next()? {
            '"' => return characters.as_str().trim().is_empty().then_some(text),
            '\\' => text.push(match characters.next()? {
                'n' => '\n',
                't' => '\t',
                'b' => '\u{8}',
                other => other,
            }),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let relation = |name, value: &str| Some(Line::Relation(name, value.to_owned()));
        for (line, wanted) in [
            ("", Some(Line::Blank)),
            ("  # [x]", Some(Line::Blank)),
            ("; a = b", Some(Line::Blank)),
            ("[realms]", Some(Line::Section("realms"))),
            ("[realms]*", Some(Line::Section("realms"))),
            ("\tkdc = a.test:88", relation("kdc", "a.test:88")),
            ("kdc=a", relation("kdc", "a")),
            ("a =", relation("a", "")),
            (r#"a = "b \" c" "#, relation("a", "b \" c")),
            ("REALM = {", Some(Line::Open("REALM"))),
            ("}", Some(Line::Close)),
            ("} *", Some(Line::Close)),
            ("includedir /etc/krb5.conf.d/", Some(Line::IncludeDirectory("/etc/krb5.conf.d/"))),
            ("include /x y", Some(Line::Include("/x y"))),
            ("module /x.so:y", Some(Line::Module)),
            ("REALM = { kdc = a }", None),
            ("[realms", None),
            ("what is this", None),
            ("word", None),
            ("two words = x", None),
            (r#"a = "open"#, None),
            ("= x", None),
        ] {
            assert_eq!(Line::parse(line), wanted, "{line}");
        }
    }
}
