//! Issue of first tokens, and of renewed ones.

use afs_rpc::{Caller, Class, Identity, Level, Principal, Suspended, Terms, TokenGeneration, UnixTime};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::login::{self, Renewal, SealedGrant, UserText, Wish};
use afs_wire::xdr::{BoundedVec, Decode, Encode, Reader};

use super::records::{Generation, failed};
use super::{Grantee, LoginServer, check_version, later, level_of};
use crate::crypto::{Exchange, SealKey, Share};
use crate::protocol::{Kind, RENEW};
use crate::user::UserName;

const ABOUT: &[u8] = b"andrew login renewal 1";

/// The right to renew, which the client keeps sealed.
pub(super) struct Right {
    pub(super) user: UserName,
    pub(super) id: ViceId,
    pub(super) generation: Generation,
    pub(super) until: UnixTime,
    /// The groups that no token of this login has, however it is renewed or changed.
    pub(super) suspended: Suspended,
}

impl LoginServer {
    /// The token of a user who has just authenticated.
    pub(super) async fn first_grant(
        &self,
        user: &UserName,
        wish: &Wish,
        key: &SealKey,
        kind: &Kind,
    ) -> Result<SealedGrant, AbortCode> {
        let level = level_of(wish)?;
        let known = self.users.user(user.as_str()).await.map_err(failed)?;
        let known = known.ok_or(AbortCode::LGNDENIED)?;
        let generation = self.records.generation(user).await?;
        let lifetimes = self.lifetimes;
        let until = later(self.env.wall(), lifetimes.renewable.max(self.lifetime(wish)));
        let terms = Terms { suspended: Suspended::default(), generation: known.tokens };
        let suspended = terms.suspended.clone();
        let right = Right { user: user.clone(), id: known.id, generation, until, suspended };
        let renewal = self.seal_right(&right)?;
        let end = self.end(wish, until);
        let to = Grantee { user, level, end, terms, renewal, renewable_until: until };
        self.grant(to, key, kind).await
    }

    pub(super) async fn renew(
        &self,
        caller: &Caller,
        ask: login::Renew,
    ) -> Result<login::RenewReply, AbortCode> {
        check_version(ask.version)?;
        let (user, present) = renewing(&caller.identity)?;
        let level = level_of(&ask.wish)?;
        let right = self.right(&ask.renewal, &user).await?.ok_or(AbortCode::LGNNOTRENEWABLE)?;
        let suspended = present.suspended.and(&right.suspended).map_err(|_| AbortCode::LGNPERM)?;
        let generation = self.check_counts(&user, &present).await?;
        let (share, key) = self.exchange(&RENEW, &user, &ask.wish, ask.share)?;
        let end = self.end(&ask.wish, right.until);
        let to = Grantee {
            user: &user,
            level,
            end,
            terms: Terms { suspended, generation },
            renewal: ask.renewal,
            renewable_until: right.until,
        };
        let grant = self.grant(to, &key, &RENEW).await?;
        tracing::info!(%user, "renewed a token");
        Ok(login::RenewReply { share, grant })
    }

    /// The key that seals a grant for a caller with a token, and the server's share of its exchange.
    pub(super) fn exchange(
        &self,
        kind: &Kind,
        user: &UserName,
        wish: &Wish,
        theirs: Share,
    ) -> Result<(Share, SealKey), AbortCode> {
        let exchange = Exchange::begin(&self.env);
        let share = exchange.share();
        let said = kind.transcript(&self.cell, user, wish).with(&theirs.0).with(&share.0);
        let key = exchange.finish(theirs, &said.digest(), kind.purpose).ok_or(AbortCode::LGNDENIED)?;
        Ok((share, key))
    }

    /// The right in a renewal, if it is this user's and the login counts still.
    pub(super) async fn right(&self, renewal: &Renewal, user: &UserName) -> Result<Option<Right>, AbortCode> {
        let Some(right) = self.open_right(renewal).filter(|right| right.user == *user) else {
            return Ok(None);
        };
        let known = self.users.user(user.as_str()).await.map_err(failed)?;
        let current = self.records.generation(user).await? == right.generation;
        let counts =
            current && known.map(|known| known.id) == Some(right.id) && right.until > self.env.wall();
        Ok(counts.then_some(right))
    }

    /// The generation of the user's tokens now, if a token with these terms counts.
    pub(super) async fn check_counts(
        &self,
        user: &UserName,
        terms: &Terms,
    ) -> Result<TokenGeneration, AbortCode> {
        let holder = self.users.holder(user.as_str(), terms).await.map_err(failed)?;
        Ok(holder.ok_or(AbortCode::RXGKEXPIRED)?.tokens)
    }

    pub(super) fn seal_right(&self, right: &Right) -> Result<Renewal, AbortCode> {
        let mut plain = Vec::with_capacity(128);
        right.user.to_wire().encode(&mut plain);
        right.id.encode(&mut plain);
        login::Fixed(right.generation).encode(&mut plain);
        right.until.secs.encode(&mut plain);
        BoundedVec::<ViceId, { Suspended::MAX }>::first_of(right.suspended.groups().iter().copied())
            .encode(&mut plain);
        let sealed = self.secret.renewal_key().seal(ABOUT, &plain, &self.env);
        Renewal::new(sealed).map_err(|_| AbortCode::LGNIO)
    }

    fn open_right(&self, renewal: &Renewal) -> Option<Right> {
        let plain = self.secret.renewal_key().open(ABOUT, renewal)?;
        let r = &mut Reader::new(&plain);
        let user = UserName::from_wire(&UserText::decode(r).ok()?).ok()?;
        let id = ViceId::decode(r).ok()?;
        let generation = login::Fixed::decode(r).ok()?.0;
        let until = UnixTime { secs: u64::decode(r).ok()?, nanos: 0 };
        // Rights of earlier versions end here.
        let groups = if r.remaining() == 0 { BoundedVec::default() } else { BoundedVec::decode(r).ok()? };
        let groups: BoundedVec<ViceId, { Suspended::MAX }> = groups;
        let suspended = Suspended::new(groups).ok()?;
        r.finish().ok()?;
        Some(Right { user, id, generation, until, suspended })
    }
}

/// The user of a token and its terms, if the token's connection is protected against modification.
pub(super) fn renewing(identity: &Identity) -> Result<(UserName, Terms), AbortCode> {
    let protection = identity.protection();
    match identity.principal() {
        Some(Principal::Named { .. })
            if protection.class != Class::Rxgk || protection.level < Level::Auth =>
        {
            Err(AbortCode::LGNPROTECTION)
        }
        Some(Principal::Named { name, cell: None, terms }) => {
            let user = UserName::new(name).map_err(|_| AbortCode::LGNPERM)?;
            Ok((user, terms.clone()))
        }
        _ => Err(AbortCode::LGNPERM),
    }
}
