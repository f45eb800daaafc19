//! Table of login records.

use super::{KIND_MAX, LoginError, RECORD_MAX, RECORDS_MAX, Record, USER_MAX};
use crate::{Rows, RowsMut};

/// Login records: user, NUL, kind.
pub(crate) const LOGIN: &str = "login";

/// The prefix of the keys of a user's records.
pub(super) fn prefix(user: &str) -> Result<Vec<u8>, LoginError> {
    if user.is_empty() || user.len() > USER_MAX || user.contains('\0') {
        return Err(LoginError::BadUser);
    }
    Ok([user.as_bytes(), &[0]].concat())
}

pub(super) fn key(user: &str, kind: &str) -> Result<Vec<u8>, LoginError> {
    if kind.is_empty() || kind.len() > KIND_MAX {
        return Err(LoginError::BadKind);
    }
    Ok([&prefix(user)?, kind.as_bytes()].concat())
}

/// The rows with a prefix, which ends with a NUL: its successor ends with a one.
pub(super) fn records(rows: &(impl Rows + ?Sized), prefix: &[u8]) -> Result<Vec<Record>, LoginError> {
    let mut until = prefix.to_vec();
    until.pop();
    until.push(1);
    let found = rows.range(LOGIN, prefix, &until, RECORDS_MAX)?;
    let record = |(key, bytes): (Vec<u8>, Vec<u8>)| {
        let kind = key.get(prefix.len()..).unwrap_or_default();
        Record { kind: String::from_utf8_lossy(kind).into_owned(), bytes }
    };
    Ok(found.into_iter().map(record).collect())
}

pub(super) fn put(
    rows: &mut (impl RowsMut + ?Sized),
    key: &[u8],
    prefix: &[u8],
    bytes: &[u8],
) -> Result<(), LoginError> {
    if bytes.len() > RECORD_MAX {
        return Err(LoginError::TooLong(bytes.len()));
    }
    if rows.get(LOGIN, key)?.is_none() && records(rows, prefix)?.len() >= RECORDS_MAX {
        return Err(LoginError::TooMany);
    }
    Ok(rows.put(LOGIN, key, bytes)?)
}
