//! Liar: chooses by a seed which replies are replaced, and by what, and counts what was told of which call.

use std::collections::BTreeMap;

use afs_sim::SimRng;
use afs_wire::error::AbortCode;
use afs_wire::rpc::{Opcode, ServiceId, opcode_name};
use afs_wire::{fs, vl, vol};
use bytes::Bytes;
use parking_lot::Mutex;

/// What is told in place of the truth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lie {
    /// The reply as far as some byte.
    Truncated,
    /// The reply, and up to a mebibyte.
    OverLong,
    /// The reply with one word at an extreme, which makes lengths negative and counts as large as they can be.
    Extreme,
    /// The reply to a call of another kind.
    OfAnotherCall,
    /// An earlier reply to a call of that kind, of another object perhaps.
    Earlier,
    /// That the call failed, although it was made.
    Refused,
    /// That the call failed, and it was not made.
    Unmade,
    /// The fid of another object, of a volume that may not exist, or of none.
    OtherFid,
    /// Another type of the object.
    OtherType,
    /// Another length.
    OtherLength,
    /// An earlier or much later version of the data.
    OtherVersion,
    /// Other rights.
    OtherRights,
    /// A promise without end, or one that is over.
    OtherPromise,
    /// Other numbers of a volume.
    OtherVolume,
    /// Addresses of other machines, or of none.
    OtherAddress,
    /// Other drives, or other places among them.
    OtherDrive,
}

impl Lie {
    /// All but those about drives.
    pub const ALL: [Lie; 15] = [
        Lie::Truncated,
        Lie::OverLong,
        Lie::Extreme,
        Lie::OfAnotherCall,
        Lie::Earlier,
        Lie::Refused,
        Lie::Unmade,
        Lie::OtherFid,
        Lie::OtherType,
        Lie::OtherLength,
        Lie::OtherVersion,
        Lie::OtherRights,
        Lie::OtherPromise,
        Lie::OtherVolume,
        Lie::OtherAddress,
    ];
}

/// Calls by their names, each with lies, and how often they were told.
pub type Delivered = BTreeMap<(&'static str, Lie), u64>;

/// Which lies are told. The default: none.
#[derive(Clone, Default, Debug)]
pub struct LiePlan {
    /// The lies to choose from; each time one of them is told.
    pub lies: Vec<Lie>,
    /// The only call about which they are told.
    pub about: Option<&'static str>,
    /// Chance of a lie in each reply, of a million.
    pub per_million: u32,
}

/// What a lie about the meaning of a reply makes of it; `None` if it is no lie there.
pub type Falsify = fn(&mut SimRng, Lie, (ServiceId, Opcode), &Bytes) -> Option<Vec<u8>>;
/// What is always told in place of a reply, although it is no lie: where the server is, for example.
type Passed = Box<dyn Fn(ServiceId, Opcode, Bytes) -> Bytes + Send + Sync>;

/// Lies when it is told to.
pub struct Liar {
    passed: Passed,
    falsify: Falsify,
    state: Mutex<State>,
}

struct State {
    rng: SimRng,
    plan: LiePlan,
    /// The latest honest replies, by call.
    heard: BTreeMap<(ServiceId, Opcode), Vec<Bytes>>,
    /// What is being told, until it has been sent.
    telling: Vec<(Bytes, &'static str, Lie)>,
    told: Delivered,
}

impl Liar {
    /// One that tells no lies yet, and none about the meaning of replies without [`Liar::falsifying`].
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let (heard, telling, told) = Default::default();
        let rng = SimRng::new(seed);
        let state = State { rng, plan: LiePlan::default(), heard, telling, told };
        Self { passed: Box::new(|_, _, reply| reply), falsify: |_, _, _, _| None, state: Mutex::new(state) }
    }

    /// The same with lies about the meaning of replies.
    #[must_use]
    pub fn falsifying(self, falsify: Falsify) -> Self {
        Self { falsify, ..self }
    }

    /// The same, which always tells this in place of a reply.
    #[must_use]
    pub fn passing(self, passed: impl Fn(ServiceId, Opcode, Bytes) -> Bytes + Send + Sync + 'static) -> Self {
        Self { passed: Box::new(passed), ..self }
    }

    /// Tells the lies of a plan from now on.
    pub fn tell(&self, plan: LiePlan) {
        self.state.lock().plan = plan;
    }

    /// What was told so far.
    #[must_use]
    pub fn told(&self) -> Delivered {
        self.state.lock().told.clone()
    }

    /// The code with which a call is refused that the server does not get.
    pub(super) fn refuses_unseen(&self, service: ServiceId, request: &Bytes) -> Option<AbortCode> {
        let mut state = self.state.lock();
        let name = name_of(service, request);
        (state.choose(name) == Some(Lie::Unmade)).then(|| {
            state.telling.push((request.clone(), name, Lie::Unmade));
            state.code()
        })
    }

    /// What a client is told in place of a reply.
    pub(super) fn replies(
        &self,
        service: ServiceId,
        request: &Bytes,
        reply: Result<Bytes, AbortCode>,
    ) -> Result<Bytes, AbortCode> {
        let mut state = self.state.lock();
        let kind = (service, opcode(request));
        let reply = reply.map(|reply| (self.passed)(kind.0, kind.1, reply));
        let name = name_of(service, request);
        let chosen = state.choose(name).filter(|lie| *lie != Lie::Unmade);
        let lie =
            chosen.and_then(|lie| Some((lie, state.forged(self.falsify, lie, kind, reply.as_ref().ok()?)?)));
        if let Ok(reply) = &reply {
            let heard = state.heard.entry(kind).or_default();
            heard.push(reply.clone());
            let excess = heard.len().saturating_sub(HEARD_MAX);
            heard.drain(..excess);
        }
        let Some((lie, forged)) = lie else { return reply };
        state.telling.push((request.clone(), name, lie));
        forged
    }

    /// The whole reply to a request has been sent.
    pub(super) fn was_sent(&self, service: ServiceId, request: &Bytes) {
        let mut state = self.state.lock();
        let name = name_of(service, request);
        let told = state.telling.iter().position(|(of, call, _)| of == request && *call == name);
        if let Some(at) = told {
            let (_, name, lie) = state.telling.remove(at);
            *state.told.entry((name, lie)).or_default() += 1;
        }
    }
}

impl State {
    fn choose(&mut self, call: &str) -> Option<Lie> {
        let lies =
            self.plan.about.is_none_or(|about| about == call) && self.rng.chance(self.plan.per_million);
        if lies { self.rng.pick(&self.plan.lies).copied() } else { None }
    }

    fn code(&mut self) -> AbortCode {
        AbortCode(*self.rng.pick(&CODES).unwrap())
    }

    /// A lie about a reply; `None` if it is no lie there.
    fn forged(
        &mut self,
        falsify: Falsify,
        lie: Lie,
        kind: (ServiceId, Opcode),
        reply: &Bytes,
    ) -> Option<Result<Bytes, AbortCode>> {
        let forged = match lie {
            Lie::Refused => return Some(Err(self.code())),
            Lie::Unmade => return None,
            Lie::Truncated if reply.is_empty() => return None,
            Lie::Truncated => reply.slice(..self.rng.index(reply.len())),
            Lie::OverLong => self.longer(reply),
            Lie::Extreme => self.extreme(reply)?,
            Lie::OfAnotherCall => self.heard_of(|of| of != kind)?,
            Lie::Earlier => self.heard_of(|of| of == kind)?,
            _ => Bytes::from(falsify(&mut self.rng, lie, kind, reply)?),
        };
        (forged != *reply).then_some(Ok(forged))
    }

    fn longer(&mut self, reply: &[u8]) -> Bytes {
        let more = *self.rng.pick(&[1, 4, 1000, 70_000, 1 << 20]).unwrap();
        let mut longer = reply.to_vec();
        longer.resize(reply.len() + more, 0);
        self.rng.fill(&mut longer[reply.len()..]);
        longer.into()
    }

    fn extreme(&mut self, reply: &[u8]) -> Option<Bytes> {
        let mut forged = reply.to_vec();
        let (words, _) = forged.as_chunks_mut::<4>();
        // The first words are of more weight than those of data.
        let last = words.len().min(if self.rng.chance(500_000) { 12 } else { usize::MAX });
        let at = self.rng.index(last.max(1));
        *words.get_mut(at)? = self.rng.pick(&EXTREMES).unwrap().to_be_bytes();
        Some(forged.into())
    }

    fn heard_of(&mut self, is_of: impl Fn((ServiceId, Opcode)) -> bool) -> Option<Bytes> {
        let all: Vec<&Bytes> =
            self.heard.iter().filter(|(of, _)| is_of(**of)).flat_map(|(_, replies)| replies).collect();
        self.rng.pick(&all).map(|reply| (*reply).clone())
    }
}

fn opcode(request: &[u8]) -> Opcode {
    let word = request.first_chunk().copied().unwrap_or_default();
    Opcode(u32::from_be_bytes(word))
}

/// The name of a call.
fn name_of(service: ServiceId, request: &[u8]) -> &'static str {
    let table = match service {
        ServiceId::LOCATION => vl::OPCODES,
        ServiceId::VOLUME => vol::OPCODES,
        _ => fs::OPCODES,
    };
    opcode_name(table, opcode(request)).unwrap_or("(unknown)")
}

/// Replies that are remembered of each call.
const HEARD_MAX: usize = 16;
const EXTREMES: [u32; 7] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_fffe, 0x0010_0000];
/// Codes of volumes, of errno, of Rx, of stubs, of the location service and of the security classes. Not that of a file that was removed:
/// what a program has written to it goes with it.
const CODES: [i32; 23] = [
    1,
    2,
    5,
    13,
    17,
    28,
    39,
    101,
    103,
    106,
    109,
    110,
    111,
    113,
    -1,
    -3,
    -6,
    -453,
    -455,
    363_524,
    19_270_408,
    1_233_242_888,
    i32::MIN,
];
