//! Renewal of tokens before they expire.

use super::kept::KeptToken;
use afs_auth::Secret;
use afs_login::client::{self, Kept, Login, LoginError};
use afs_login::{Grant, UserName};
use afs_rpc::{Connection, EnvExt, Rx, Security, UnixTime};
use afs_wire::rpc::ServiceId;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

/// Offset of the protection service's port, which is also that of the login service, from the file service's.
pub(crate) const PORT_OFFSET: u16 = 2;
/// Remaining time at which a token that cannot be renewed is worth a warning.
const SOON: Duration = Duration::from_secs(3600);

/// Renews a token at the first of the cell's servers that replies.
///
/// # Errors
/// No server replies, or the login service refuses.
pub async fn renew(rx: &Rx, kept: &KeptToken) -> Result<KeptToken, LoginError> {
    let grant = at_first_server(rx, kept, |service, login| async move {
        client::renew(&service, &login, &kept.grant.renewal, rx.env()).await
    });
    Ok(KeptToken { grant: grant.await?, ..kept.clone() })
}

/// Exchanges a token for one with other suspended groups at the first of the cell's servers that replies.
///
/// # Errors
/// No server replies, or the login service refuses; also for a token that another service made.
pub async fn change_groups(
    rx: &Rx,
    kept: &KeptToken,
    change: &client::GroupChange,
) -> Result<KeptToken, LoginError> {
    let grant = at_first_server(rx, kept, |service, login| async move {
        client::change_groups(&service, &login, &kept.grant.renewal, change, rx.env()).await
    });
    Ok(KeptToken { grant: grant.await?, ..kept.clone() })
}

/// The key of the encrypted caches of a token's user.
///
/// # Errors
/// No login service replies, or the error of the first that does.
pub async fn cache_key(rx: &Rx, kept: &KeptToken) -> Result<Secret, LoginError> {
    at_first_server(rx, kept, |service, _| async move { client::cache_key(&service).await }).await
}

/// Calls the first login service that replies, with a token.
async fn at_first_server<T, F>(
    rx: &Rx,
    kept: &KeptToken,
    exchange: impl Fn(Connection, Login) -> F + Send,
) -> Result<T, LoginError>
where
    F: Future<Output = Result<T, LoginError>> + Send,
{
    let env = rx.env();
    let user = UserName::new(&kept.user)
        .map_err(|_| LoginError::InvalidReply("the token's user is no user's name"))?;
    let login = Login { cell: kept.cell.clone(), user, lifetime: 0, level: kept.token().level() };
    let mut last = LoginError::InvalidReply("no server of the cell is known");
    for server in &kept.servers {
        let security = Security::new(kept.token().source(env.clone()));
        let peer = SocketAddr::from((*server, kept.base_port.saturating_add(PORT_OFFSET)));
        let service: Connection = rx.connection(peer, ServiceId::LOGIN, security);
        match exchange(service, login.clone()).await {
            Ok(reply) => return Ok(reply),
            Err(LoginError::Call(error)) if error.is_silence() => last = LoginError::Call(error),
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Keeps a token valid as long as the cell permits: renews it before it expires and passes the new one to `renewed`.
/// Logs a warning an hour before the final expiry; ready after that.
pub async fn keep(rx: &Rx, kept: KeptToken, renewed: impl Fn(&KeptToken) + Send + Sync) {
    let env = rx.env().clone();
    let with = |grant: &Grant| KeptToken { grant: grant.clone(), ..kept.clone() };
    let renew = |grant: Grant| {
        let token = with(&grant);
        async move { self::renew(rx, &token).await.map(|token| token.grant) }
    };
    let ended = client::keep(&env, kept.grant.clone(), renew, |grant| renewed(&with(grant))).await;
    let last = match ended {
        Kept::Final(grant) => with(&grant),
        Kept::Refused(grant, error) => {
            tracing::warn!("the token of {} in {} cannot be renewed: {error}", kept.user, kept.cell);
            with(&grant)
        }
    };
    while let Some(end) = last.token().expires() {
        let now = env.wall();
        if let Some(line) = warning(&last, now) {
            tracing::warn!("{line}");
            return;
        }
        let left = end.secs.saturating_sub(now.secs).saturating_sub(SOON.as_secs());
        // In steps, since the wall clock may jump.
        env.sleep(Duration::from_secs(left.clamp(1, 60))).await;
    }
}

/// Warning for the user about a token that expires soon, or has expired.
#[must_use]
pub fn warning(kept: &KeptToken, now: UnixTime) -> Option<String> {
    let end = kept.token().expires()?;
    let KeptToken { cell, user, .. } = kept;
    if end <= now {
        return Some(format!(
            "the token of {user} in {cell} has ended; log in again: andrew login --cell {cell} {user}"
        ));
    }
    let left = end.secs - now.secs;
    let renewable = kept.grant.renew_at(now).is_some();
    (left <= SOON.as_secs() && !renewable).then(|| {
        let minutes = left / 60;
        format!("the token of {user} in {cell} ends in {minutes} minutes; log in again: andrew login --cell {cell} {user}")
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::kept;
    use super::*;
    use afs_wire::login::Renewal;

    #[test]
    fn users_who_must_log_in_again_are_warned_in_time() {
        let mut kept = kept("example.org", 100_000);
        let at = |secs| UnixTime { secs, nanos: 0 };
        assert_eq!(warning(&kept, at(99_000)), None, "it can be renewed");
        kept.grant.renewal = Renewal::empty();
        assert_eq!(warning(&kept, at(90_000)), None);
        assert!(warning(&kept, at(99_400)).unwrap().contains("ends in 10 minutes"));
        assert!(
            warning(&kept, at(100_000))
                .unwrap()
                .contains("has ended; log in again: andrew login --cell example.org alice")
        );
    }
}
