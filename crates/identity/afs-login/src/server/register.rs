//! Calls that set and remove a passphrase.

use std::sync::Arc;

use afs_rpc::{Caller, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::login::{self, Message};
use opaque_ke::{RegistrationRequest, RegistrationUpload, ServerRegistration};

use super::records::PassphraseRecord;
use super::{LoginServer, check_version};
use crate::crypto::Suite;

impl LoginServer {
    pub(super) async fn register_start(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::RegisterStart,
    ) -> Result<login::RegisterStartReply, AbortCode> {
        check_version(ask.version)?;
        let target = self.target(caller, &ask.user).await?;
        let request = RegistrationRequest::<Suite>::deserialize(&ask.message)
            .map_err(|_| AbortCode::RXGEN_SS_UNMARSHAL)?;
        let server = self.clone();
        let answered = self.env.run_blocking(move || {
            ServerRegistration::start(&server.secret.setup, request, target.user.as_str().as_bytes())
        });
        let answered =
            answered.await.map_err(|_| AbortCode::LGNIO)?.map_err(|_| AbortCode::RXGEN_SS_UNMARSHAL)?;
        let message = Message::new(answered.message.serialize().to_vec()).map_err(|_| AbortCode::LGNIO)?;
        Ok(login::RegisterStartReply { message })
    }

    pub(super) async fn register_finish(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::RegisterFinish,
    ) -> Result<(), AbortCode> {
        check_version(ask.version)?;
        let target = self.target(caller, &ask.user).await?;
        let upload = RegistrationUpload::<Suite>::deserialize(&ask.message)
            .map_err(|_| AbortCode::RXGEN_SS_UNMARSHAL)?;
        let record = ServerRegistration::finish(upload).serialize().to_vec();
        let opaque = Message::new(record).map_err(|_| AbortCode::LGNIO)?;
        if self.records.passphrase(&target.user, target.id).await?.is_some() {
            self.records.next_generation(&target.user, &self.env).await?;
        }
        let record = PassphraseRecord { set: self.today(), opaque };
        self.records.set_passphrase(&target.user, target.id, &record).await?;
        tracing::info!(user = %target.user, by = ?caller.identity.principal(), "passphrase set");
        Ok(())
    }

    pub(super) async fn remove_passphrase(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::RemovePassphrase,
    ) -> Result<(), AbortCode> {
        check_version(ask.version)?;
        let target = self.target(caller, &ask.user).await?;
        self.records.next_generation(&target.user, &self.env).await?;
        self.records.remove_passphrase(&target.user).await?;
        tracing::info!(user = %target.user, by = ?caller.identity.principal(), "passphrase removed");
        Ok(())
    }

    pub(super) fn today(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }
}
