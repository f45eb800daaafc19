//! Classification of failed requests: what passes, what does not, and what nobody knows.

use std::error::Error;
use std::fmt;

use afs_bucket::Failure;
use hyper::StatusCode;
use object_store::client::HttpError;

use crate::credentials::CredentialsError;

/// A reply that refuses a request: its status, and code and message of its body.
#[derive(Debug)]
pub(crate) struct StatusError {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    message: String,
}

impl StatusError {
    /// The elements `Code` and `Message` of the body (Amazon S3 API Reference, "REST error responses").
    pub(crate) fn new(status: StatusCode, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body.get(..TEXT_MAX).unwrap_or(body));
        Self { status, code: element(&text, "Code"), message: element(&text, "Message") }
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status.as_u16())?;
        let words = [&self.code, &self.message].into_iter().filter(|words| !words.is_empty());
        words.into_iter().try_for_each(|words| write!(f, " {words}"))
    }
}

impl Error for StatusError {}

fn element(text: &str, name: &str) -> String {
    let found = text.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
    let shown = found.map_or("", |(content, _)| content).chars().filter(|c| !c.is_control());
    shown.take(WORDS_MAX).collect()
}

/// Bytes of a body that are searched, and characters of an element that are shown.
const TEXT_MAX: usize = 8192;
const WORDS_MAX: usize = 200;

/// Why a request was not served.
pub(crate) fn failure(error: object_store::Error) -> Failure {
    match &error {
        object_store::Error::NotFound { .. } => return Failure::Missing,
        object_store::Error::AlreadyExists { .. } => return Failure::Exists,
        _ => {}
    }
    if let Some(refusal) = cause::<StatusError>(&error) {
        return of_status(refusal);
    }
    if let Some(credentials) = cause::<CredentialsError>(&error) {
        return Failure::Denied(credentials.to_string());
    }
    match cause::<HttpError>(&error) {
        Some(http) => Failure::Broken(innermost(http)),
        None => Failure::Refused(error.to_string()),
    }
}

fn of_status(refusal: &StatusError) -> Failure {
    let text = refusal.to_string();
    match refusal.status.as_u16() {
        401 | 403 => Failure::Denied(text),
        // A conflict is a concurrent request for the key, whose outcome is not known yet.
        408 | 409 | 429 | 500..=599 => Failure::Busy(text),
        _ => match &*refusal.code {
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => Failure::Denied(text),
            "SlowDown" | "RequestTimeout" => Failure::Busy(text),
            _ => Failure::Refused(text),
        },
    }
}

/// The first error of a type among an error and its causes.
fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    causes(error).into_iter().find_map(|cause| cause.downcast_ref())
}

/// An error and its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut causes = vec![error];
    let mut last = error;
    while let Some(source) = last.source().filter(|_| causes.len() < CAUSES_MAX) {
        causes.push(source);
        last = source;
    }
    causes
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

const CAUSES_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::client::HttpErrorKind;

    fn of(status: u16, body: &str) -> Failure {
        let refusal = StatusError::new(StatusCode::from_u16(status).unwrap(), body.as_bytes());
        let http = HttpError::new(HttpErrorKind::Unknown, refusal);
        failure(object_store::Error::Generic { store: "S3", source: Box::new(http) })
    }

    #[test]
    fn refusals_are_told_apart() {
        let slow =
            "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>Please reduce</Message></Error>";
        assert_eq!(of(503, slow), Failure::Busy("503 SlowDown Please reduce".into()));
        assert_eq!(of(500, ""), Failure::Busy("500".into()));
        assert!(matches!(of(409, ""), Failure::Busy(_)));
        let expired =
            "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>";
        assert_eq!(
            of(400, expired),
            Failure::Denied("400 ExpiredToken The provided token has expired.".into())
        );
        assert!(matches!(of(403, "<Code>AccessDenied</Code>"), Failure::Denied(_)));
        assert_eq!(of(404, "<Code>NoSuchBucket</Code>"), Failure::Refused("404 NoSuchBucket".into()));
        assert!(matches!(of(301, ""), Failure::Refused(_)));
    }

    #[test]
    fn what_has_no_reply_is_unknown() {
        let http = HttpError::new(HttpErrorKind::Interrupted, std::io::Error::other("reset by peer"));
        let error = object_store::Error::Generic { store: "S3", source: Box::new(http) };
        assert_eq!(failure(error), Failure::Broken("reset by peer".into()));
        let missing = CredentialsError::Missing("/x".into());
        let error = object_store::Error::Generic { store: "S3", source: Box::new(missing) };
        assert_eq!(failure(error), Failure::Denied("there is no file /x".into()));
    }
}
