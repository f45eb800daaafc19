//! Progress of an operation on standard error: a bar on a terminal, lines otherwise.

use crate::plain::plain;
use afs_admin::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Progress on standard error.
pub(super) struct Bar {
    /// On a terminal.
    bar: Option<ProgressBar>,
    /// Whether lines are written.
    lines: bool,
}

impl Bar {
    /// A bar on a terminal; lines elsewhere, except for JSON output without `--verbose`.
    pub(super) fn new(json: bool, verbose: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !verbose;
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style("{spinner} {msg}"));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, lines: verbose || (!terminal && !json) }
    }

    /// Removes the bar before the output.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bar {
    fn step(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_style(style("{spinner} {msg}"));
            bar.set_message(plain(what).into_owned());
            bar.reset();
        } else if self.lines {
            eprintln!("{}", plain(what));
        }
    }

    fn bytes(&self, done: u64, of: Option<u64>) {
        let Some(bar) = &self.bar else { return };
        match of {
            Some(of) => {
                bar.set_style(style(
                    "{spinner} {msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
                ));
                bar.set_length(of.max(done));
            }
            None => bar.set_style(style("{spinner} {msg} {bytes}, {bytes_per_sec}")),
        }
        bar.set_position(done);
    }

    fn warn(&self, what: &str) {
        let what = plain(what);
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("vos: {what}")),
            None => eprintln!("vos: {what}"),
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
