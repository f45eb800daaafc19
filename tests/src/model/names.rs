//! Model of a directory: a set of names, each of which is created once and removed once.

use std::collections::BTreeMap;

use super::register::Time;

/// Times from and until which a name may exist, and must exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Life {
    made: Option<Span>,
    gone: Option<Span>,
}

/// An operation that changes a name; `end` is `None` if it was not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    begin: Time,
    end: Option<Time>,
}

/// Operations on the names of one directory, and observations of them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    lives: BTreeMap<String, Life>,
    seen: Vec<(String, bool, Time, Time)>,
}

impl Names {
    /// Records that a name was created: by creation, link or rename.
    pub fn made(&mut self, name: &str, begin: Time, end: Option<Time>) {
        self.lives.entry(name.to_owned()).or_default().made = Some(Span { begin, end });
    }

    /// Records that a name was removed: by removal or rename.
    pub fn gone(&mut self, name: &str, begin: Time, end: Option<Time>) {
        self.lives.entry(name.to_owned()).or_default().gone = Some(Span { begin, end });
    }

    /// Records an observation.
    pub fn saw(&mut self, name: &str, there: bool, begin: Time, end: Time) {
        self.seen.push((name.to_owned(), there, begin, end));
    }

    /// Whether the operation that creates or removes a name may take effect at this time: between its begin and end, or
    /// at any time after its begin if it was never acknowledged. True for names without a record.
    #[must_use]
    pub fn may_happen(&self, name: &str, made: bool, at: Time) -> bool {
        let Some(life) = self.lives.get(name) else { return true };
        let span = if made { life.made } else { life.gone };
        span.is_some_and(|span| span.begin <= at && span.end.is_none_or(|end| at <= end))
    }

    /// Whether the name was created and all operations on it were acknowledged.
    #[must_use]
    pub fn is_settled(&self, name: &str) -> bool {
        let life = self.lives.get(name).copied().unwrap_or_default();
        life.made.is_some_and(|made| made.end.is_some()) && life.gone.is_none()
    }

    /// All names that were ever created.
    pub fn ever(&self) -> impl Iterator<Item = &str> {
        self.lives.iter().filter(|(_, life)| life.made.is_some()).map(|(name, _)| name.as_str())
    }

    /// Whether all observations can be explained.
    ///
    /// # Errors
    /// The first observation that cannot.
    pub fn check(&self) -> Result<(), String> {
        for (name, there, begin, end) in &self.seen {
            let life = self.lives.get(name).copied().unwrap_or_default();
            let verdict =
                if *there { life.may_be_there(*begin, *end) } else { life.may_be_away(*begin, *end) };
            if !verdict {
                let word = if *there { "there" } else { "not there" };
                return Err(format!("{name} was {word} when looked for from {begin} to {end}, but {life:?}"));
            }
        }
        Ok(())
    }
}

impl Life {
    fn may_be_there(&self, begin: Time, end: Time) -> bool {
        let is_made = self.made.is_some_and(|made| made.begin <= end);
        let is_gone = self.gone.and_then(|gone| gone.end).is_some_and(|gone| gone < begin);
        is_made && !is_gone
    }

    fn may_be_away(&self, begin: Time, end: Time) -> bool {
        let is_made = self.made.and_then(|made| made.end).is_some_and(|made| made < begin);
        let may_be_gone = self.gone.is_some_and(|gone| gone.begin <= end);
        !is_made || may_be_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_created_name_exists_until_it_is_removed() {
        let mut names = Names::default();
        names.made("a", 1, Some(2));
        names.gone("a", 5, Some(6));
        names.saw("a", false, 0, 1);
        names.saw("a", true, 3, 4);
        names.saw("a", true, 5, 6);
        names.saw("a", false, 5, 6);
        names.saw("a", false, 7, 8);
        assert_eq!(names.check(), Ok(()));
        let mut late = names.clone();
        late.saw("a", true, 7, 8);
        assert!(late.check().is_err());
        names.saw("a", false, 3, 4);
        assert!(names.check().is_err());
    }

    #[test]
    fn a_change_happens_while_it_is_asked_for() {
        let mut names = Names::default();
        names.made("a", 1, Some(3));
        names.gone("a", 5, None);
        assert!(names.may_happen("a", true, 2) && !names.may_happen("a", true, 4));
        assert!(names.may_happen("a", false, 9) && !names.may_happen("a", false, 4));
    }

    #[test]
    fn an_unacknowledged_change_may_be_there_or_not() {
        let mut names = Names::default();
        names.made("a", 1, None);
        names.saw("a", true, 3, 4);
        names.saw("a", false, 9, 10);
        assert_eq!(names.check(), Ok(()));
    }
}
