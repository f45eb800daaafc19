//! Every opcode of the volume service.

/// Opcode and name, sorted by opcode, including numbers reserved for other code lines, which are answered with "no
/// such opcode". Source: `docs/protocol/volserver.md` "3. Opcodes".
pub const OPCODES: &[(u32, &str)] = &[
    (100, "CreateVolume"),
    (101, "DeleteVolume"),
    (102, "Restore"),
    (103, "Forward"),
    (104, "EndTrans"),
    (105, "Clone"),
    (106, "SetFlags"),
    (107, "GetFlags"),
    (108, "TransCreate"),
    (109, "Dump"),
    (110, "GetNthVolume"),
    (111, "SetForwarding"),
    (112, "GetName"),
    (113, "GetStatus"),
    (114, "SignalRestore"),
    (115, "ListPartitions"),
    (116, "ListVolumes"),
    (117, "SetIdsTypes"),
    (118, "Monitor"),
    (119, "PartitionInfo"),
    (120, "ReClone"),
    (121, "ListOneVolume"),
    (122, "NukeVolume"),
    (123, "SetDate"),
    (124, "XListVolumes"),
    (125, "XListOneVolume"),
    (126, "SetInfo"),
    (127, "XListPartitions"),
    (128, "ForwardMultiple"),
    (65536, "ConvertROtoRWvolume"),
    (65537, "GetSize"),
    (65538, "DumpV2"),
    (65539, "PartitionInfo64"),
    (65540, "OsdSupport"),
    (65541, "Traverse"),
    (65542, "WipeCand"),
    (65543, "OldSalvage"),
    (65544, "OldArchCand"),
    (65545, "Salvage"),
    (65546, "ListObjects"),
    (65547, "SplitVolume"),
    (65548, "ArchCand"),
    (0x414E_4401, "ListSnapshots"),
    (0x414E_4402, "FetchPart"),
    (0x414E_4403, "ForwardDifference"),
    (0x414E_4404, "DumpFormats"),
    (0x414E_4406, "GetRoute"),
    (0x414E_4407, "SetRoute"),
    (0x414E_4408, "GetPlacement"),
    (0x414E_4409, "SetPlacement"),
    (0x414E_440A, "GetLending"),
    (0x414E_440B, "SetLending"),
    (0x414E_440C, "GetPrivacy"),
    (0x414E_440D, "SetPrivacy"),
    (0x414E_4430, "DumpByPath"),
    (0x414E_4431, "RestoreByPath"),
];

#[cfg(test)]
mod tests {
    use super::OPCODES;
    use crate::vol::{dump, extension, list, partition, transaction, volume};

    #[test]
    fn every_call_is_in_the_table() {
        let mut calls =
            [dump::CALLS, extension::CALLS, list::CALLS, partition::CALLS, transaction::CALLS, volume::CALLS]
                .concat();
        calls.sort_unstable();
        let reserved = |row: &&(u32, &str)| !matches!(row.0, 65540..=65546 | 65548);
        let exported: Vec<_> = OPCODES.iter().filter(reserved).copied().collect();
        assert_eq!(calls, exported);
    }
}
