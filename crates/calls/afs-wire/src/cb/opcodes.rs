//! Every opcode of the callback service.

/// Opcode and name, sorted by opcode. Source: `docs/protocol/callback.md` "3. Opcodes".
pub const OPCODES: &[(u32, &str)] = &[
    (204, "CallBack"),
    (205, "InitCallBackState"),
    (206, "Probe"),
    (207, "GetLock"),
    (208, "GetCE"),
    (209, "XStatsVersion"),
    (210, "GetXStats"),
    (211, "InitCallBackState2"),
    (212, "WhoAreYou"),
    (213, "InitCallBackState3"),
    (214, "ProbeUuid"),
    (215, "GetServerPrefs"),
    (216, "GetCellServDB"),
    (217, "GetLocalCell"),
    (218, "GetCacheConfig"),
    (65536, "GetCE64"),
    (65537, "GetCellByNum"),
    (65538, "TellMeAboutYourself"),
    (0x414E_4416, "RecallLease"),
];

#[cfg(test)]
mod tests {
    use super::OPCODES;
    use crate::cb::{calls, debug};

    #[test]
    fn every_call_is_in_the_table() {
        let mut calls = [calls::CALLS, debug::CALLS].concat();
        calls.sort_unstable();
        assert_eq!(calls, OPCODES);
    }
}
