//! Login with a passphrase, server side.

use afs_rpc::{Caller, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::login::{self, Message};
use opaque_ke::{
    CredentialFinalization, CredentialRequest, ServerLogin, ServerLoginParameters, ServerRegistration,
};
use std::net::IpAddr;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::attempt::{Attempt, Method};
use super::rate_limit::{Counted, Delayed};
use super::{LoginServer, check_version};
use crate::crypto::{Randomness, SealKey, Suite};
use crate::protocol::{PASSPHRASE, identifiers};
use crate::user::UserName;

impl LoginServer {
    pub(super) async fn passphrase_start(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::PassphraseStart,
    ) -> Result<login::PassphraseStartReply, AbortCode> {
        check_version(ask.version)?;
        let user = UserName::from_wire(&ask.user).map_err(|_| AbortCode::LGNDENIED)?;
        let request =
            CredentialRequest::deserialize(&ask.message).map_err(|_| AbortCode::RXGEN_SS_UNMARSHAL)?;
        let counted = self.count(&user, caller.peer.ip()).await?;
        let record = self.registration(&user).await?;
        let (server, name, wish) = (self.clone(), user.clone(), ask.wish.clone());
        let answer = self.env.run_blocking(move || server.answer(&name, &wish, record, request)).await;
        let (message, state) = answer.map_err(|_| AbortCode::LGNIO)??;
        let attempt =
            Attempt { method: Method::Passphrase, user, wish: ask.wish, counted: Some(counted), state };
        Ok(login::PassphraseStartReply { attempt: self.seal_attempt(&attempt)?, message })
    }

    /// Counts an attempt. Where failures from elsewhere delay this user, a location of an earlier login is still
    /// admitted.
    async fn count(&self, user: &UserName, source: IpAddr) -> Result<Counted, AbortCode> {
        match self.rate_limit.begin(user, source, false, self.env.now()) {
            Ok(counted) => return Ok(counted),
            Err(Delayed::OfTotals) if self.is_known_location(user, source).await? => {}
            Err(_) => return Err(AbortCode::LGNSLOW),
        }
        self.rate_limit.begin(user, source, true, self.env.now()).map_err(|_| AbortCode::LGNSLOW)
    }

    /// The user's registration. A user who does not exist, or has no passphrase, gets a reply that looks the same.
    async fn registration(&self, user: &UserName) -> Result<Option<ServerRegistration<Suite>>, AbortCode> {
        let Some(known) = self.users.user(user.as_str()).await.map_err(super::records::failed)? else {
            // The same read as for an existing user.
            return self.records.passphrase(user, afs_wire::ids::ViceId::ANONYMOUS).await.map(|_| None);
        };
        let record = self.records.passphrase(user, known.id).await?;
        let read = |bytes: &Message| ServerRegistration::deserialize(bytes).map_err(|_| AbortCode::LGNIO);
        record.map(|record| read(&record.opaque)).transpose()
    }

    fn answer(
        &self,
        user: &UserName,
        wish: &login::Wish,
        record: Option<ServerRegistration<Suite>>,
        request: CredentialRequest<Suite>,
    ) -> Result<(Message, Zeroizing<Vec<u8>>), AbortCode> {
        let said = PASSPHRASE.transcript(&self.cell, user, wish);
        let started = ServerLogin::start(
            &mut Randomness(&self.env),
            &self.secret.setup,
            record,
            request,
            user.as_str().as_bytes(),
            ServerLoginParameters { context: Some(said.bytes()), identifiers: identifiers(user, &self.cell) },
        )
        .map_err(|_| AbortCode::LGNDENIED)?;
        let message = Message::new(started.message.serialize().to_vec()).map_err(|_| AbortCode::LGNIO)?;
        Ok((message, Zeroizing::new(started.state.serialize().to_vec())))
    }

    pub(super) async fn passphrase_finish(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::PassphraseFinish,
    ) -> Result<login::GrantReply, AbortCode> {
        check_version(ask.version)?;
        let attempt = self.open_attempt(Method::Passphrase, &ask.attempt)?;
        let key = self.session_key(&attempt, &ask.message)?;
        if let Some(counted) = attempt.counted {
            self.rate_limit.succeeded(counted, &ask.attempt, self.env.now());
            if !counted.known {
                self.remember_location(&attempt.user, caller.peer.ip()).await;
            }
        }
        let grant = self.first_grant(&attempt.user, &attempt.wish, &key, &PASSPHRASE).await?;
        tracing::info!(user = %attempt.user, "logged in with a passphrase");
        Ok(login::GrantReply { grant })
    }

    fn session_key(&self, attempt: &Attempt, message: &Message) -> Result<SealKey, AbortCode> {
        let said = PASSPHRASE.transcript(&self.cell, &attempt.user, &attempt.wish);
        let identifiers = identifiers(&attempt.user, &self.cell);
        let state = ServerLogin::<Suite>::deserialize(&attempt.state).map_err(|_| AbortCode::LGNOVER)?;
        let message =
            CredentialFinalization::deserialize(message).map_err(|_| AbortCode::RXGEN_SS_UNMARSHAL)?;
        let parameters = ServerLoginParameters { context: Some(said.bytes()), identifiers };
        let mut finished = state.finish(message, parameters).map_err(|_| AbortCode::LGNDENIED)?;
        let key = SealKey::derive(&finished.session_key, b"", PASSPHRASE.purpose);
        zeroize::Zeroize::zeroize(finished.session_key.as_mut_slice());
        Ok(key)
    }
}
