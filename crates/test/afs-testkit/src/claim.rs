//! Security class without ciphers: a client claims an identity, which is believed if it knows the word of the class.
//!
//! For tests of permissions. That an identity cannot be forged is tested with the real classes.

use std::sync::Arc;

use afs_rpc::{
    Class, Credential, Instant, Level, Principal, Protection, Security, SecuritySource, Suspended, Terms,
    TokenGeneration, UnixTime,
};
use afs_rx::{
    Challenge, ClientSecurity, Identity, PacketContext, PacketSecurity, Proof, Response, SecurityError,
    ServerSecurity, ServerSession, Verified,
};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use bytes::Bytes;

/// No real class has this number.
const INDEX: u8 = 9;
/// The word of a cell's servers.
pub const WORD: &str = "open sesame";
/// With this word a claim is refused as an expired token is.
pub const EXPIRED: &str = "expired";
/// The code for a claim with another word.
pub const BAD_PROOF: i32 = AbortCode::RXKADSEALEDINCON.0;

/// A client's claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The identity.
    pub principal: Principal,
    /// The class and level that the server sees.
    pub protection: Protection,
    /// The word that the server also knows.
    pub word: String,
    /// The word that the client's callback service knows.
    pub callback: Option<String>,
    /// End of the token, in whole seconds, as the server sees it. As with rxgk, connections are not closed then.
    pub expires: Option<UnixTime>,
}

impl Claim {
    /// A user of this cell, over rxgk with encryption.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Claim::by(Principal::local(name))
    }

    /// A user of another cell.
    #[must_use]
    pub fn of_cell(name: &str, cell: &str) -> Self {
        let terms = Terms::default();
        Claim::by(Principal::Named { name: name.into(), cell: Some(cell.into()), terms })
    }

    /// The same user without these groups.
    ///
    /// # Panics
    /// If they cannot be suspended.
    #[must_use]
    pub fn without(mut self, groups: &[i32]) -> Self {
        if let Principal::Named { terms, .. } = &mut self.principal {
            terms.suspended = Suspended::new(groups.iter().copied().map(ViceId)).unwrap();
        }
        self
    }

    /// The same with a token of this generation.
    #[must_use]
    pub fn of_generation(mut self, generation: u64) -> Self {
        if let Principal::Named { terms, .. } = &mut self.principal {
            terms.generation = TokenGeneration(generation);
        }
        self
    }

    fn generation(&self) -> u64 {
        match &self.principal {
            Principal::Named { terms, .. } => terms.generation.0,
            Principal::CellKey => 0,
        }
    }

    /// A holder of the cell's key.
    #[must_use]
    pub fn of_key() -> Self {
        Claim::by(Principal::CellKey)
    }

    fn by(principal: Principal) -> Self {
        let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
        Claim { principal, protection, word: WORD.into(), callback: None, expires: None }
    }

    /// The same, by another class or level.
    #[must_use]
    pub fn protected(mut self, class: Class, level: Level) -> Self {
        self.protection = Protection { class, level };
        self
    }

    /// The same with another word than the servers'.
    #[must_use]
    pub fn with_word(mut self, word: &str) -> Self {
        self.word = word.into();
        self
    }

    /// The same, with the word by which the server authenticates when it calls back.
    #[must_use]
    pub fn called_back_with(mut self, word: &str) -> Self {
        self.callback = Some(word.into());
        self
    }

    /// The same, with an end.
    #[must_use]
    pub fn ending_at(mut self, expires: UnixTime) -> Self {
        self.expires = Some(expires);
        self
    }

    /// The security of connections that make this claim.
    #[must_use]
    pub fn security(&self) -> Security {
        Security::new(Arc::new(self.clone()))
    }

    fn credential(&self) -> Credential {
        let back = |word: &String| Claim::of_key().with_word(word).security();
        Credential {
            expires: self.expires,
            callback: self.callback.as_ref().map(back),
            ..Credential::new(self.principal.clone(), self.protection)
        }
    }
}

impl SecuritySource for Claim {
    fn name(&self) -> String {
        format!("{self:?}")
    }

    fn session(&self) -> Box<dyn ClientSecurity> {
        Box::new(Session { claim: Some(self.clone()), word: String::new(), proven: None })
    }
}

/// The server's half of the class, with the word that it believes.
pub struct ClaimServer(pub String);

impl ServerSecurity for ClaimServer {
    fn index(&self) -> u8 {
        INDEX
    }

    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(Session { claim: None, word: self.0.clone(), proven: None })
    }
}

/// Either end of a connection.
struct Session {
    claim: Option<Claim>,
    word: String,
    proven: Option<Arc<Credential>>,
}

impl PacketSecurity for Session {
    fn index(&self) -> u8 {
        INDEX
    }

    fn seal(&self, _: &PacketContext, _: &mut Vec<u8>) -> Result<u16, SecurityError> {
        Ok(0)
    }

    fn open(&self, _: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        Ok(payload)
    }
}

impl ClientSecurity for Session {
    fn respond(&mut self, _: &Challenge<'_>) -> Result<Response, SecurityError> {
        let claim = self.claim.as_ref().unwrap();
        let (name, cell) = match &claim.principal {
            Principal::CellKey => ("", ""),
            Principal::Named { name, cell, .. } => (&**name, cell.as_deref().unwrap_or("")),
        };
        let class = if claim.protection.class == Class::Rxgk { "gk" } else { "kad" };
        let level = claim.protection.level.number().to_string();
        let back = claim.callback.as_deref().unwrap_or("");
        let end = claim.expires.map_or(String::new(), |expires| expires.secs.to_string());
        let suspended: Vec<String> =
            claim.principal.suspended().groups().iter().map(|group| group.0.to_string()).collect();
        let generation = claim.generation().to_string();
        let words = [&claim.word, name, cell, class, &level, back, &end, &suspended.join(","), &generation];
        let payload = words.join("\0").into_bytes();
        Ok(Response { payload, checksum: 0 })
    }
}

impl ServerSession for Session {
    fn is_authenticated(&self, _: Instant) -> bool {
        self.proven.is_some()
    }

    fn challenge(&mut self, _: Instant, _: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        b"who?".to_vec()
    }

    fn verify(&mut self, response: &Proof<'_>) -> Result<Verified, SecurityError> {
        let text = std::str::from_utf8(response.payload).unwrap();
        let words: Vec<&str> = text.split('\0').collect();
        let [word, name, cell, class, level, back, end, suspended, generation] = words[..] else {
            panic!("{text:?}")
        };
        if word != self.word {
            let code = if word == EXPIRED { AbortCode::RXKADEXPIRED.0 } else { BAD_PROOF };
            return Err(SecurityError { code });
        }
        let claim = if name.is_empty() { Claim::of_key() } else { Claim::of(name) };
        let mut claim = if cell.is_empty() { claim } else { Claim::of_cell(name, cell) };
        let class = if class == "gk" { Class::Rxgk } else { Class::Rxkad };
        let suspended: Vec<i32> = suspended.split(',').filter_map(|group| group.parse().ok()).collect();
        claim = claim.without(&suspended).of_generation(generation.parse().unwrap());
        claim = claim.protected(class, Level::from_number(level.parse().unwrap()).unwrap());
        claim.callback = Some(back.to_owned()).filter(|back| !back.is_empty());
        claim.expires = end.parse().ok().map(|secs| UnixTime { secs, nanos: 0 });
        self.proven = Some(Arc::new(claim.credential()));
        Ok(Verified::default())
    }

    fn identity(&self) -> Option<Identity> {
        self.proven.clone().map(|proven| proven as Identity)
    }
}
