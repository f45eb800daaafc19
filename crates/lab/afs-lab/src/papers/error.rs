//! Errors of the embedded data.

/// Why data of a paper cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PaperError {
    /// It is not TOML of the expected form.
    #[error("data of a paper: {0}")]
    Form(#[from] toml::de::Error),
    /// A count is over its bound, or differs from another one.
    #[error("data of a paper: {entry}: {what}")]
    Bounds {
        /// The entry, or the paper.
        entry: String,
        /// What is wrong.
        what: String,
    },
    /// A number that a computation needs is not there.
    #[error("the papers' data have no {0}")]
    Absent(String),
}
