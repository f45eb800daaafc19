//! Kerberos encryption types (RFC 3961): encrypt, checksum, key derivation, PRF.
