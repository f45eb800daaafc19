//! What everybody did and saw in one world.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use afs_sim::World;
use bytes::Bytes;
use parking_lot::Mutex;

use super::content::{self, ContentForm};
use crate::model::names::Names;
use crate::model::register::{self, Content, Kind, Op, Time};

/// A record that all users of a world write to.
#[derive(Clone)]
pub struct History(Arc<Mutex<Inner>>, World);

#[derive(Default)]
struct Inner {
    files: BTreeMap<String, Vec<Op>>,
    names: Names,
    last_content: Content,
    /// What is added to the numbers of contents.
    form: Content,
    /// Contents that users have made of others.
    made: BTreeMap<Content, Bytes>,
    torn: Vec<String>,
    /// What is seen is not written down.
    blind: bool,
    /// Until when a user may not have been told of what is newer.
    doubted: BTreeMap<usize, Time>,
    failed: Vec<String>,
    /// What the operations of each user took, all together and the longest.
    took: BTreeMap<usize, (Duration, Duration)>,
}

impl History {
    /// An empty one, on the world's clock.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self(Arc::default(), world)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.0.lock())
    }

    /// The time, for beginnings and ends.
    #[must_use]
    pub fn now(&self) -> Time {
        self.1.now().as_nanos()
    }

    /// A content that nobody has stored.
    #[must_use]
    pub fn new_content(&self) -> Content {
        self.with(|inner| {
            inner.last_content += 1;
            inner.form + inner.last_content
        })
    }

    /// A content that a user makes of another: `change` is given its number, and makes all of its bytes.
    pub fn make_content(&self, change: impl FnOnce(Content) -> Vec<u8>) -> (Content, Bytes) {
        let content = MADE + self.new_content();
        let bytes = Bytes::from(change(content));
        self.with(|inner| inner.made.insert(content, bytes.clone()));
        (content, bytes)
    }

    /// Which content this is.
    ///
    /// # Errors
    /// As [`content::identify`].
    pub fn identify(&self, data: &[u8]) -> Result<Content, String> {
        let number = data.first_chunk().map(|head| Content::from_be_bytes(*head));
        let made = number.and_then(|number| self.with(|inner| inner.made.get(&number).cloned()));
        match (number, made) {
            (Some(number), Some(made)) if made == data => Ok(number),
            (Some(number), Some(made)) => {
                let differs = data.iter().zip(&made).position(|(have, want)| have != want);
                let (have, want) = (data.len(), made.len());
                Err(format!(
                    "{have} bytes where content {number} has {want}, different from byte {differs:?}"
                ))
            }
            _ => content::identify(data),
        }
    }

    /// What contents look like from now on.
    pub fn form(&self, form: ContentForm) {
        self.with(|inner| inner.form = form.base());
    }

    /// Whether what is seen from now on counts. Torn contents always do.
    pub fn look_away(&self, away: bool) {
        self.with(|inner| inner.blind = away);
    }

    /// This user may not be told of what is newer for so long.
    pub fn doubt(&self, client: usize, time: Duration) {
        let until = self.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.with(|inner| inner.doubted.insert(client, until));
    }

    /// A store that is about to begin. It counts as unacknowledged until [`History::stored`].
    pub fn storing(&self, client: usize, file: &str, content: Content) {
        let op = Op { client, kind: Kind::Store, content, begin: self.now(), end: None, doubted: false };
        self.with(|inner| inner.files.entry(file.to_owned()).or_default().push(op));
        self.1.note(format!("user {client} stores {content} in {file}"));
    }

    /// The store of that content was acknowledged.
    pub fn stored(&self, file: &str, content: Content) {
        let now = self.now();
        self.with(|inner| {
            let ops = inner.files.entry(file.to_owned()).or_default();
            if let Some(op) = ops.iter_mut().find(|op| op.kind == Kind::Store && op.content == content) {
                op.end = Some(now);
            }
        });
        self.1.note(format!("content {content} is stored in {file}"));
    }

    /// Somebody opened the file and read this.
    pub fn read(&self, client: usize, file: &str, found: Result<Content, String>, begin: Time) {
        self.1.note(format!("user {client} finds {found:?} in {file}"));
        let end = Some(self.now());
        self.with(|inner| match found {
            Ok(_) if inner.blind => {}
            Ok(content) => {
                let doubted = inner.doubted.get(&client).is_some_and(|until| begin < *until);
                let op = Op { client, kind: Kind::Read, content, begin, end, doubted };
                inner.files.entry(file.to_owned()).or_default().push(op);
            }
            Err(what) => inner.torn.push(format!("user {client} found in {file}: {what}")),
        });
    }

    /// An operation of a user ended with an error.
    pub fn failed(&self, client: usize, error: &dyn Display) {
        let what = format!("user {client} is told: {error}");
        self.1.note(&what);
        self.with(|inner| inner.failed.push(what));
    }

    /// The first error that a user was told.
    #[must_use]
    pub fn first_failure(&self) -> Option<String> {
        self.with(|inner| inner.failed.first().cloned())
    }

    /// An operation of a user has ended after this time.
    pub fn took(&self, client: usize, time: Duration) {
        self.with(|inner| {
            let (total, longest) = inner.took.entry(client).or_default();
            *total += time;
            *longest = time.max(*longest);
        });
    }

    /// What all operations of the slowest user took, and the longest operation of any.
    #[must_use]
    pub fn slowest(&self) -> (Duration, Duration) {
        self.with(|inner| {
            let totals = inner.took.values().map(|took| took.0).max();
            let longest = inner.took.values().map(|took| took.1).max();
            (totals.unwrap_or_default(), longest.unwrap_or_default())
        })
    }

    /// A name was looked for.
    pub fn saw(&self, name: &str, there: bool, begin: Time) {
        let end = self.now();
        self.with(|inner| {
            if !inner.blind {
                inner.names.saw(name, there, begin, end);
            }
        });
    }

    /// Works on the record of names.
    pub fn names<T>(&self, work: impl FnOnce(&mut Names) -> T) -> T {
        self.with(|inner| work(&mut inner.names))
    }

    /// Reads and acknowledged stores so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.with(|inner| inner.files.values().flatten().filter(|op| op.end.is_some()).count())
    }

    /// Whether all of it is as promised.
    ///
    /// # Errors
    /// Says what is not.
    pub fn check(&self) -> Result<(), String> {
        self.with(|inner| {
            if let Some(torn) = inner.torn.first() {
                return Err(torn.clone());
            }
            for (file, ops) in &inner.files {
                register::check(ops).map_err(|violation| format!("{file}: {violation}"))?;
            }
            inner.names.check()
        })
    }
}

/// Numbers from here on are of contents that users have made of others.
const MADE: Content = 1 << 48;
