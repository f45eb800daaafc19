//! Entry point of the fuzz target: any bytes must be decoded without a panic. `fuzz/` calls it with bytes
//! from libFuzzer, the test here with damaged replies of etcd.

use afs_db::shared::{Outcome, Revision};
use serde::de::DeserializeOwned;

use crate::client::read;
use crate::http::{HttpReply, Server};
use crate::messages::{AuthenticateReply, RangeReply, TxnReply};
use crate::store::{Rows, outcome_of};
use crate::watch::batch;
use crate::{Endpoint, EtcdConfig, TlsFiles};

/// Keys that a refused transaction reads.
const LOOKED: usize = 3;

/// Decodes a reply of etcd for each call that may receive it. The first byte says whether it is an error; a
/// line of a watch never is.
pub fn answers(bytes: &[u8]) {
    let Some((good, body)) = bytes.split_first() else { return };
    let (Ok(rows), Ok(endpoint)) = (Rows::of(&config()), "http://192.0.2.1:2379".parse::<Endpoint>()) else {
        return;
    };
    let server = Server::new(endpoint, None);
    let reply = HttpReply { good: good & 1 == 0, body: body.to_vec().into() };
    if let Some(reply) = answer::<RangeReply>(&server, &reply) {
        let count = reply.kvs.len();
        assert_eq!(rows.page_of(None, reply).rows.len(), count);
    }
    if let Some(Outcome::Conflict(found)) =
        answer::<TxnReply>(&server, &reply).map(|reply| outcome_of(reply, LOOKED))
    {
        assert_eq!(found.len(), LOOKED);
    }
    drop(answer::<AuthenticateReply>(&server, &reply));
    if let Err(error) = batch(&rows, Revision(7), body) {
        assert!(!error.to_string().is_empty());
    }
    if let Ok(endpoint) = String::from_utf8_lossy(body).parse::<Endpoint>() {
        assert_eq!(endpoint.to_string().parse::<Endpoint>().ok(), Some(endpoint));
    }
}

fn answer<T: DeserializeOwned>(server: &Server, reply: &HttpReply) -> Option<T> {
    let answer = read(server, reply);
    assert!(reply.good || answer.is_err(), "an error is no answer");
    answer.ok()
}

fn config() -> EtcdConfig {
    EtcdConfig {
        endpoints: "http://192.0.2.1:2379".parse().into_iter().collect(),
        prefix: "/andrew/example.org/".into(),
        user: None,
        tls: TlsFiles::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [&str; 5] = [
        r#"{"header":{"cluster_id":"1","revision":"7"},"kvs":[{"key":"L2FuZHJldy9leGFtcGxlLm9yZy9h","mod_revision":"6","value":"Yg=="}],"more":true,"count":"1"}"#,
        r#"{"header":{"revision":"8"},"responses":[{"response_range":{"kvs":[{"key":"YQ==","mod_revision":"6","value":"Yg=="}]}},{}]}"#,
        r#"{"header":{"revision":"8"},"succeeded":true}"#,
        r#"{"result":{"events":[{"type":"DELETE","kv":{"key":"YQ==","mod_revision":"6"}},{"kv":{"key":"YQ==","mod_revision":"7"}}]}}"#,
        r#"{"error":"x","code":11,"message":"compacted"}"#,
    ];

    #[test]
    fn answers_with_any_byte_changed_are_read_without_a_panic() {
        for sample in SAMPLES {
            for at in 0..sample.len() {
                for byte in [0, b'"', b'{', b'[', b'-', b'9', b'=', 0xff] {
                    let mut body = sample.as_bytes().to_vec();
                    body[at] = byte;
                    answers(&[&[0], &body[..]].concat());
                    answers(&[&[1], &body[..at]].concat());
                }
            }
        }
    }
}
