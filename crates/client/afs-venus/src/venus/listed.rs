//! Calls that may also be changes of a list, and what both are called.

use afs_wire::fs::{self, Change, ChangeReply};
use afs_wire::rpc::Request;

/// A call that may also be a change of a list.
pub(super) trait Listed: Request + Clone {
    /// Whether it replaces what has the name.
    const REPLACES: bool = true;

    fn into_change(self) -> Change;

    /// Its reply; `None` if the server has answered another change.
    fn reply(reply: fs::ChangeReply) -> Option<Self::Reply>;
}

macro_rules! listed {
    ($($call:ident: $variant:ident by $change:expr),* $(,)?) => { $(
        impl Listed for fs::$call {
            fn into_change(self) -> Change {
                Change::$variant($change(self))
            }

            fn reply(reply: fs::ChangeReply) -> Option<Self::Reply> {
                match reply {
                    fs::ChangeReply::$variant(reply) => Some(reply),
                    _ => None,
                }
            }
        }
    )* };
}

listed! {
    CreateFile: CreateFile by |create| fs::CreateSmall { create, data: fs::SmallData::default() },
    MakeDir: MakeDir by std::convert::identity,
    Symlink: Symlink by std::convert::identity,
    Link: Link by std::convert::identity,
    RemoveFile: RemoveFile by std::convert::identity,
    RemoveDir: RemoveDir by std::convert::identity,
    Rename: Rename by std::convert::identity,
}

/// Only for who is alone in the directory: no list has it. Under a lease the names are decided here, and none is in the way.
impl Listed for fs::RenameNew {
    const REPLACES: bool = false;

    fn into_change(self) -> Change {
        let Self { old_dir, old_name, new_dir, new_name } = self;
        Change::Rename(fs::Rename { old_dir, old_name, new_dir, new_name })
    }

    fn reply(reply: fs::ChangeReply) -> Option<Self::Reply> {
        fs::Rename::reply(reply)
    }
}

/// Name of the call that a change would be by itself.
pub(super) fn name_of(change: &Change) -> &'static str {
    match change {
        Change::CreateFile(_) => fs::CreateFile::NAME,
        Change::MakeDir(_) => fs::MakeDir::NAME,
        Change::Symlink(_) => fs::Symlink::NAME,
        Change::Link(_) => fs::Link::NAME,
        Change::Store(_) => fs::StoreData64::NAME,
        Change::StoreStatus(_) => fs::StoreStatus::NAME,
        Change::RemoveFile(_) => fs::RemoveFile::NAME,
        Change::RemoveDir(_) => fs::RemoveDir::NAME,
        Change::Rename(_) => fs::Rename::NAME,
    }
}

/// Name of the call to which a reply would be one by itself.
pub(super) fn name_of_reply(reply: &ChangeReply) -> &'static str {
    match reply {
        ChangeReply::CreateFile(_) => fs::CreateFile::NAME,
        ChangeReply::MakeDir(_) => fs::MakeDir::NAME,
        ChangeReply::Symlink(_) => fs::Symlink::NAME,
        ChangeReply::Link(_) => fs::Link::NAME,
        ChangeReply::Store(_) => fs::StoreData64::NAME,
        ChangeReply::StoreStatus(_) => fs::StoreStatus::NAME,
        ChangeReply::RemoveFile(_) => fs::RemoveFile::NAME,
        ChangeReply::RemoveDir(_) => fs::RemoveDir::NAME,
        ChangeReply::Rename(_) => fs::Rename::NAME,
    }
}
