//! Every opcode of the location service.

/// Opcode and name, sorted by opcode, including numbers that are reserved and answered with "no such opcode".
/// Source: `docs/protocol/vldb.md` "3. Opcodes".
pub const OPCODES: &[(u32, &str)] = &[
    (501, "CreateEntry"),
    (502, "DeleteEntry"),
    (503, "GetEntryByID"),
    (504, "GetEntryByNameO"),
    (505, "GetNewVolumeId"),
    (506, "ReplaceEntry"),
    (507, "UpdateEntry"),
    (508, "SetLock"),
    (509, "ReleaseLock"),
    (510, "ListEntry"),
    (511, "ListAttributes"),
    (512, "LinkedList"),
    (513, "GetStats"),
    (514, "ProbeServer"),
    (515, "GetAddrs"),
    (516, "ChangeAddr"),
    (517, "CreateEntryN"),
    (518, "GetEntryByIDN"),
    (519, "GetEntryByNameN"),
    (520, "ReplaceEntryN"),
    (521, "ListEntryN"),
    (522, "ListAttributesN"),
    (523, "LinkedListN"),
    (524, "UpdateEntryByName"),
    (525, "CreateEntryU"),
    (526, "GetEntryByIDU"),
    (527, "GetEntryByNameU"),
    (528, "ReplaceEntryU"),
    (529, "ListEntryU"),
    (530, "ListAttributesU"),
    (531, "LinkedListU"),
    (532, "RegisterAddrs"),
    (533, "GetAddrsU"),
    (534, "ListAttributesN2"),
    (64002, "YFSVL.GetEndpoints"),
    (64014, "YFSVL.GetCellName"),
    (65537, "GetCapabilities"),
    (0x414E_4440, "ExchangeNames"),
];

#[cfg(test)]
mod tests {
    use super::OPCODES;
    use crate::vl::{addresses, calls, list, statistics};

    #[test]
    fn every_call_is_in_the_table() {
        let mut calls = [calls::CALLS, addresses::CALLS, list::CALLS, statistics::CALLS].concat();
        calls.sort_unstable();
        let reserved = |row: &&(u32, &str)| !matches!(row.0, 525 | 526 | 528..=531 | 64002 | 64014);
        let exported: Vec<_> = OPCODES.iter().filter(reserved).copied().collect();
        assert_eq!(calls, exported);
    }
}
