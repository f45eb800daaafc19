//! Every opcode of the service.

/// Opcode and name, sorted by opcode.
pub const OPCODES: &[(u32, &str)] = &[
    (1, "BeginOperation"),
    (2, "StepOperation"),
    (3, "HeartbeatOperation"),
    (4, "EndOperation"),
    (5, "ListOperations"),
    (6, "TakeOverOperation"),
    (7, "GetSnapshotSchedule"),
    (8, "SetSnapshotSchedule"),
];

#[cfg(test)]
mod tests {
    use super::OPCODES;
    use crate::operations::calls;

    #[test]
    fn every_call_is_in_the_table() {
        assert_eq!(calls::CALLS, OPCODES);
    }
}
