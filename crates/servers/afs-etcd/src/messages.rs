//! Messages of etcd's JSON API: bytes are base64, and 64-bit numbers are text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes, in base64 on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Blob(pub(crate) Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(Blob).map_err(serde::de::Error::custom)
    }
}

/// A 64-bit number, as text on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Number(pub(crate) u64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map(Number).map_err(serde::de::Error::custom)
    }
}

#[derive(Serialize, Debug, Default)]
pub(crate) struct RangeRequest {
    pub(crate) key: Blob,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range_end: Option<Blob>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<Number>,
}

#[derive(Serialize, Debug)]
pub(crate) struct PutRequest {
    pub(crate) key: Blob,
    pub(crate) value: Blob,
}

#[derive(Serialize, Debug)]
pub(crate) struct DeleteRequest {
    pub(crate) key: Blob,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names travel")]
pub(crate) enum Operation {
    RequestRange(RangeRequest),
    RequestPut(PutRequest),
    RequestDeleteRange(DeleteRequest),
    RequestTxn(TxnRequest),
}

#[derive(Serialize, Debug)]
pub(crate) struct Compare {
    pub(crate) key: Blob,
    pub(crate) target: &'static str,
    pub(crate) result: &'static str,
    pub(crate) mod_revision: Number,
}

#[derive(Serialize, Debug, Default)]
pub(crate) struct TxnRequest {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) compare: Vec<Compare>,
    pub(crate) success: Vec<Operation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failure: Vec<Operation>,
}

#[derive(Serialize, Debug)]
pub(crate) struct WatchRequest {
    pub(crate) create_request: WatchCreate,
}

#[derive(Serialize, Debug)]
pub(crate) struct WatchCreate {
    pub(crate) key: Blob,
    pub(crate) range_end: Blob,
    pub(crate) start_revision: Number,
}

#[derive(Serialize)]
pub(crate) struct AuthenticateRequest<'a> {
    pub(crate) name: &'a str,
    pub(crate) password: &'a str,
}

#[derive(Deserialize)]
pub(crate) struct AuthenticateReply {
    pub(crate) token: String,
}

#[derive(Deserialize, Debug, Default)]
pub(crate) struct Header {
    #[serde(default)]
    pub(crate) revision: Number,
}

#[derive(Deserialize, Debug, Default)]
pub(crate) struct KeyValue {
    #[serde(default)]
    pub(crate) key: Blob,
    #[serde(default)]
    pub(crate) value: Blob,
    #[serde(default)]
    pub(crate) mod_revision: Number,
}

#[derive(Deserialize, Debug, Default)]
pub(crate) struct RangeReply {
    #[serde(default)]
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) kvs: Vec<KeyValue>,
    #[serde(default)]
    pub(crate) more: bool,
}

#[derive(Deserialize, Debug, Default)]
pub(crate) struct OperationReply {
    #[serde(default)]
    pub(crate) response_range: Option<RangeReply>,
}

#[derive(Deserialize, Debug, Default)]
pub(crate) struct TxnReply {
    #[serde(default)]
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) succeeded: bool,
    #[serde(default)]
    pub(crate) responses: Vec<OperationReply>,
}

/// A line of the stream of a watch.
#[derive(Deserialize, Debug, Default)]
pub(crate) struct WatchLine {
    #[serde(default)]
    pub(crate) result: Option<WatchReply>,
    #[serde(default)]
    pub(crate) error: Option<serde_json::Value>,
}

#[derive(Deserialize, Debug, Default)]
pub(crate) struct WatchReply {
    #[serde(default)]
    pub(crate) canceled: bool,
    #[serde(default)]
    pub(crate) compact_revision: Number,
    #[serde(default)]
    pub(crate) cancel_reason: String,
    #[serde(default)]
    pub(crate) events: Vec<Event>,
}

#[derive(Deserialize, Debug, Default)]
pub(crate) struct Event {
    /// Absent for a put.
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) kv: KeyValue,
}

/// The body of an error.
#[derive(Deserialize, Debug, Default)]
pub(crate) struct ErrorReply {
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) error: String,
    /// The gRPC code.
    #[serde(default)]
    pub(crate) code: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_etcd_writes_them() {
        let txn = TxnRequest {
            compare: vec![Compare {
                key: Blob(vec![1]),
                target: "MOD",
                result: "EQUAL",
                mod_revision: Number(5),
            }],
            success: vec![Operation::RequestDeleteRange(DeleteRequest { key: Blob(b"a".to_vec()) })],
            failure: vec![],
        };
        assert_eq!(
            serde_json::to_string(&txn).unwrap(),
            r#"{"compare":[{"key":"AQ==","target":"MOD","result":"EQUAL","mod_revision":"5"}],"success":[{"request_delete_range":{"key":"YQ=="}}]}"#
        );
        let reply: RangeReply = serde_json::from_str(
            r#"{"header":{"cluster_id":"1","revision":"7"},"kvs":[{"key":"YQ==","mod_revision":"6","value":"Yg=="}],"count":"1"}"#,
        )
        .unwrap();
        assert_eq!((reply.header.revision, reply.kvs[0].mod_revision), (Number(7), Number(6)));
        assert_eq!(reply.kvs[0].value, Blob(b"b".to_vec()));
        assert!(serde_json::from_str::<RangeReply>(r#"{"kvs":[{"key":"?"}]}"#).is_err());
    }
}
