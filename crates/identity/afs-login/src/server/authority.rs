//! Authorisation of changes to a user's ways to log in.

use afs_rpc::{Caller, Class, Identity, Level, Principal, Terms};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::login::UserText;

use super::LoginServer;
use super::records::failed;
use crate::user::UserName;

/// The user whose records a call changes.
pub(super) struct Target {
    pub(super) user: UserName,
    pub(super) id: ViceId,
}

impl LoginServer {
    /// The user that a call is about, if the caller may change this user's ways to log in: the user (also with an
    /// empty name), an administrator, a holder of the cell's key, or the owner of this cell.
    pub(super) async fn target(&self, caller: &Caller, user: &UserText) -> Result<Target, AbortCode> {
        let caller = self.changer(&caller.identity)?;
        let user = match (user.is_empty(), &caller) {
            (true, Changer::User(own, _)) => own.clone(),
            _ => UserName::from_wire(user).map_err(|_| AbortCode::LGNNOUSER)?,
        };
        match &caller {
            Changer::User(own, terms) if *own == user => _ = self.check_counts(own, terms).await?,
            Changer::User(own, terms) => self.administers(own, terms).await?,
            Changer::Administrator => {}
        }
        let known = self.users.user(user.as_str()).await.map_err(failed)?;
        let known = known.ok_or(AbortCode::LGNNOUSER)?;
        Ok(Target { user, id: known.id })
    }

    /// Admits an administrator, a holder of the cell's key, or the owner of this cell.
    pub(super) async fn administrator(&self, caller: &Caller) -> Result<(), AbortCode> {
        match self.changer(&caller.identity)? {
            Changer::Administrator => Ok(()),
            Changer::User(own, terms) => self.administers(&own, &terms).await,
        }
    }

    async fn administers(&self, own: &UserName, terms: &Terms) -> Result<(), AbortCode> {
        let known = self.users.holder(own.as_str(), terms).await.map_err(failed)?;
        let known = known.ok_or(AbortCode::RXGKEXPIRED)?;
        if known.administrator { Ok(()) } else { Err(AbortCode::LGNPERM) }
    }

    fn changer(&self, identity: &Identity) -> Result<Changer, AbortCode> {
        let protection = identity.protection();
        let private = protection.class == Class::Rxgk && protection.level == Level::Crypt;
        match (identity, identity.principal()) {
            (Identity::Local, _) => Ok(Changer::Administrator),
            (_, Some(_)) if !private => Err(AbortCode::LGNPROTECTION),
            (_, Some(Principal::CellKey)) => Ok(Changer::Administrator),
            (_, Some(Principal::Named { name, cell: None, terms })) => {
                let user = UserName::new(name).map_err(|_| AbortCode::LGNPERM)?;
                Ok(Changer::User(user, terms.clone()))
            }
            _ => Err(AbortCode::LGNPERM),
        }
    }
}

enum Changer {
    /// May change those of every user.
    Administrator,
    /// A user, who may be an administrator unless that is suspended.
    User(UserName, Terms),
}
