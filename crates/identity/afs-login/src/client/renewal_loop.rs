//! Renewal loop of a token.

use std::future::Future;
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef, UnixTime};
use afs_wire::error::AbortCode;

use super::LoginError;
use crate::grant::Grant;

/// Why [`keep`] ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    /// The token never expires, or cannot be renewed any further; it expires as stated.
    Final(Grant),
    /// The service refused finally.
    Refused(Grant, LoginError),
}

/// Pause between two attempts at renewing.
const AGAIN: Duration = Duration::from_secs(60);
/// Longest sleep: the wall clock may jump, and a machine may have been suspended.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Renews `grant` with `renew` each time that a tenth of its time is left, and passes each new one to `renewed`.
/// Retries each minute when the service does not reply. Ends when nothing more can be renewed; log that, since the
/// user must log in again before the token expires.
pub async fn keep<R, F>(env: &EnvRef, mut grant: Grant, renew: R, renewed: impl Fn(&Grant) + Send) -> Kept
where
    R: Fn(Grant) -> F + Send,
    F: Future<Output = Result<Grant, LoginError>> + Send,
{
    loop {
        let Some(at) = grant.renew_at(env.wall()) else { return Kept::Final(grant) };
        sleep_until(env, at).await;
        match renew(grant.clone()).await {
            Ok(new) if new.token.expires() > grant.token.expires() => {
                renewed(&new);
                grant = new;
            }
            Ok(_) => return Kept::Final(grant),
            Err(error) if is_final(&error) || ended(env, &grant) => return Kept::Refused(grant, error),
            Err(_) => env.sleep(AGAIN).await,
        }
    }
}

/// Whether a retry cannot succeed.
fn is_final(error: &LoginError) -> bool {
    let codes =
        [AbortCode::LGNNOTRENEWABLE, AbortCode::LGNPERM, AbortCode::LGNPROTECTION, AbortCode::LGNVERSION];
    matches!(error, LoginError::Call(error) if error.abort_code().is_some_and(|code| codes.contains(&code)))
}

fn ended(env: &EnvRef, grant: &Grant) -> bool {
    grant.token.expires().is_some_and(|end| end <= env.wall())
}

async fn sleep_until(env: &EnvRef, at: UnixTime) {
    loop {
        let left = at.secs.saturating_sub(env.wall().secs);
        if left == 0 {
            return;
        }
        env.sleep(SLEEP_MAX.min(Duration::from_secs(left))).await;
    }
}
