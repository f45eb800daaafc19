//! Encoding of tokens in files and sockets.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::cell;

use afs_auth::Token;
use afs_auth::crypto::EncType;
use afs_auth::rxgk::{Variant, local_token};
use afs_auth::rxkad::{RxkadToken, SessionKey, TicketFormat};
use afs_rpc::{Level, UnixTime};
use cell::Cell;
use cell::support::Weather;
use proptest::prelude::*;

fn tokens() -> Vec<Token> {
    let cell = Cell::new(1, Variant::OpenAfs, Weather::FAIR);
    let key = SessionKey::new([1, 2, 3, 4, 5, 6, 7, 8]);
    let expires = Some(UnixTime { secs: 1_900_000_000, nanos: 0 });
    let rxkad = |expires| RxkadToken::new(TicketFormat::Ticket, &[9; 333], key.clone(), expires).unwrap();
    let mut all = vec![
        Token::Rxkad(rxkad(expires)),
        Token::Rxkad(rxkad(None)).with_level(Level::Auth),
        Token::Rxgk(local_token(&cell.keys, Variant::Yfs, Level::Auth, &cell.env).unwrap()),
    ];
    all.extend(
        [EncType::Aes128Sha1, EncType::DEFAULT].map(|enctype| Token::Rxgk(cell.token(Level::Crypt, enctype))),
    );
    all
}

#[test]
fn there_and_back() {
    for token in tokens() {
        assert_eq!(Token::decode(&token.encode()), Ok(token.clone()));
        let again = Token::decode(&token.encode()).unwrap();
        assert_eq!((again.level(), again.expires()), (token.level(), token.expires()));
    }
}

#[test]
fn only_rxkad_lets_the_client_choose() {
    let levels: Vec<Level> =
        tokens().into_iter().map(|token| token.with_level(Level::Clear).level()).collect();
    assert_eq!(levels, [Level::Clear, Level::Clear, Level::Auth, Level::Crypt, Level::Crypt]);
}

#[test]
fn truncated_and_extended_tokens_are_refused() {
    for token in tokens() {
        let bytes = token.encode();
        (0..bytes.len()).for_each(|len| assert!(Token::decode(&bytes[..len]).is_err(), "{len}"));
        assert!(Token::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}

#[test]
fn no_secret_is_printed() {
    for token in tokens() {
        let shown = format!("{token:?}");
        assert!(shown.len() < 160 && shown.contains("level"), "{shown}");
    }
}

proptest! {
    #[test]
    fn garbage_is_refused_or_harmless(bytes: Vec<u8>, token in 0..5usize, at: prop::sample::Index, byte: u8) {
        let _ = Token::decode(&bytes);
        let mut bytes = tokens()[token].encode().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = Token::decode(&bytes);
    }
}
