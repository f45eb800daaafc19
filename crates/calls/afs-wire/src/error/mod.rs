//! Abort codes: their names, meanings, and translation to Linux error numbers.

mod codes;
mod errno;
mod uae;

pub use errno::Errno;

id_without_display! {
    /// The code with which a call was aborted, or zero.
    ///
    /// Sources: `docs/protocol/fileserver.md` "9. Error codes", `docs/protocol/vldb.md` "5. Error codes",
    /// `docs/protocol/ptserver.md` "8. Error codes (base 267264)", `docs/protocol/volserver.md` "6. Error codes", `docs/protocol/rx.md` "8.2 Rx codes".
    pub struct AbortCode(i32);
}

impl AbortCode {
    /// No error; in an error field: the entry is valid.
    pub const OK: Self = Self(0);

    /// The code's name in the protocol, such as `"VNOVOL"`, `"UAENOENT"`, `"VL_NOENT"`.
    pub fn name(self) -> Option<&'static str> {
        self.row().map(|row| row.1).or_else(|| self.uae().map(|row| row.0))
    }

    /// The code's meaning in words.
    pub fn meaning(self) -> Option<&'static str> {
        self.row().map(|row| row.3)
    }

    /// True if the code says that a token has expired.
    pub fn says_expired(self) -> bool {
        matches!(self, Self::VICETOKENDEAD | Self::RXKADEXPIRED | Self::RXGKEXPIRED)
    }

    /// True if the code is one of a security class: the peer does not accept the caller's token, or the proof of its key.
    pub fn is_of_security(self) -> bool {
        let of_class = |first: Self, last: Self| (first.0..=last.0).contains(&self.0);
        of_class(Self::RXKADINCONSISTENCY, Self::RXKADILLEGALLEVEL)
            || of_class(Self::RXGKINCONSISTENCY, Self::RXGKBADQOP)
            || matches!(self, Self::AFSCONF_NOTFOUND | Self::VICETOKENDEAD)
    }

    /// The Linux error number that best describes the failure, if the code has one.
    ///
    /// Numbers from 1 to 511 that are no volume codes are taken as Linux numbers, which servers without a translation
    /// send.
    pub fn to_errno(self) -> Option<i32> {
        match (self.row(), self.uae()) {
            (Some(row), _) if row.2 != 0 => Some(row.2),
            (None, Some((_, errno))) if errno != 0 => Some(errno),
            (None, None) if (1..=511).contains(&self.0) => Some(self.0),
            _ => None,
        }
    }

    fn row(self) -> Option<&'static codes::Row> {
        codes::sorted().binary_search_by_key(&self.0, |row| row.0).ok().and_then(|at| codes::sorted().get(at))
    }

    fn uae(self) -> Option<(&'static str, i32)> {
        let index = self.0.checked_sub(uae::BASE).and_then(|index| usize::try_from(index).ok())?;
        uae::UAE.get(index).copied()
    }
}

impl std::fmt::Display for AbortCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.name(), self.meaning()) {
            (Some(name), Some(meaning)) => write!(f, "{name} ({}): {meaning}", self.0),
            (Some(name), None) => write!(f, "{name} ({})", self.0),
            _ => match Errno::from_linux(self.0) {
                Some(errno) => write!(f, "{errno}"),
                None => write!(f, "error {}", self.0),
            },
        }
    }
}

impl std::error::Error for AbortCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_print_their_name_and_meaning() {
        assert_eq!(AbortCode::VNOVOL.to_string(), "VNOVOL (103): the volume is not on this server");
        assert_eq!(AbortCode(0x2f6df01).to_string(), "UAENOENT (49733377)");
        assert_eq!(AbortCode(13).to_string(), "EACCES (13)");
        assert_eq!(AbortCode(99_999).to_string(), "error 99999");
    }

    #[test]
    fn codes_have_the_documented_numbers() {
        for (code, number) in [
            (AbortCode::BZDOM, 39_429),
            (AbortCode::BZENCREQ, 39_436),
            (AbortCode::VL_IDEXIST, 363_520),
            (AbortCode::VL_PERM, 363_546),
            (AbortCode::VL_DBBAD, 363_552),
            (AbortCode::VOLSERILLEGAL_PARTITION, 1_492_325_125),
            (AbortCode::VOLSERBAD_ACCESS, 1_492_325_127),
            (AbortCode::VOLSERVOLBUSY, 1_492_325_133),
            (AbortCode::RXKADUNKNOWNKEY, 19_270_408),
            (AbortCode::RXGKBADQOP, 1_233_242_891),
            (AbortCode::UNOSERVERS, 5389),
            (AbortCode::RXGEN_OPCODE, -455),
        ] {
            assert_eq!(code.0, number);
        }
    }

    #[test]
    fn codes_become_linux_errors() {
        assert_eq!(AbortCode::VDISKFULL.to_errno(), Some(28));
        assert_eq!(AbortCode::VOVERQUOTA.to_errno(), Some(122));
        assert_eq!(AbortCode::VNOVNODE.to_errno(), Some(2));
        assert_eq!(AbortCode(30).to_errno(), Some(30));
        assert_eq!(AbortCode(0).to_errno(), None);
        assert_eq!(AbortCode(i32::MIN).to_errno(), None);
        // UAEOTHER has no Linux number.
        assert_eq!(AbortCode(uae::BASE + 126).to_errno(), None);
    }
}
