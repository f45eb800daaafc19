//! Cache of resolved subjects, valid for one version of the database; two generations bound it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use afs_db::protection::RequesterIdentity;
use parking_lot::Mutex;

use crate::subject::Subject;

/// Weight of one generation, and so of half the cache: the groups of its subjects, and a constant for each
/// subject.
const WEIGHT_MAX: usize = 1 << 18;
const SUBJECT_WEIGHT: usize = 64;

type Key = (RequesterIdentity, IpAddr);

/// Subjects by identity and address, all resolved at one version of the database. Bounded: a subject not used
/// since half the cache was refilled is evicted.
#[derive(Default)]
pub(super) struct SubjectCache(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    version: u64,
    young: BTreeMap<Key, Subject>,
    old: BTreeMap<Key, Subject>,
    /// Weight of the young generation.
    weight: usize,
}

impl SubjectCache {
    /// The subject resolved at exactly this version.
    pub(super) fn get(&self, version: u64, key: &Key) -> Option<Subject> {
        let mut cache = self.0.lock();
        if cache.version != version {
            return None;
        }
        if let Some(subject) = cache.young.get(key) {
            return Some(subject.clone());
        }
        let subject = cache.old.remove(key)?;
        cache.put(key.clone(), subject.clone());
        Some(subject)
    }

    /// Stores a subject whose look-up started at this version or later.
    pub(super) fn put(&self, version: u64, key: Key, subject: Subject) {
        let mut cache = self.0.lock();
        if cache.version != version {
            // A slow look-up must not bring back what other calls have seen change.
            if cache.version > version {
                return;
            }
            *cache = Generations { version, ..Generations::default() };
        }
        cache.put(key, subject);
    }
}

impl Generations {
    fn put(&mut self, key: Key, subject: Subject) {
        if self.weight > WEIGHT_MAX {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += SUBJECT_WEIGHT + subject.groups().len() + subject.host_groups().len();
        self.young.insert(key, subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::ids::ViceId;
    use std::net::Ipv4Addr;

    fn key(number: u32) -> Key {
        (RequesterIdentity::local("alice"), Ipv4Addr::from(number).into())
    }

    fn subject(id: i32) -> Subject {
        Subject::new(ViceId(id), [])
    }

    #[test]
    fn a_cached_subject_is_valid_for_its_version_alone() {
        let cache = SubjectCache::default();
        cache.put(5, key(1), subject(1));
        assert_eq!(cache.get(5, &key(1)), Some(subject(1)));
        assert_eq!(cache.get(6, &key(1)), None);
        cache.put(6, key(1), subject(2));
        cache.put(5, key(1), subject(1));
        assert_eq!(cache.get(6, &key(1)), Some(subject(2)), "the late one is not kept");
        assert_eq!(cache.get(5, &key(1)), None);
    }

    #[test]
    fn many_callers_evict_those_that_do_not_return() {
        let cache = SubjectCache::default();
        let fills = (WEIGHT_MAX / SUBJECT_WEIGHT) as u32;
        for number in 0..4 * fills {
            cache.put(1, key(number), subject(7));
            assert!(cache.get(1, &key(0)).is_some(), "whoever comes back stays");
        }
        let cache = cache.0.lock();
        assert!(cache.young.len() + cache.old.len() <= 2 * (fills as usize + 2));
        assert!(!cache.young.contains_key(&key(1)) && !cache.old.contains_key(&key(1)));
    }
}
