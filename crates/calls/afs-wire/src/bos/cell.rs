//! Calls on an overseer's cell configuration, and on its administrators.

use super::{SERVICE, Text};
use crate::rpc::Nothing;

calls! {
    service SERVICE;

    /// Adds an administrator of the host.
    87 "AddSUser" AddSUser { name: Text } -> Nothing;

    /// Removes an administrator of the host.
    88 "DeleteSUser" DeleteSUser { name: Text } -> Nothing;

    /// Reads an administrator's name. Beyond the last the call fails with 1.
    89 "ListSUsers" ListSUsers {
        /// From 0.
        index: i32,
    } -> ListSUsersReply { name: Text };

    /// Changes the cell's name on this host.
    93 "SetCellName" SetCellName { name: Text } -> Nothing;

    /// Reads the cell's name.
    94 "GetCellName" GetCellName {} -> GetCellNameReply { name: Text };

    /// Reads the name of a database server. Beyond the last the call fails with `BZDOM`.
    95 "GetCellHost" GetCellHost {
        /// From 0.
        index: u32,
    } -> GetCellHostReply {
        /// In brackets if it is a clone, which never votes.
        name: Text,
    };

    /// Adds a database server.
    96 "AddCellHost" AddCellHost { name: Text } -> Nothing;

    /// Removes a database server.
    97 "DeleteCellHost" DeleteCellHost { name: Text } -> Nothing;

    /// Switches the host's authorisation off, or on.
    102 "SetNoAuthFlag" SetNoAuthFlag { flag: i32 } -> Nothing;

    /// Reads whether calls that could compromise the host are refused to administrators too.
    115 "GetRestrictedMode" GetRestrictedMode {} -> GetRestrictedModeReply {
        /// 0 or 1.
        restricted: i32,
    };

    /// Sets whether such calls are refused.
    116 "SetRestrictedMode" SetRestrictedMode { restricted: i32 } -> Nothing;
}
