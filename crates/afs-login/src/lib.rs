//! Login without Kerberos: a passphrase or an SSH key, and a token that every server of the cell accepts.
