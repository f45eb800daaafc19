//! Progress of a measurement on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// With what is measured, and the time left.
pub(super) const TIME_LEFT: &str = "{msg:<32} {wide_bar} {percent:>3}% {eta} left";

/// A bar of this form, such as `{msg:<32} {wide_bar} {percent:>3}%`.
pub(super) fn bar(form: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    bar
}
