//! Option of all commands that mount: how long programs wait for a server that does not reply.

use afs_cell::HARD_SERVER_WAIT;
use afs_venus::Limits;
use std::time::Duration;

/// The one setting for servers that are away.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct ServerWait {
    /// How long programs wait for a server that does not reply any more, in seconds, or "hard": until it replies, or they are killed
    /// [default: 15; of `andrew up` that of the last start]
    #[arg(long, value_name = "SECONDS|hard", value_parser = seconds)]
    pub server_wait: Option<u32>,
}

impl ServerWait {
    /// What it means.
    pub fn limit(self) -> Duration {
        match self.server_wait {
            None => Limits::default().server_wait,
            Some(HARD_SERVER_WAIT) => Limits::FOR_EVER,
            Some(seconds) => Duration::from_secs(seconds.into()),
        }
    }
}

const HARD: &str = "hard";
/// A day; who means more means "hard".
const SECONDS_MAX: u32 = 86_400;

fn seconds(text: &str) -> Result<u32, String> {
    match (text, text.parse()) {
        (HARD, _) => Ok(HARD_SERVER_WAIT),
        (_, Ok(seconds)) if seconds <= SECONDS_MAX => Ok(seconds),
        _ => Err(format!("0 to {SECONDS_MAX} seconds, or \"{HARD}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_or_hard() {
        let limit =
            |text: Option<&str>| ServerWait { server_wait: text.map(|text| seconds(text).unwrap()) }.limit();
        assert_eq!(limit(None), Duration::from_secs(15));
        assert_eq!(limit(Some("0")), Duration::ZERO);
        assert_eq!(limit(Some("hard")), Limits::FOR_EVER);
        for text in ["-1", "86401", "soft", "15s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
