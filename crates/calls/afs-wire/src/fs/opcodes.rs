//! Every opcode of the file service.

/// Opcode and name, sorted by opcode, including calls that servers refuse.
/// Source: `docs/protocol/fileserver.md` "3. Opcodes".
pub const OPCODES: &[(u32, &str)] = &[
    (130, "FetchData"),
    (131, "FetchACL"),
    (132, "FetchStatus"),
    (133, "StoreData"),
    (134, "OldStoreACL"),
    (135, "StoreStatus"),
    (136, "RemoveFile"),
    (137, "CreateFile"),
    (138, "Rename"),
    (139, "Symlink"),
    (140, "Link"),
    (141, "MakeDir"),
    (142, "RemoveDir"),
    (143, "OldSetLock"),
    (144, "OldExtendLock"),
    (145, "OldReleaseLock"),
    (146, "GetStatistics"),
    (147, "GiveUpCallBacks"),
    (148, "GetVolumeInfo"),
    (149, "GetVolumeStatus"),
    (150, "SetVolumeStatus"),
    (151, "GetRootVolume"),
    (152, "CheckToken"),
    (153, "GetTime"),
    (154, "NGetVolumeInfo"),
    (155, "BulkStatus"),
    (156, "SetLock"),
    (157, "ExtendLock"),
    (158, "ReleaseLock"),
    (159, "XStatsVersion"),
    (160, "GetXStats"),
    (161, "Lookup"),
    (162, "FlushCPS"),
    (163, "DFSSymlink"),
    (164, "StoreACL"),
    (220, "FsCmd"),
    (65536, "InlineBulkStatus"),
    (65537, "FetchData64"),
    (65538, "StoreData64"),
    (65539, "GiveUpAllCallBacks"),
    (65540, "GetCapabilities"),
    (65541, "CallBackRxConnAddr"),
    (65542, "GetStatistics64"),
    (0x414E_4401, "ListSnapshots"),
    (0x414E_4410, "StoreRanges"),
    (0x414E_4411, "ChangeLock"),
    (0x414E_4415, "ReturnLease"),
    (0x414E_4417, "LendMore"),
    (0x414E_4418, "RenameNew"),
    (0x414E_4420, "DataPath"),
    (0x414E_4429, "StatusAndCapability"),
    (0x414E_442C, "EndRoom"),
    (0x414E_4432, "GetRoom"),
    (0x414E_4437, "GetGrowth"),
    (0x414E_4438, "TakeLease"),
    (0x414E_443A, "ChangeList"),
    (0x414E_443B, "GetLayout"),
    (0x414E_443C, "GetCapability"),
    (0x414E_443D, "Command"),
    (0x414E_443E, "Commit"),
];

#[cfg(test)]
mod tests {
    use super::OPCODES;
    use crate::fs::{
        bulk, calls, change_list, command, data, drive_capability, extension, layout, lease, lock, room,
        statistics, volume,
    };

    #[test]
    fn every_call_is_in_the_table() {
        let mut calls = [
            calls::CALLS,
            change_list::CALLS,
            bulk::CALLS,
            command::CALLS,
            drive_capability::CALLS,
            data::CALLS,
            extension::CALLS,
            layout::CALLS,
            lease::CALLS,
            lock::CALLS,
            room::CALLS,
            statistics::CALLS,
            volume::CALLS,
        ]
        .concat();
        calls.sort_unstable();
        assert_eq!(calls, OPCODES);
    }
}
