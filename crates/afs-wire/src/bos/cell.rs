//! Calls on what an overseer's host knows of its cell, and on who may command the overseer.

use super::{SERVICE, Text};
use crate::rpc::Nothing;

calls! {
    service SERVICE;

    /// Makes somebody an administrator of the host.
    87 "AddSUser" AddSUser { name: Text } -> Nothing;

    /// Takes that away from somebody.
    88 "DeleteSUser" DeleteSUser { name: Text } -> Nothing;

    /// Reads an administrator's name. Beyond the last the call fails with 1.
    89 "ListSUsers" ListSUsers {
        /// From 0.
        index: i32,
    } -> ListSUsersReply { name: Text };

    /// Gives the cell another name on this host.
    93 "SetCellName" SetCellName { name: Text } -> Nothing;

    /// Reads the cell's name.
    94 "GetCellName" GetCellName {} -> GetCellNameReply { name: Text };

    /// Reads the name of a database server. Beyond the last the call fails with `BZDOM`.
    95 "GetCellHost" GetCellHost {
        /// From 0.
        index: u32,
    } -> GetCellHostReply {
        /// In brackets if it is a clone, which never decides.
        name: Text,
    };

    /// Adds a database server.
    96 "AddCellHost" AddCellHost { name: Text } -> Nothing;

    /// Takes a database server away.
    97 "DeleteCellHost" DeleteCellHost { name: Text } -> Nothing;

    /// Has the host believe everybody, or no longer.
    102 "SetNoAuthFlag" SetNoAuthFlag { flag: i32 } -> Nothing;

    /// Asks whether calls that could take the host over are refused to administrators too.
    115 "GetRestrictedMode" GetRestrictedMode {} -> GetRestrictedModeReply {
        /// 0 or 1.
        restricted: i32,
    };

    /// Has such calls refused.
    116 "SetRestrictedMode" SetRestrictedMode { restricted: i32 } -> Nothing;
}
