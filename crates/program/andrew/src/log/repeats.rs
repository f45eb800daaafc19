//! Layer of the log that writes the first lines of each call site in a window, and counts the others.

use super::lines::Log;
use afs_rpc::{Instant, RepeatBounds, RepeatKind, Repeats};
use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::Context;

/// Lines that are written: 256 of each call site in ten minutes. There are as many call sites as the program has.
const LINES: RepeatBounds = RepeatBounds { window: Duration::from_secs(600), told: 256, kinds: usize::MAX };

/// A call site of the log: target, file, line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Callsite(&'static str, Option<&'static str>, Option<u32>);

impl RepeatKind for Callsite {
    /// Each is counted by itself.
    fn shared(&self) -> Self {
        self.clone()
    }
}

/// The lines of all call sites. Those that only `ANDREW_LOG` asks for (debug and trace) are neither bounded nor counted. Clones are one table.
pub(super) struct RepeatedLines<W>(Arc<Table<W>>);

struct Table<W> {
    callsites: Mutex<Repeats<Callsite>>,
    log: Log<W>,
    start: std::time::Instant,
}

impl<W: Write> RepeatedLines<W> {
    /// Counts lines of a log, into which it writes the counts.
    pub(super) fn new(log: Log<W>) -> Self {
        let callsites = Mutex::new(Repeats::new(LINES));
        Self(Arc::new(Table { callsites, log, start: std::time::Instant::now() }))
    }

    /// Tells how many lines of each call site were left out since that was last told.
    pub(super) fn tell(&self) {
        let counts = self.0.callsites.lock().take();
        for (Callsite(target, file, line), count) in counts {
            let mut told = String::new();
            let _ = SystemTime.format_time(&mut Writer::new(&mut told));
            told += &format!("  INFO {target}: {count} more lines like this were left out");
            if let (Some(file), Some(line)) = (file, line) {
                told += &format!(": {file}:{line}");
            }
            told.push('\n');
            // A log does not fail.
            let _ = self.0.log.clone().write_all(told.as_bytes());
        }
    }

    /// Whether a line is written; before it, the counts if they are due.
    fn is_written(&self, callsite: Callsite, now: Instant) -> bool {
        let (is_written, due) = {
            let mut callsites = self.0.callsites.lock();
            (callsites.is_told(callsite, now), callsites.due())
        };
        if due.is_some_and(|due| due <= now) {
            self.tell();
        }
        is_written
    }
}

impl<W> Clone for RepeatedLines<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Subscriber, W: Write + Send + 'static> Layer<S> for RepeatedLines<W> {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let line = event.metadata();
        let callsite = Callsite(line.target(), line.file(), line.line());
        let now = Instant::ZERO + self.0.start.elapsed();
        *line.level() > Level::INFO || self.is_written(callsite, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Kept;
    use super::*;

    #[test]
    fn the_counts_of_a_window_are_told_with_the_next_line_of_any_callsite() {
        let kept = Kept::default();
        let lines = RepeatedLines::new(Log::over(kept.clone()));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let (flooded, other) = (Callsite("a", Some("src/a.rs"), Some(7)), Callsite("b", None, None));
        let written = (0..1000).filter(|_| lines.is_written(flooded.clone(), at(1))).count();
        assert_eq!((written, lines.is_written(other.clone(), at(600))), (256, true));
        assert_eq!(kept.text(), "");
        assert!(lines.is_written(other, at(601)));
        let told = kept.text();
        assert!(told.ends_with("  INFO a: 744 more lines like this were left out: src/a.rs:7\n"), "{told}");
        assert_eq!(told.lines().count(), 1);
        assert!(lines.is_written(flooded, at(602)), "a new window");
    }
}
