//! Person behind a holder of the cell's key, in the application data of the authenticator: `docs/protocol/rxgk.md`
//! "5. Challenge and response".

use afs_rpc::{Person, Principal};
use afs_wire::xdr::{DecodeError, Encode, Reader};

use super::wire::put_opaque;
use crate::Secret;

/// First bytes of application data that have a person. A client's token for calls back never begins so: in its form a
/// length would follow that is longer than the data.
const MARK: [u8; 8] = *b"ANDperso";
/// Longest text that is looked at, in bytes: more than an authenticator has room for is no person.
const SENT_MAX: usize = 1024;

/// The application data that name a person.
pub(super) fn appdata(person: &Person) -> Secret {
    let mut out = Vec::with_capacity(MARK.len() + 8 + Person::MAX);
    out.extend_from_slice(&MARK);
    0u32.encode(&mut out);
    put_opaque(person.as_str().as_bytes(), &mut out);
    Secret::new(out)
}

/// The person that a client names, if it has the cell's key. Nobody else is believed.
pub(super) fn of(principal: &Principal, appdata: &[u8]) -> Option<Person> {
    let is_holder_of_key = *principal == Principal::CellKey;
    is_holder_of_key.then(|| decode(appdata).ok().flatten()).flatten()
}

fn decode(appdata: &[u8]) -> Result<Option<Person>, DecodeError> {
    let mut reader = Reader::new(appdata);
    let is_person = *reader.array::<8>()? == MARK && reader.u32()? == 0;
    if !is_person {
        return Ok(None);
    }
    let person = Person::claimed(reader.opaque(SENT_MAX)?);
    reader.finish()?;
    Ok(person)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rxgk::Variant;
    use crate::rxgk::callback;
    use afs_rpc::Level;

    fn sent(text: &[u8]) -> Vec<u8> {
        let mut out = [&MARK[..], &[0; 4]].concat();
        put_opaque(text, &mut out);
        out
    }

    #[test]
    fn only_a_holder_of_the_cells_key_is_believed() {
        let alice = Person::of_user(1000, Some("alice"));
        let data = appdata(&alice);
        assert_eq!(of(&Principal::CellKey, data.expose()), Some(alice));
        assert_eq!(of(&Principal::local("bob"), data.expose()), None);
        assert_eq!(of(&Principal::local("afs"), data.expose()), None);
    }

    #[test]
    fn what_is_sent_is_bounded_and_cleaned_and_anything_else_names_nobody() {
        let of = |data: &[u8]| of(&Principal::CellKey, data).map(|person| person.as_str().to_owned());
        assert_eq!(of(&sent(b"0 root\n\"x\" \x1b[31m")).unwrap(), "0 root?\"x\" ?[31m");
        assert_eq!(of(&sent(&[b'a'; 1000])).unwrap(), "a".repeat(Person::MAX));
        assert_eq!(of(&sent(&[b'a'; 4096])), None);
        let (whole, later) = (sent(b"1000 alice"), [&MARK[..], &[0, 0, 0, 1], &[0; 4]].concat());
        let more = [&whole[..], &[0; 4]].concat();
        for other in
            [&b""[..], &MARK, &whole[..whole.len() - 1], &more, &later, &sent(b""), b"no person at all"]
        {
            assert_eq!(of(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_person_is_no_token_for_calls_back() {
        for len in 1..=Person::MAX {
            let data = appdata(&Person::claimed(&vec![b' '; len]).unwrap());
            assert!(callback::token(Variant::OpenAfs, data.expose(), Level::Crypt).is_none(), "{len}");
        }
    }
}
