//! Every opcode of the login service.

/// Opcode and name, sorted by opcode. Source: `docs/protocol/login.md` "3. Calls".
pub const OPCODES: &[(u32, &str)] = &[
    (1, "PassphraseStart"),
    (2, "PassphraseFinish"),
    (3, "SshStart"),
    (4, "SshFinish"),
    (5, "Renew"),
    (6, "RegisterStart"),
    (7, "RegisterFinish"),
    (8, "RemovePassphrase"),
    (9, "AddSshKey"),
    (10, "RemoveSshKey"),
    (11, "ListWays"),
    (12, "ChangeGroups"),
    (13, "Revoke"),
    (14, "CacheKey"),
];

#[cfg(test)]
mod tests {
    use super::OPCODES;
    use crate::login::calls;

    #[test]
    fn every_call_is_in_the_table() {
        assert_eq!(calls::CALLS, OPCODES);
    }
}
