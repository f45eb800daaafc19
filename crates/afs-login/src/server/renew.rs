//! Issue of first tokens, and of renewed ones.

use afs_rpc::{Caller, Class, Identity, Level, Principal, UnixTime};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::login::{self, Renewal, SealedGrant, UserText, Wish};
use afs_wire::xdr::{Decode, Encode, Reader};

use super::records::{Generation, failed};
use super::{Grantee, LoginServer, check_version, later};
use crate::crypto::{Exchange, SealKey};
use crate::protocol::{Kind, RENEW};
use crate::user::UserName;

const ABOUT: &[u8] = b"andrew login renewal 1";

/// The right to renew, which the client keeps sealed.
struct Right {
    user: UserName,
    id: ViceId,
    generation: Generation,
    until: UnixTime,
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
        let known = self.users.user(user.as_str()).await.map_err(failed)?.ok_or(AbortCode::LGNDENIED)?;
        let generation = self.records.generation(user).await?;
        let lifetimes = self.lifetimes;
        let until = later(self.env.wall(), lifetimes.renewable.max(self.lifetime(wish)));
        let right = Right { user: user.clone(), id: known.id, generation, until };
        let renewal = self.seal_right(&right)?;
        self.grant(&Grantee { user, wish, renewal, renewable_until: until }, key, kind)
    }

    pub(super) async fn renew(
        &self,
        caller: &Caller,
        ask: login::Renew,
    ) -> Result<login::RenewReply, AbortCode> {
        check_version(ask.version)?;
        let user = renewing(&caller.identity)?;
        let right = self.open_right(&ask.renewal).filter(|right| right.user == user);
        let right = right.ok_or(AbortCode::LGNNOTRENEWABLE)?;
        let known = self.users.user(user.as_str()).await.map_err(failed)?;
        let current = self.records.generation(&user).await? == right.generation;
        if !current || known.map(|known| known.id) != Some(right.id) || right.until <= self.env.wall() {
            return Err(AbortCode::LGNNOTRENEWABLE);
        }
        let exchange = Exchange::begin(&self.env);
        let share = exchange.share();
        let said = RENEW.transcript(&self.cell, &user, &ask.wish).with(&ask.share.0).with(&share.0);
        let key = exchange.finish(ask.share, &said.digest(), RENEW.purpose).ok_or(AbortCode::LGNDENIED)?;
        let to = Grantee { user: &user, wish: &ask.wish, renewal: ask.renewal, renewable_until: right.until };
        let grant = self.grant(&to, &key, &RENEW)?;
        tracing::info!(%user, "renewed a token");
        Ok(login::RenewReply { share, grant })
    }

    fn seal_right(&self, right: &Right) -> Result<Renewal, AbortCode> {
        let mut plain = Vec::with_capacity(128);
        right.user.to_wire().encode(&mut plain);
        right.id.encode(&mut plain);
        login::Fixed(right.generation).encode(&mut plain);
        right.until.secs.encode(&mut plain);
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
        Some(Right { user, id, generation, until })
    }
}

/// The user who renews, if the token's connection is protected against modification.
fn renewing(identity: &Identity) -> Result<UserName, AbortCode> {
    let protection = identity.protection();
    match identity.principal() {
        Some(Principal::Named { .. })
            if protection.class != Class::Rxgk || protection.level < Level::Auth =>
        {
            Err(AbortCode::LGNPROTECTION)
        }
        Some(Principal::Named { name, cell: None }) => UserName::new(name).map_err(|_| AbortCode::LGNPERM),
        _ => Err(AbortCode::LGNPERM),
    }
}
