//! Every opcode of the overseer service.

/// Opcode and name, sorted by opcode. Source: `docs/protocol/operations.md` "2. bosserver".
pub const OPCODES: &[(u32, &str)] = &[
    (80, "CreateBnode"),
    (81, "DeleteBnode"),
    (82, "SetStatus"),
    (83, "GetStatus"),
    (84, "EnumerateInstance"),
    (85, "GetInstanceInfo"),
    (86, "GetInstanceParm"),
    (87, "AddSUser"),
    (88, "DeleteSUser"),
    (89, "ListSUsers"),
    (90, "ListKeys"),
    (91, "AddKey"),
    (92, "DeleteKey"),
    (93, "SetCellName"),
    (94, "GetCellName"),
    (95, "GetCellHost"),
    (96, "AddCellHost"),
    (97, "DeleteCellHost"),
    (98, "SetTStatus"),
    (99, "ShutdownAll"),
    (100, "RestartAll"),
    (101, "StartupAll"),
    (102, "SetNoAuthFlag"),
    (103, "ReBozo"),
    (104, "Restart"),
    (105, "Install"),
    (106, "UnInstall"),
    (107, "GetDates"),
    (108, "Exec"),
    (109, "Prune"),
    (110, "SetRestartTime"),
    (111, "GetRestartTime"),
    (112, "GetLog"),
    (113, "WaitAll"),
    (114, "GetInstanceStrings"),
    (115, "GetRestrictedMode"),
    (116, "SetRestrictedMode"),
    (0x414E_4450, "CellKeys"),
];

#[cfg(test)]
mod tests {
    use super::OPCODES;
    use crate::bos::{cell, host, instance, keys};

    #[test]
    fn every_call_is_in_the_table() {
        let mut calls = [cell::CALLS, host::CALLS, instance::CALLS, keys::CALLS].concat();
        calls.sort_unstable();
        assert_eq!(calls, OPCODES);
    }
}
