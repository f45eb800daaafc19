//! Name patterns: the subset of POSIX basic regular expressions that volume names need.
//!
//! Literals, `.`, `[...]` with ranges and negation, `*`, and `\` before a special character. Groups,
//! back-references and counted repetition are refused: volume names do not need them.

use crate::Refusal;

/// Longest pattern, in bytes (docs/protocol vldb.md "3. Opcodes", ListAttributesN2).
const PATTERN_MAX: usize = 65;

/// A pattern that must match a whole name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    atoms: Vec<Atom>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Atom {
    set: Set,
    repeated: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Set {
    Byte(u8),
    Any,
    Class { members: Vec<(u8, u8)>, negated: bool },
}

impl Set {
    fn has(&self, byte: u8) -> bool {
        match self {
            Set::Byte(own) => *own == byte,
            Set::Any => true,
            Set::Class { members, negated } => {
                members.iter().any(|(low, high)| (*low..=*high).contains(&byte)) != *negated
            }
        }
    }
}

impl Pattern {
    /// Parses a pattern; the empty one and `.*` match everything and give `None`. A malformed one is
    /// [`Refusal::BadName`].
    pub fn parse(text: &str) -> Result<Option<Pattern>, Refusal> {
        if text.is_empty() || text == ".*" {
            return Ok(None);
        }
        if text.len() > PATTERN_MAX {
            return Err(Refusal::BadName);
        }
        let text = text.strip_prefix('^').unwrap_or(text);
        let mut rest = text.strip_suffix('$').filter(|head| !head.ends_with('\\')).unwrap_or(text).as_bytes();
        let mut atoms: Vec<Atom> = Vec::new();
        while let Some((&byte, tail)) = rest.split_first() {
            // A star with nothing before it is a literal.
            if let (b'*', Some(last)) = (byte, atoms.last_mut()) {
                last.repeated = true;
                rest = tail;
                continue;
            }
            let (set, tail) = set(byte, tail)?;
            atoms.push(Atom { set, repeated: false });
            rest = tail;
        }
        Ok(Some(Pattern { atoms }))
    }

    /// Whether the whole of `name` matches. Takes time proportional to the product of both lengths.
    pub fn matches(&self, name: &[u8]) -> bool {
        let mut at = vec![false; self.atoms.len() + 1];
        at[0] = true;
        self.skip_repeated(&mut at);
        for byte in name {
            let mut next = vec![false; at.len()];
            for (place, atom) in self.atoms.iter().enumerate() {
                if at[place] && atom.set.has(*byte) {
                    next[if atom.repeated { place } else { place + 1 }] = true;
                }
            }
            self.skip_repeated(&mut next);
            at = next;
        }
        at[self.atoms.len()]
    }

    /// A repeated atom may match the empty string.
    fn skip_repeated(&self, at: &mut [bool]) {
        for (place, atom) in self.atoms.iter().enumerate() {
            if at[place] && atom.repeated {
                at[place + 1] = true;
            }
        }
    }
}

fn set(byte: u8, rest: &[u8]) -> Result<(Set, &[u8]), Refusal> {
    match byte {
        b'.' => Ok((Set::Any, rest)),
        b'[' => class(rest),
        b'\\' => match rest.split_first() {
            Some((&escaped, tail)) if !matches!(escaped, b'(' | b')' | b'{' | b'}' | b'1'..=b'9') => {
                Ok((Set::Byte(escaped), tail))
            }
            _ => Err(Refusal::BadName),
        },
        _ => Ok((Set::Byte(byte), rest)),
    }
}

/// Parses a class after its `[`. A `]` that comes first is a literal.
fn class(mut rest: &[u8]) -> Result<(Set, &[u8]), Refusal> {
    let negated = rest.first() == Some(&b'^');
    if negated {
        rest = &rest[1..];
    }
    let mut members = Vec::new();
    loop {
        match rest {
            [b']', tail @ ..] if !members.is_empty() => return Ok((Set::Class { members, negated }, tail)),
            [low, b'-', high, tail @ ..] if *high != b']' => {
                if low > high {
                    return Err(Refusal::BadName);
                }
                members.push((*low, *high));
                rest = tail;
            }
            [byte, tail @ ..] => {
                members.push((*byte, *byte));
                rest = tail;
            }
            [] => return Err(Refusal::BadName),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let table = [
            ("root.cell", "root.cell", true),
            ("root.cell", "rootxcell", true),
            (r"root\.cell", "rootxcell", false),
            ("root", "root.cell", false),
            ("^root.*$", "root.cell", true),
            ("home.*", "home", true),
            ("[a-c]*x", "abcabcx", true),
            ("[a-c]*x", "x", true),
            ("[^a]b", "ab", false),
            ("[^a]b", "cb", true),
            ("*a", "*a", true),
            ("[]x]", "]", true),
            ("a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false),
        ];
        for (pattern, name, matches) in table {
            let pattern = Pattern::parse(pattern).unwrap().unwrap();
            assert_eq!(pattern.matches(name.as_bytes()), matches, "{pattern:?} {name}");
        }
    }

    #[test]
    fn everything_is_no_pattern() {
        assert_eq!(Pattern::parse(""), Ok(None));
        assert_eq!(Pattern::parse(".*"), Ok(None));
    }

    #[test]
    fn bad_patterns_are_refused() {
        for bad in ["[a", "[", r"a\", r"\(a\)", "[z-a]", &"a".repeat(66)] {
            assert_eq!(Pattern::parse(bad), Err(Refusal::BadName), "{bad}");
        }
    }
}
