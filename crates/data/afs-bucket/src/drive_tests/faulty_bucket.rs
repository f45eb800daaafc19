//! Store with faults that a seed chooses: refusals, lost replies, cut and wrong bodies, late listings, and the crash of its user.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use afs_sim::SimRng;

use super::*;
use crate::bucket::{Failure, Listed};

/// How often what goes wrong, in a million.
#[derive(Clone, Copy, Default)]
pub(super) struct Rates {
    /// Refused, not served.
    pub(super) busy: u32,
    /// Served or not, without a reply.
    pub(super) broken: u32,
    /// Never replied to.
    pub(super) silent: u32,
    /// Bytes of a body are lost at its end.
    pub(super) cut: u32,
    /// A bit of a body is wrong.
    pub(super) wrong: u32,
    /// A recent change is not in a listing.
    pub(super) late: u32,
}

/// The faulty way to a store of one life of its user.
#[derive(Clone)]
pub(super) struct FaultyBucket {
    objects: MemoryBucket,
    env: EnvRef,
    state: Arc<Mutex<State>>,
}

struct State {
    rng: SimRng,
    rates: Rates,
    requests: u64,
    crash_at: Option<u64>,
    crashed: bool,
    /// The latest changes: a key, and the object's length before if there was one.
    recent: VecDeque<(String, Option<u64>)>,
}

enum Fate {
    Served,
    Refused,
    /// Whether it is served before the reply is lost.
    NoReply(bool),
    Silent(bool),
}

impl FaultyBucket {
    pub(super) fn new(objects: &MemoryBucket, env: EnvRef, rng: SimRng, crash_at: Option<u64>) -> Self {
        let state = State {
            rng,
            rates: Rates::default(),
            requests: 0,
            crash_at,
            crashed: false,
            recent: VecDeque::new(),
        };
        Self { objects: objects.clone(), env, state: Arc::new(Mutex::new(state)) }
    }

    pub(super) fn set(&self, rates: Rates) {
        self.state.lock().rates = rates;
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.state.lock().crashed
    }

    fn request<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryBucket, &mut State) -> Result<T, Failure> + Send + 'static,
    ) -> Reply<T> {
        let (fate, delay) = self.state.lock().fate();
        let (objects, state, sleep) = (self.objects.clone(), self.state.clone(), self.env.sleep(delay));
        Box::pin(async move {
            sleep.await;
            let serve = || work(&objects, &mut state.lock());
            match fate {
                Fate::Served => serve(),
                Fate::Refused => Err(Failure::Busy("503 Slow Down".into())),
                Fate::NoReply(served) => {
                    served.then(|| _ = serve());
                    Err(Failure::Broken("connection reset".into()))
                }
                Fate::Silent(served) => {
                    served.then(|| _ = serve());
                    std::future::pending().await
                }
            }
        })
    }
}

impl State {
    fn fate(&mut self) -> (Fate, Duration) {
        self.requests += 1;
        let delay = self.rng.duration(Duration::from_millis(1), Duration::from_millis(80));
        let served = self.rng.chance(500_000);
        let rates = self.rates;
        if self.crashed {
            return (Fate::Silent(false), delay);
        }
        if self.crash_at == Some(self.requests) {
            self.crashed = true;
            return (Fate::Silent(served), Duration::ZERO);
        }
        let fate = if self.rng.chance(rates.busy) {
            Fate::Refused
        } else if self.rng.chance(rates.broken) {
            Fate::NoReply(served)
        } else if self.rng.chance(rates.silent) {
            Fate::Silent(served)
        } else {
            Fate::Served
        };
        (fate, delay)
    }

    fn changed(&mut self, key: &str, before: Option<u64>) {
        self.recent.push_back((key.into(), before));
        if self.recent.len() > 10 {
            self.recent.pop_front();
        }
    }

    fn body(&mut self, body: Bytes) -> Bytes {
        if body.is_empty() {
            return body;
        }
        if self.rng.chance(self.rates.cut) {
            return body.slice(..self.rng.index(body.len()));
        }
        if self.rng.chance(self.rates.wrong) {
            let mut wrong = body.to_vec();
            wrong[self.rng.index(body.len())] ^= 0x10;
            return wrong.into();
        }
        body
    }
}

impl Bucket for FaultyBucket {
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()> {
        let key = key.to_owned();
        self.request(move |objects, state| {
            if objects.object(&key).is_some() {
                return Err(Failure::Exists);
            }
            state.changed(&key, None);
            objects.replace(&key, Some(body.concat().into()));
            Ok(())
        })
    }

    fn get(&self, key: &str, range: Range<u64>) -> Reply<Bytes> {
        let key = key.to_owned();
        self.request(move |objects, state| Ok(state.body(now(objects.get(&key, range))?)))
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Reply<Page> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        self.request(move |objects, state| {
            let mut page = now(objects.list(&prefix, after.as_deref()))?;
            for (key, before) in state.recent.clone() {
                let shown = key.starts_with(&prefix) && after.as_ref().is_none_or(|after| key > *after);
                if shown && state.rng.chance(state.rates.late) {
                    page.objects.retain(|listed| listed.key != key);
                    page.objects.extend(before.map(|len| Listed { key, len }));
                }
            }
            page.objects.sort_by(|one, next| one.key.cmp(&next.key));
            Ok(page)
        })
    }

    fn delete(&self, key: &str) -> Reply<()> {
        let key = key.to_owned();
        self.request(move |objects, state| {
            let before = objects.object(&key).map(|object| object.len() as u64);
            state.changed(&key, before);
            objects.replace(&key, None);
            Ok(())
        })
    }
}
