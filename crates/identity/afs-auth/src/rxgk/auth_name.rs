//! Identities inside tokens: `PrAuthName`, and its principal.

use afs_rpc::{Principal, TokenGeneration};
use afs_rx::SecurityError;
use afs_wire::xdr::{DecodeError, Encode, Reader};

use super::code;
use super::suspended::{self, KIND_SUSPENDED};
use super::wire::put_opaque;
use crate::names::LocalNames;

/// `PrAuthName`: a name in the form of some authentication system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthName {
    /// 1: as in rxkad, `name.instance@realm`; 2: a name exported by GSS; 0x414E4401, after one of those alone: the groups
    /// that it has suspended.
    pub kind: i32,
    /// The name; at most 2048 bytes.
    pub data: Vec<u8>,
    /// The name for display; at most 2048 bytes. Behind the name of a user whose tokens were revoked before, it has their
    /// generation; servers of others use it for no decision.
    pub display: Vec<u8>,
}

const KIND_KRB4: i32 = 1;
const KIND_GSS: i32 = 2;
const PART_MAX: usize = 2048;
/// Between a user's name and the generation of the token, in Unix seconds.
const SINCE: &str = " (since ";

/// First bytes of a name that GSS exported (RFC 2743 section 3.2) from Kerberos 5: token id, length and DER form of
/// the mechanism's object identifier.
const GSS_KRB5: [u8; 15] =
    [0x04, 0x01, 0x00, 0x0b, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02];

impl AuthName {
    /// A name in rxkad's form: `name` or `name.instance` for users of the cell, with `@realm` for others.
    #[must_use]
    pub fn krb4(text: &str) -> Self {
        Self { kind: KIND_KRB4, data: text.into(), display: text.into() }
    }

    /// A user of the cell, in a token of this generation.
    pub(super) fn of_user(text: &str, generation: TokenGeneration) -> Self {
        let mut name = Self::krb4(text);
        if generation != TokenGeneration::default() {
            name.display.extend_from_slice(format!("{SINCE}{})", generation.0).as_bytes());
        }
        name
    }

    /// The generation of the token whose holder this is. That of tokens of others is the first.
    fn generation(&self) -> TokenGeneration {
        let behind_the_name =
            self.display.strip_prefix(&*self.data).and_then(|rest| str::from_utf8(rest).ok());
        let digits = behind_the_name.and_then(|rest| rest.strip_prefix(SINCE)?.strip_suffix(')'));
        TokenGeneration(digits.and_then(|digits| digits.parse().ok()).unwrap_or_default())
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.kind.encode(out);
        put_opaque(&self.data, out);
        put_opaque(&self.display, out);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = reader.i32()?;
        let data = reader.opaque(PART_MAX)?.to_vec();
        Ok(Self { kind, data, display: reader.opaque(PART_MAX)?.to_vec() })
    }

    /// The principal of the name. Never the cell's key, whatever the name.
    fn principal(&self, names: &LocalNames) -> Result<Principal, SecurityError> {
        let unknown = |_| code::NOT_AUTHENTICATED;
        let found = match self.kind {
            KIND_KRB4 => {
                let text = str::from_utf8(&self.data).map_err(|_| code::NOT_AUTHENTICATED)?;
                let (path, realm) = text.rsplit_once('@').unwrap_or((text, ""));
                let (name, instance) = path.split_once('.').unwrap_or((path, ""));
                names.principal(name, instance, realm).map_err(unknown)?
            }
            KIND_GSS => {
                let text = exported_by_krb5(&self.data).ok_or(code::NOT_AUTHENTICATED)?;
                names.principal_of_text(text).map_err(unknown)?
            }
            _ => return Err(code::NOT_AUTHENTICATED),
        };
        match found {
            Principal::CellKey => Err(code::NOT_AUTHENTICATED),
            Principal::Named { name, cell, mut terms } => {
                terms.generation = self.generation();
                Ok(Principal::Named { name, cell, terms })
            }
        }
    }
}

/// The principal of a token with these identities. Only the cell's key makes a token without any: its holder has all
/// rights. Behind a user of this cell there may be the groups that the user has suspended.
pub(super) fn holder(identities: &[AuthName], names: &LocalNames) -> Result<Principal, SecurityError> {
    match identities {
        [] => Ok(Principal::CellKey),
        [one] => one.principal(names),
        [one, left_out] if left_out.kind == KIND_SUSPENDED => {
            suspended::of(one.principal(names)?, &left_out.data)
        }
        _ => Err(code::INCONSISTENCY),
    }
}

/// The text of the principal in a name exported by GSS.
fn exported_by_krb5(name: &[u8]) -> Option<&str> {
    let (len, text) = name.strip_prefix(&GSS_KRB5)?.split_first_chunk::<4>()?;
    let right = usize::try_from(u32::from_be_bytes(*len)).ok()? == text.len();
    right.then(|| str::from_utf8(text).ok()).flatten().filter(|text| text.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder_of(name: AuthName) -> Result<String, SecurityError> {
        holder(&[name], &LocalNames::of_cell("example.org")).map(|principal| principal.to_string())
    }

    fn gss(text: &str) -> AuthName {
        let len = (text.len() as u32).to_be_bytes();
        AuthName { kind: 2, data: [&GSS_KRB5[..], &len, text.as_bytes()].concat(), display: Vec::new() }
    }

    #[test]
    fn both_kinds_of_names() {
        assert_eq!(holder_of(AuthName::krb4("alice")).unwrap(), "alice");
        assert_eq!(holder_of(AuthName::krb4("alice.admin@EXAMPLE.ORG")).unwrap(), "alice.admin");
        assert_eq!(holder_of(AuthName::krb4("bob@OTHER.ORG")).unwrap(), "bob@other.org");
        assert_eq!(holder_of(gss("alice/admin@EXAMPLE.ORG")).unwrap(), "alice.admin");
        assert_eq!(holder_of(gss("bob@OTHER.ORG")).unwrap(), "bob@other.org");
    }

    #[test]
    fn the_generation_of_a_token_is_behind_the_name_for_display() {
        let generation = |name: &AuthName| {
            let holder = holder(std::slice::from_ref(name), &LocalNames::of_cell("example.org")).unwrap();
            let Principal::Named { terms, name, .. } = holder else { panic!("a user") };
            assert_eq!(&*name, "alice");
            terms.generation.0
        };
        let made = |generation| AuthName::of_user("alice", TokenGeneration(generation));
        for number in [0, 1, 1_764_460_800, u64::MAX] {
            assert_eq!(generation(&made(number)), number);
        }
        assert_eq!(made(0), AuthName::krb4("alice"));
        assert_eq!(made(7).display, b"alice (since 7)");
        for other in
            ["", "alice", "alice (since )", "alice (since 7", "alice (since -7)", "bob (since 7)", "7"]
        {
            assert_eq!(generation(&AuthName { display: other.into(), ..made(0) }), 0, "{other}");
        }
    }

    #[test]
    fn no_name_is_the_cell() {
        for refused in [AuthName::krb4("afs"), AuthName::krb4(""), AuthName::krb4("\u{fffd}\0"), gss("afs")] {
            assert_eq!(holder_of(refused), Err(code::NOT_AUTHENTICATED));
        }
        let mut cut = gss("alice@EXAMPLE.ORG");
        cut.data.pop();
        assert_eq!(holder_of(cut), Err(code::NOT_AUTHENTICATED));
        assert_eq!(holder_of(AuthName { kind: 3, ..AuthName::krb4("alice") }), Err(code::NOT_AUTHENTICATED));
        let two = [AuthName::krb4("alice"), AuthName::krb4("bob")];
        assert_eq!(holder(&two, &LocalNames::of_cell("example.org")), Err(code::INCONSISTENCY));
    }
}
