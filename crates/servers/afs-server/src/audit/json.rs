//! Encoding of audit records as lines of JSON.

use std::fmt::{self, Write};

use afs_rpc::{Class, Identity, Level, Principal};

use super::record::{AuditPart, AuditRecord, AuditedCall, CountedCalls, Refused};
use super::refusals::{ANYBODY, who};

impl AuditRecord {
    /// One JSON object without a line end, in ASCII, whatever names callers sent.
    ///
    /// `{"time":1700000000.000000001,"who":"alice","by":"rxgk/crypt","peer":"10.0.0.7:7001","call":"StoreACL",
    /// "object":"536870915.1.1","code":0}`, `{"time":1700000600.000000001,"who":"(anybody)","peer":"10.0.0.7","call":"FetchData",
    /// "more":9000}`, or `{"lost":3}`.
    pub fn to_json(&self) -> String {
        let mut line = String::with_capacity(192);
        // Writing to a string does not fail.
        let _ = match self {
            AuditRecord::Call(call) => write_call(&mut line, call),
            AuditRecord::Counted(counted) => write_counted(&mut line, counted),
            AuditRecord::Lost(_, count) => write!(line, "{{\"lost\":{count}}}"),
        };
        line
    }
}

fn write_counted(line: &mut String, counted: &CountedCalls) -> fmt::Result {
    let anybody = counted.part == AuditPart::AnonymousRefusals;
    let (who, peer) = match &counted.caller {
        Refused::Named(name) => (&**name, None),
        Refused::Address(address) => (ANYBODY, Some(address.to_string())),
        Refused::Network(network) => (ANYBODY, Some(format!("{network}/64"))),
        Refused::Others => (if anybody { ANYBODY } else { OTHERS }, Some(OTHERS.into())),
    };
    write!(line, "{{\"time\":{}.{:09},\"who\":", counted.time.secs, counted.time.nanos)?;
    write_text(line, who)?;
    if let Some(peer) = peer {
        write!(line, ",\"peer\":\"{peer}\"")?;
    }
    write!(line, ",\"call\":\"{}\",\"more\":{}}}", counted.call, counted.count)
}

/// All callers, or addresses, that have no count of their own.
const OTHERS: &str = "(others)";

fn write_call(line: &mut String, call: &AuditedCall) -> fmt::Result {
    write!(line, "{{\"time\":{}.{:09},\"who\":", call.time.secs, call.time.nanos)?;
    write_text(line, &who(&call.identity))?;
    write_person(line, &call.identity)?;
    write_suspended(line, &call.identity)?;
    write!(line, ",\"by\":\"{}\",\"peer\":\"{}\"", by(&call.identity), call.peer)?;
    write!(line, ",\"call\":\"{}\",\"object\":", call.call)?;
    write_text(line, &call.object.to_string())?;
    write!(line, ",\"code\":{}}}", call.code.0)
}

/// Whom the holder of the cell's key acted for, if it said so.
fn write_person(line: &mut String, identity: &Identity) -> fmt::Result {
    let Some(person) = identity.person() else { return Ok(()) };
    line.push_str(",\"person\":");
    write_text(line, person.as_str())
}

/// The groups whose rights the caller did not have, if there are any.
fn write_suspended(line: &mut String, identity: &Identity) -> fmt::Result {
    let suspended = identity.principal().map(Principal::suspended).unwrap_or_default();
    for (place, group) in suspended.groups().iter().enumerate() {
        line.push_str(if place == 0 { ",\"without\":[" } else { "," });
        write!(line, "{}", group.0)?;
    }
    if suspended.is_empty() { Ok(()) } else { line.write_char(']') }
}

fn by(identity: &Identity) -> String {
    let protection = identity.protection();
    let class = match protection.class {
        Class::Null => return "null".into(),
        Class::Rxkad => "rxkad",
        Class::Rxgk => "rxgk",
    };
    let level = match protection.level {
        Level::Clear => "clear",
        Level::Auth => "auth",
        Level::Crypt => "crypt",
    };
    format!("{class}/{level}")
}

fn write_text(line: &mut String, text: &str) -> fmt::Result {
    line.push('"');
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(quoted @ (b'"' | b'\\')) => write!(line, "\\{}", char::from(quoted))?,
            Ok(plain @ b' '..=b'~') => line.push(char::from(plain)),
            _ => write!(line, "\\u{unit:04x}")?,
        }
    }
    line.push('"');
    Ok(())
}
