//! The calls of the login service.

use super::{
    Attempt, Comment, Fixed, GroupTexts, HostAddress, KeyBlob, Message, REVOKED_MAX, Renewal, SERVICE,
    SealedGrant, SshSignature, UserText, Ways, Wish,
};
use crate::rpc::Nothing;
use crate::xdr::BoundedVec;

calls! {
    service SERVICE;

    /// Begins a login with a passphrase: the client's first OPAQUE message.
    1 "PassphraseStart" PassphraseStart {
        /// [`VERSION`](super::VERSION).
        version: u32, user: UserText, wish: Wish, message: Message,
    } -> PassphraseStartReply {
        /// To be returned unchanged.
        attempt: Attempt,
        /// The server's OPAQUE message.
        message: Message,
    };

    /// Ends a login with a passphrase: the client's second OPAQUE message.
    2 "PassphraseFinish" PassphraseFinish { version: u32, attempt: Attempt, message: Message } -> GrantReply {
        /// The token, sealed with a key derived from the session key of the exchange.
        grant: SealedGrant,
    };

    /// Begins a login with an SSH key.
    3 "SshStart" SshStart {
        version: u32, user: UserText, wish: Wish, key: KeyBlob,
        /// The client's share of the key exchange (X25519), made for this login.
        share: Fixed<32>,
    } -> SshStartReply {
        attempt: Attempt,
        /// The server's share of the key exchange, made for this login.
        share: Fixed<32>,
        /// The cell's login host key (Ed25519).
        host_key: Fixed<32>,
        /// Its signature over the exchange so far.
        signature: Fixed<64>,
    };

    /// Ends a login with an SSH key: its signature over the exchange so far.
    4 "SshFinish" SshFinish { version: u32, attempt: Attempt, signature: SshSignature } -> GrantReply;

    /// Requests a new token in place of the one that this connection was made with.
    5 "Renew" Renew {
        version: u32, renewal: Renewal, wish: Wish,
        /// The client's share of a key exchange (X25519), made for this call.
        share: Fixed<32>,
    } -> RenewReply {
        /// The server's share.
        share: Fixed<32>,
        grant: SealedGrant,
    };

    /// Begins to set a passphrase: the client's first OPAQUE message.
    6 "RegisterStart" RegisterStart { version: u32, user: UserText, message: Message } -> RegisterStartReply {
        /// The server's OPAQUE message.
        message: Message,
    };

    /// Sets a passphrase: the record that the server keeps.
    7 "RegisterFinish" RegisterFinish { version: u32, user: UserText, message: Message } -> Nothing;

    /// Removes the passphrase.
    8 "RemovePassphrase" RemovePassphrase { version: u32, user: UserText } -> Nothing;

    /// Adds an SSH key to log in with.
    9 "AddSshKey" AddSshKey { version: u32, user: UserText, key: KeyBlob, comment: Comment } -> Nothing;

    /// Removes an SSH key.
    10 "RemoveSshKey" RemoveSshKey { version: u32, user: UserText, key: KeyBlob } -> Nothing;

    /// Lists a user's ways to log in.
    11 "ListWays" ListWays { version: u32, user: UserText } -> ListWaysReply { ways: Ways };

    /// Requests a token with other suspended groups in place of the one that this connection was made with. It ends with
    /// that one.
    12 "ChangeGroups" ChangeGroups {
        version: u32, renewal: Renewal,
        /// The client's share of a key exchange (X25519), made for this call.
        share: Fixed<32>,
        /// Groups whose rights the new token is to be without.
        suspend: GroupTexts,
        /// Groups whose rights it is to have again.
        resume: GroupTexts,
        /// Whether what the new token is without can only be resumed by another login.
        lasting: bool,
    } -> RenewReply;

    /// Revokes the tokens of a user, or of every user who has logged in from a host.
    13 "Revoke" Revoke {
        version: u32,
        /// Of this user; empty: of the caller.
        user: UserText,
        /// Of the users who have logged in from this address, whoever is named above; empty: of the one user.
        host: HostAddress,
        /// Whether to remove the users' passphrases and SSH keys too.
        remove_ways: bool,
    } -> RevokeReply {
        /// The users whose tokens were revoked.
        users: BoundedVec<UserText, REVOKED_MAX>,
    };

    /// Requests the key with which the caller's caches are encrypted on disks.
    14 "CacheKey" CacheKey { version: u32 } -> CacheKeyReply {
        /// The same at each call.
        key: Fixed<32>,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, DecodeError, Encode};

    #[test]
    fn requests_have_their_documented_bytes() {
        let start = PassphraseStart {
            version: super::super::VERSION,
            user: UserText::new("alice").unwrap(),
            wish: Wish { lifetime: 3600, level: 2 },
            message: Message::new([7; 6]).unwrap(),
        };
        let bytes = start.to_bytes();
        assert_eq!(
            bytes,
            b"\0\0\0\x01\0\0\0\x05alice\0\0\0\0\0\x0e\x10\0\0\0\x02\0\0\0\x06\x07\x07\x07\x07\x07\x07\0\0"
        );
        assert_eq!(PassphraseStart::from_bytes(&bytes), Ok(start));
    }

    #[test]
    fn a_name_over_its_bound_is_refused() {
        let bytes = [&[0, 0, 0, 1, 0, 0, 0, 64][..], &[b'a'; 64]].concat();
        assert_eq!(ListWays::from_bytes(&bytes), Err(DecodeError::TooLong { limit: 63, got: 64 }));
    }
}
