//! Exchange of a token for one with other suspended groups.

use afs_rpc::{Caller, Suspended, Terms, UnixTime};
use afs_wire::error::AbortCode;
use afs_wire::login::{self, GroupTexts, Renewal, Wish};

use super::records::failed;
use super::renew::{Right, renewing};
use super::{Grantee, LoginServer, check_version};
use crate::protocol::GROUPS;

impl LoginServer {
    /// Suspending needs the token alone, and the new one ends with it. Resuming needs the right to renew a token of a login
    /// that had the group.
    pub(super) async fn change_groups(
        &self,
        caller: &Caller,
        ask: login::ChangeGroups,
    ) -> Result<login::RenewReply, AbortCode> {
        check_version(ask.version)?;
        let (user, present) = renewing(&caller.identity)?;
        let generation = self.check_counts(&user, &present).await?;
        let present = present.suspended;
        let (level, end) = (caller.identity.protection().level, caller.identity.expires());
        let end = end.ok_or(AbortCode::LGNPERM)?;
        let right = self.right(&ask.renewal, &user).await?;
        let resumed = self.groups(&ask.resume).await?;
        check_resumed(&present, &resumed, right.as_ref())?;
        let added = self.groups(&ask.suspend).await?;
        let suspended = present.except(&resumed).and(&added).map_err(|_| AbortCode::LGNFULL)?;
        let (renewal, renewable_until) = match right {
            Some(right) if ask.lasting => self.narrowed(right, &suspended)?,
            Some(right) => (ask.renewal, right.until),
            None => (Renewal::empty(), UnixTime::default()),
        };
        let wish = Wish { lifetime: 0, level: level.number().into() };
        let (share, key) = self.exchange(&GROUPS, &user, &wish, ask.share)?;
        tracing::info!(%user, without = ?suspended.groups(), "changed the suspended groups of a token");
        let to = Grantee {
            user: &user,
            level,
            end,
            terms: Terms { suspended, generation },
            renewal,
            renewable_until,
        };
        Ok(login::RenewReply { share, grant: self.grant(to, &key, &GROUPS).await? })
    }

    /// The right to renew tokens without these groups alone, and its end.
    fn narrowed(&self, right: Right, suspended: &Suspended) -> Result<(Renewal, UnixTime), AbortCode> {
        let until = right.until;
        let suspended = right.suspended.and(suspended).map_err(|_| AbortCode::LGNFULL)?;
        Ok((self.seal_right(&Right { suspended, ..right })?, until))
    }

    /// The groups with these names.
    async fn groups(&self, names: &GroupTexts) -> Result<Suspended, AbortCode> {
        let names = names.iter().map(|name| name.to_text().to_ascii_lowercase()).collect();
        let ids = self.users.ids_of(names).await.map_err(failed)?;
        let ids = ids.into_iter().collect::<Option<Vec<_>>>().ok_or(AbortCode::LGNNOGROUP)?;
        Suspended::new(ids).map_err(|_| AbortCode::LGNNOGROUP)
    }
}

/// What is resumed must be suspended by the token, and not by the login that it is of.
fn check_resumed(present: &Suspended, resumed: &Suspended, right: Option<&Right>) -> Result<(), AbortCode> {
    let mut needed = resumed.groups().iter().filter(|group| present.has(**group)).peekable();
    if needed.peek().is_none() {
        return Ok(());
    }
    let right = right.ok_or(AbortCode::LGNNOTRENEWABLE)?;
    if needed.any(|group| right.suspended.has(*group)) { Err(AbortCode::LGNFIXED) } else { Ok(()) }
}
