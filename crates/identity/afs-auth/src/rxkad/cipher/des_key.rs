//! Parity and weak keys of DES. There is no DES here: rxkad keeps only these rules.

/// The weak and semi-weak keys of DES (FIPS 74, section 3.6).
const WEAK: [u64; 16] = [
    0x0101_0101_0101_0101,
    0xfefe_fefe_fefe_fefe,
    0x1f1f_1f1f_0e0e_0e0e,
    0xe0e0_e0e0_f1f1_f1f1,
    0x01fe_01fe_01fe_01fe,
    0xfe01_fe01_fe01_fe01,
    0x1fe0_1fe0_0ef1_0ef1,
    0xe01f_e01f_f10e_f10e,
    0x01e0_01e0_01f1_01f1,
    0xe001_e001_f101_f101,
    0x1ffe_1ffe_0efe_0efe,
    0xfe1f_fe1f_fe0e_fe0e,
    0x011f_011f_010e_010e,
    0x1f01_1f01_0e01_0e01,
    0xe0fe_e0fe_f1fe_f1fe,
    0xfee0_fee0_fef1_fef1,
];

/// The key with the low bit of each byte set so that the byte has an odd number of ones.
#[must_use]
pub fn with_odd_parity(key: [u8; 8]) -> [u8; 8] {
    key.map(|byte| byte & 0xfe | u8::from((byte & 0xfe).count_ones().is_multiple_of(2)))
}

/// True for the sixteen keys that must not be used. Expects odd parity.
#[must_use]
pub fn is_weak(key: [u8; 8]) -> bool {
    WEAK.contains(&u64::from_be_bytes(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_keys_have_odd_parity() {
        for key in WEAK.map(u64::to_be_bytes) {
            assert_eq!(with_odd_parity(key), key);
            assert!(is_weak(key));
        }
        assert_eq!(
            with_odd_parity([0, 1, 2, 3, 0xff, 0xfe, 0x80, 0x81]),
            [1, 1, 2, 2, 0xfe, 0xfe, 0x80, 0x80]
        );
    }
}
