//! Login with an SSH key, server side.

use std::sync::Arc;

use afs_rpc::{Caller, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::login::{self, KeyBlob};
use afs_wire::xdr::{Decode, Encode, Reader};
use zeroize::Zeroizing;

use super::attempt::{Attempt, Method};
use super::{LoginServer, check_version};
use crate::crypto::{Exchange, Share};
use crate::protocol::{SSH, SshExchange};
use crate::ssh::{self, UserKey};
use crate::user::UserName;

/// Length of an exchange's secret.
const SECRET_LEN: usize = 32;

impl LoginServer {
    pub(super) async fn ssh_start(
        self: &Arc<Self>,
        ask: login::SshStart,
    ) -> Result<login::SshStartReply, AbortCode> {
        check_version(ask.version)?;
        let user = UserName::from_wire(&ask.user).map_err(|_| AbortCode::LGNDENIED)?;
        UserKey::from_wire(&ask.key).map_err(|_| AbortCode::LGNBADKEY)?;
        let server = self.clone();
        let challenged = self.env.run_blocking(move || server.challenge(user, ask)).await;
        challenged.map_err(|_| AbortCode::LGNIO)?
    }

    fn challenge(&self, user: UserName, ask: login::SshStart) -> Result<login::SshStartReply, AbortCode> {
        let (exchange, host_key) = (Exchange::begin(&self.env), self.secret.host_key().0);
        let share = exchange.share();
        let said = SshExchange { key: &ask.key, client: ask.share, server: share, host_key };
        let transcript = said.transcript(&self.cell, &user, &ask.wish);
        let mut state = Zeroizing::new(Vec::with_capacity(512));
        state.extend_from_slice(&*exchange.secret());
        ask.share.encode(&mut state);
        share.encode(&mut state);
        ask.key.encode(&mut state);
        let attempt = Attempt { method: Method::Ssh, user, wish: ask.wish, counted: None, state };
        let signature = self.secret.sign(&transcript);
        let host_key = login::Fixed(host_key);
        Ok(login::SshStartReply { attempt: self.seal_attempt(&attempt)?, share, host_key, signature })
    }

    pub(super) async fn ssh_finish(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::SshFinish,
    ) -> Result<login::GrantReply, AbortCode> {
        check_version(ask.version)?;
        let attempt = self.open_attempt(Method::Ssh, &ask.attempt)?;
        let signature = ssh::from_wire(&ask.signature).ok_or(AbortCode::LGNDENIED)?;
        let Challenge { key, exchange, client, server } =
            Challenge::read(&attempt.state).ok_or(AbortCode::LGNOVER)?;
        let said = SshExchange { key: key.blob(), client, server, host_key: self.secret.host_key().0 };
        let transcript = said.transcript(&self.cell, &attempt.user, &attempt.wish);
        // Both checks are always made, so that the time does not reveal which of them failed.
        let signed = key.has_signed(&self.cell, &transcript, &signature);
        if !(self.is_key_of(&attempt.user, &key).await? & signed) {
            return Err(AbortCode::LGNDENIED);
        }
        let sealing =
            exchange.finish(client, &transcript.digest(), SSH.purpose).ok_or(AbortCode::LGNDENIED)?;
        let grant = self.first_grant(&attempt.user, &attempt.wish, &sealing, &SSH).await?;
        self.remember_location(&attempt.user, caller.peer.ip()).await;
        tracing::info!(user = %attempt.user, %key, "logged in with an SSH key");
        Ok(login::GrantReply { grant })
    }

    async fn is_key_of(&self, user: &UserName, key: &UserKey) -> Result<bool, AbortCode> {
        match self.users.user(user.as_str()).await.map_err(super::records::failed)? {
            Some(known) => self.records.has_key(user, known.id, key).await,
            None => Ok(false),
        }
    }
}

/// State that the server needs when the client continues.
struct Challenge {
    key: UserKey,
    exchange: Exchange,
    client: Share,
    server: Share,
}

impl Challenge {
    fn read(state: &[u8]) -> Option<Self> {
        let (secret, rest) = state.split_first_chunk::<SECRET_LEN>()?;
        let r = &mut Reader::new(rest);
        let (client, server) = (Share::decode(r).ok()?, Share::decode(r).ok()?);
        let key = UserKey::from_wire(&KeyBlob::decode(r).ok()?).ok()?;
        Some(Self { key, exchange: Exchange::resume(secret), client, server })
    }
}
