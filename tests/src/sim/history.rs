//! History of a world: operations of all users and their observations.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use afs_sim::World;
use bytes::Bytes;
use parking_lot::Mutex;

use super::content::{self, ContentForm};
use crate::model::durability::Durability;
use crate::model::names::Names;
use crate::model::register::{self, Content, Kind, Op, Time};

/// The record that all users of a world write to.
#[derive(Clone)]
pub struct History(Arc<Mutex<Inner>>, Arc<dyn Timeline>);

/// The clock of a history, and its log.
pub trait Timeline: Send + Sync {
    /// The present time, in nanoseconds.
    fn now(&self) -> Time;
    /// Adds a line to the log.
    fn note(&self, text: &str);
}

impl Timeline for World {
    fn now(&self) -> Time {
        World::now(self).as_nanos()
    }

    fn note(&self, text: &str) {
        World::note(self, text);
    }
}

struct Inner {
    files: BTreeMap<String, Vec<Op>>,
    names: Names,
    last_content: Content,
    /// First number of contents of the present form.
    form: Content,
    /// Contents that users have made from others.
    made: BTreeMap<Content, Bytes>,
    torn: Vec<String>,
    /// Whether observations are ignored.
    blind: bool,
    /// Until when a user may have missed notifications.
    doubted: BTreeMap<usize, Time>,
    failed: Vec<String>,
    /// Duration of the operations of each user: in total, and the longest.
    took: BTreeMap<usize, (Duration, Duration)>,
    durability: Durability,
    /// Files that are made once and removed once, in this order, and the contents that stand for their removal.
    objects: Vec<String>,
    removals: BTreeMap<String, Content>,
    /// Number of stores that were acknowledged, and of calls of fsync that have returned, each with the user of the last one.
    stores: (u64, usize),
    syncs: (u64, usize),
    /// Whether every file has had contents since it was made.
    is_never_empty: bool,
}

impl History {
    /// An empty history.
    #[must_use]
    pub fn new(timeline: impl Timeline + 'static) -> Self {
        let inner = Inner {
            files: BTreeMap::new(),
            names: Names::default(),
            last_content: 0,
            form: 0,
            made: BTreeMap::new(),
            torn: Vec::new(),
            blind: false,
            doubted: BTreeMap::new(),
            failed: Vec::new(),
            took: BTreeMap::new(),
            durability: Durability::new(nanos(SENT_WITHIN)),
            objects: Vec::new(),
            removals: BTreeMap::new(),
            stores: (0, 0),
            syncs: (0, 0),
            is_never_empty: false,
        };
        Self(Arc::new(Mutex::new(inner)), Arc::new(timeline))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.0.lock())
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.1.now()
    }

    /// New contents, never stored before.
    #[must_use]
    pub fn new_content(&self) -> Content {
        self.with(|inner| {
            inner.last_content += 1;
            inner.form + inner.last_content
        })
    }

    /// New contents that a user makes from others: `change` is given their number, and returns all of their bytes.
    pub fn make_content(&self, change: impl FnOnce(Content) -> Vec<u8>) -> (Content, Bytes) {
        let content = MADE + self.new_content();
        let bytes = Bytes::from(change(content));
        self.with(|inner| inner.made.insert(content, bytes.clone()));
        (content, bytes)
    }

    /// Identifies contents.
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

    /// Whether data are the beginning of contents, as long as other contents of that file: a program had the bytes of one and the length
    /// of the other.
    #[must_use]
    pub fn is_cut_to_another(&self, file: &str, data: &[u8]) -> bool {
        let Some(head) = data.first_chunk() else { return false };
        let number = Content::from_be_bytes(*head);
        let of_length = |op: &Op| op.kind == Kind::Store && content::bytes(op.content).len() == data.len();
        let whole = content::bytes(number);
        whole.len() > data.len()
            && whole.starts_with(data)
            && self.with(|inner| inner.files.get(file).is_some_and(|ops| ops.iter().any(of_length)))
    }

    /// Form of new contents from now on.
    pub fn form(&self, form: ContentForm) {
        self.with(|inner| inner.form = form.base());
    }

    /// Whether observations from now on are ignored. Mixed contents are always an error.
    pub fn look_away(&self, away: bool) {
        self.with(|inner| inner.blind = away);
    }

    /// For this long, this user may miss notifications.
    pub fn doubt(&self, client: usize, time: Duration) {
        let until = self.now() + nanos(time);
        self.with(|inner| {
            let doubted = inner.doubted.entry(client).or_default();
            *doubted = until.max(*doubted);
        });
    }

    /// From now on empty contents are a name without its data.
    pub fn never_empty(&self) {
        self.with(|inner| inner.is_never_empty = true);
    }

    /// Access to the model of what is durable.
    pub fn durability<T>(&self, work: impl FnOnce(&mut Durability) -> T) -> T {
        self.with(|inner| work(&mut inner.durability))
    }

    /// Records that an fsync of a user has returned that covers these contents.
    pub fn synced(&self, client: usize, contents: &[Content]) {
        let now = self.now();
        self.with(|inner| {
            contents.iter().for_each(|content| inner.durability.synced(*content, now));
            inner.syncs = (inner.syncs.0 + 1, client);
        });
        self.1.note(&format!("contents {contents:?} are synced"));
    }

    /// Number of stores that were acknowledged, and the user of the last one.
    #[must_use]
    pub fn stores(&self) -> (u64, usize) {
        self.with(|inner| inner.stores)
    }

    /// Number of calls of fsync that have returned, and the user of the last one.
    #[must_use]
    pub fn syncs(&self) -> (u64, usize) {
        self.with(|inner| inner.syncs)
    }

    /// Records that a user's machine has crashed.
    pub fn died(&self, client: usize) {
        let now = self.now();
        self.durability(|model| model.died(client, now));
    }

    /// Records the begin of a store. It counts as unacknowledged until [`History::stored`].
    pub fn storing(&self, client: usize, file: &str, content: Content) {
        let op = Op {
            client,
            kind: Kind::Store,
            content,
            begin: self.now(),
            end: None,
            doubted: false,
            gap: None,
        };
        self.with(|inner| inner.files.entry(file.to_owned()).or_default().push(op));
        self.1.note(&format!("user {client} stores {content} in {file}"));
    }

    /// Records that the store of these contents was acknowledged.
    pub fn stored(&self, file: &str, content: Content) {
        let now = self.now();
        self.with(|inner| {
            let ops = inner.files.entry(file.to_owned()).or_default();
            if let Some(op) = ops.iter_mut().find(|op| op.kind == Kind::Store && op.content == content) {
                op.end = Some(now);
                inner.stores = (inner.stores.0 + 1, op.client);
            }
        });
        self.1.note(&format!("content {content} is stored in {file}"));
    }

    /// Records the begin of the creation of a file that no other one ever replaces. It counts as unacknowledged until [`History::stored`].
    pub fn making(&self, client: usize, file: &str, content: Content) {
        self.with(|inner| inner.objects.push(file.to_owned()));
        self.storing(client, file, content);
    }

    /// Records the begin of the removal of such a file, if it is one. It counts as unacknowledged until the contents that stand for it are stored.
    #[must_use]
    pub fn removing(&self, client: usize, file: &str) -> Option<Content> {
        let content = self.new_content();
        self.with(|inner| {
            let is_known = inner.files.contains_key(file);
            is_known.then(|| inner.removals.insert(file.to_owned(), content))
        })?;
        self.storing(client, file, content);
        Some(content)
    }

    /// Records that a user did not find such a file. While it is removed that may be because it was not made yet, which says nothing.
    pub fn absent(&self, client: usize, file: &str, begin: Time) {
        let content = self.with(|inner| match inner.removals.get(file) {
            None => Some(0),
            Some(removal) => {
                let mut ops = inner.files.get(file).into_iter().flatten();
                ops.find(|op| op.content == *removal && op.end.is_some()).map(|op| op.content)
            }
        });
        if let Some(content) = content {
            self.observed(client, file, content, begin);
        }
    }

    /// The last files that were made once.
    #[must_use]
    pub fn last_objects(&self, most: usize) -> Vec<String> {
        self.with(|inner| inner.objects[inner.objects.len().saturating_sub(most)..].to_vec())
    }

    /// Records the contents that a user read.
    pub fn read(&self, client: usize, file: &str, found: Result<Content, String>, begin: Time) {
        match found {
            Ok(0) if self.with(|inner| inner.is_never_empty) => {
                self.torn(format!("user {client} found no data in {file}"));
            }
            Ok(content) => self.observed(client, file, content, begin),
            Err(what) => self.torn(format!("user {client} found in {file}: {what}")),
        }
    }

    fn torn(&self, what: String) {
        self.1.note(&what);
        self.with(|inner| inner.torn.push(what));
    }

    fn observed(&self, client: usize, file: &str, content: Content, begin: Time) {
        self.1.note(&format!("user {client} finds {content} in {file}"));
        let end = Some(self.now());
        self.with(|inner| {
            if !inner.blind {
                let doubted = inner.doubted.get(&client).is_some_and(|until| begin < *until);
                let op = Op { client, kind: Kind::Read, content, begin, end, doubted, gap: None };
                inner.files.entry(file.to_owned()).or_default().push(op);
            }
        });
    }

    /// Records that an operation of a user failed.
    pub fn failed(&self, client: usize, error: &dyn Display) {
        let what = format!("user {client} is told: {error}");
        self.1.note(&what);
        self.with(|inner| inner.failed.push(what));
    }

    /// The first error of any user.
    #[must_use]
    pub fn first_failure(&self) -> Option<String> {
        self.with(|inner| inner.failed.first().cloned())
    }

    /// Records the duration of an operation of a user.
    pub fn took(&self, client: usize, time: Duration) {
        self.with(|inner| {
            let (total, longest) = inner.took.entry(client).or_default();
            *total += time;
            *longest = time.max(*longest);
        });
    }

    /// The total duration of the slowest user's operations, and the longest operation of any.
    #[must_use]
    pub fn slowest(&self) -> (Duration, Duration) {
        self.with(|inner| {
            let totals = inner.took.values().map(|took| took.0).max();
            let longest = inner.took.values().map(|took| took.1).max();
            (totals.unwrap_or_default(), longest.unwrap_or_default())
        })
    }

    /// Records whether a name was found.
    pub fn saw(&self, name: &str, there: bool, begin: Time) {
        let end = self.now();
        self.with(|inner| {
            if !inner.blind {
                inner.names.saw(name, there, begin, end);
            }
        });
    }

    /// Access to the record of names.
    pub fn names<T>(&self, work: impl FnOnce(&mut Names) -> T) -> T {
        self.with(|inner| work(&mut inner.names))
    }

    /// Number of reads and acknowledged stores.
    #[must_use]
    pub fn count(&self) -> usize {
        self.with(|inner| inner.files.values().flatten().filter(|op| op.end.is_some()).count())
    }

    /// Whether the whole history satisfies the models.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), String> {
        self.with(|inner| {
            if let Some(torn) = inner.torn.first() {
                return Err(torn.clone());
            }
            let gaps = inner.durability.gaps(&inner.files);
            for (file, ops) in &inner.files {
                let gap = |op: &Op| gaps.get(&op.content).copied().filter(|_| op.kind == Kind::Store);
                let ops: Vec<Op> = ops.iter().map(|op| Op { gap: gap(op), ..*op }).collect();
                register::check(&ops).map_err(|violation| format!("{file}: {violation}"))?;
            }
            inner.names.check()
        })
    }
}

fn nanos(time: Duration) -> Time {
    Time::try_from(time.as_nanos()).unwrap_or(Time::MAX)
}

/// Time after which what a machine has decided under a lease is at the server, if nothing is in the way: a second, and the time of the call.
const SENT_WITHIN: Duration = Duration::from_secs(2);
/// Numbers from here on are of contents that users have made from others.
const MADE: Content = 1 << 48;

#[cfg(test)]
mod tests {
    use super::*;

    struct Stopped;

    impl Timeline for Stopped {
        fn now(&self) -> Time {
            0
        }

        fn note(&self, _text: &str) {}
    }

    #[test]
    fn contents_cut_to_the_length_of_others_of_their_file_are_known() {
        let history = History::new(Stopped);
        let (long, short) = (content::bytes(4), content::bytes(7));
        history.storing(0, "file", 4);
        assert!(!history.is_cut_to_another("file", &long[..short.len()]), "nothing else was stored");
        history.storing(0, "file", 7);
        assert!(history.is_cut_to_another("file", &long[..short.len()]));
        assert!(!history.is_cut_to_another("file", &long), "whole");
        assert!(!history.is_cut_to_another("file", &long[..short.len() + 1]), "the length of neither");
        assert!(!history.is_cut_to_another("other", &long[..short.len()]));
        let mixed = [&long[..100], &short[100..]].concat();
        assert!(!history.is_cut_to_another("file", &mixed), "bytes of both");
    }
}
