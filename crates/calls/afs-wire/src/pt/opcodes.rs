//! Every opcode of the protection service.

/// Opcode and name, sorted by opcode. Source: `docs/protocol/ptserver.md` "3. Opcodes".
pub const OPCODES: &[(u32, &str)] = &[
    (500, "INewEntry"),
    (501, "WhereIsIt"),
    (502, "DumpEntry"),
    (503, "AddToGroup"),
    (504, "NameToID"),
    (505, "IDToName"),
    (506, "Delete"),
    (507, "RemoveFromGroup"),
    (508, "GetCPS"),
    (509, "NewEntry"),
    (510, "ListMax"),
    (511, "SetMax"),
    (512, "ListEntry"),
    (513, "ChangeEntry"),
    (514, "ListElements"),
    (515, "IsAMemberOf"),
    (516, "SetFieldsEntry"),
    (517, "ListOwned"),
    (518, "GetCPS2"),
    (519, "GetHostCPS"),
    (520, "UpdateEntry"),
    (521, "ListEntries"),
    (530, "ListSuperGroups"),
    (0x414E_4441, "WaitForChange"),
];

#[cfg(test)]
mod tests {
    use super::OPCODES;
    use crate::pt::{calls, lists, repair};

    #[test]
    fn every_call_is_in_the_table() {
        let mut calls = [calls::CALLS, lists::CALLS, repair::CALLS].concat();
        calls.sort_unstable();
        assert_eq!(calls, OPCODES);
    }
}
