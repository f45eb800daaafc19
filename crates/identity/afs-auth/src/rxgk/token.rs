//! rxgk token of a client: the sealed token with its key.

use std::fmt;
use std::sync::Arc;

use afs_rpc::{EnvRef, Level, Person, SecuritySource, UnixTime};

use super::source::{RxgkSource, Said};
use super::{CallbackOffer, Lifetime, MasterKey, RxgkTime, TokenContents, Variant};

/// A token of rxgk with its key. The level of its connections was determined when it was made.
#[derive(Clone, PartialEq, Eq)]
pub struct RxgkToken {
    /// The variant of rxgk that it is for.
    pub variant: Variant,
    /// K0.
    pub key: MasterKey,
    /// The level of every connection made with the token.
    pub level: Level,
    /// Limits on each transport key.
    pub lifetime: Lifetime,
    /// When the token expires, according to its maker.
    pub expires: RxgkTime,
    /// The token itself, which only servers can open; at most 12 KiB.
    pub sealed: Vec<u8>,
}

impl RxgkToken {
    /// The holder's part of a sealed token.
    #[must_use]
    pub fn of_contents(variant: Variant, contents: TokenContents, sealed: Vec<u8>) -> Self {
        let TokenContents { key, level, lifetime, expires, .. } = contents;
        Self { variant, key, level, lifetime, expires, sealed }
    }

    /// When it expires; `None` is never.
    #[must_use]
    pub fn expires(&self) -> Option<UnixTime> {
        self.expires.expiry()
    }

    /// A source of connections with this token.
    #[must_use]
    pub fn source(&self, env: EnvRef) -> Arc<dyn SecuritySource> {
        Arc::new(RxgkSource::new(self.clone(), env, Said::Nothing))
    }

    /// As [`RxgkToken::source`]; servers also get a token for authenticated calls back to this client.
    #[must_use]
    pub fn source_with_callback(&self, env: EnvRef, offer: Arc<CallbackOffer>) -> Arc<dyn SecuritySource> {
        Arc::new(RxgkSource::new(self.clone(), env, Said::Callback(offer)))
    }

    /// As [`RxgkToken::source`]; servers also learn for whom its holder acts. They believe a holder of the cell's key alone.
    #[must_use]
    pub fn source_for(&self, env: EnvRef, person: Person) -> Arc<dyn SecuritySource> {
        Arc::new(RxgkSource::new(self.clone(), env, Said::Person(person)))
    }
}

impl fmt::Debug for RxgkToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RxgkToken")
            .field("variant", &self.variant)
            .field("enctype", &self.key.enctype())
            .field("level", &self.level)
            .field("expires", &self.expires())
            .finish_non_exhaustive()
    }
}
