//! Authorisation of changes to a user's ways to log in.

use afs_rpc::{Caller, Class, Identity, Level, Principal, Suspended};
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
        if let Changer::User(own, suspended) = &caller
            && *own != user
        {
            let known = self.users.user(own.as_str(), suspended).await.map_err(failed)?;
            known.filter(|known| known.administrator).ok_or(AbortCode::LGNPERM)?;
        }
        let known = self.users.user(user.as_str(), &Suspended::default()).await.map_err(failed)?;
        let known = known.ok_or(AbortCode::LGNNOUSER)?;
        Ok(Target { user, id: known.id })
    }

    fn changer(&self, identity: &Identity) -> Result<Changer, AbortCode> {
        let protection = identity.protection();
        let private = protection.class == Class::Rxgk && protection.level == Level::Crypt;
        match (identity, identity.principal()) {
            (Identity::Local, _) => Ok(Changer::Administrator),
            (_, Some(_)) if !private => Err(AbortCode::LGNPROTECTION),
            (_, Some(Principal::CellKey)) => Ok(Changer::Administrator),
            (_, Some(Principal::Named { name, cell: None, suspended })) => {
                let user = UserName::new(name).map_err(|_| AbortCode::LGNPERM)?;
                Ok(Changer::User(user, suspended.clone()))
            }
            _ => Err(AbortCode::LGNPERM),
        }
    }
}

enum Changer {
    /// May change those of every user.
    Administrator,
    /// A user, who may be an administrator unless that is suspended.
    User(UserName, Suspended),
}
