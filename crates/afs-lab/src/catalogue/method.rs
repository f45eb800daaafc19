//! How an experiment is repeated.

/// A table or figure as an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Id of the entry.
    pub id: &'static str,
    /// What was measured.
    pub measures: &'static str,
    /// How it is repeated here.
    pub method: Method,
}

/// A way to repeat an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Computed from the paper's own inputs.
    Recompute(Recomputed),
    /// Generated with the published distributions.
    Generate(Generated),
    /// Nothing was measured: a list, a diagram or a description.
    Description,
    /// Not built yet, and what it needs.
    NotBuilt(&'static str),
}

/// What is computed by the model of `crate::model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recomputed {
    /// Shares of cycles of the whole NFS trace.
    NfsShares,
    /// Shares of cycles of the whole AFS trace.
    AfsShares,
    /// Shares of the busy client-minutes.
    BusyShares,
    /// Costs that the rules give NFS operations.
    NfsRules,
    /// Costs that the rules give AFS operations.
    AfsRules,
    /// Work by operation, NFS.
    NfsWork,
    /// Work by operation, AFS.
    AfsWork,
    /// Work of many client-minutes.
    Curves,
    /// Costs that the work implies.
    Costs,
    /// Work under other rules for opens.
    Opens,
}

/// What is told of generated traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generated {
    /// Requests, bytes and shares.
    Totals,
    /// Distribution of work over client-minutes.
    WorkDistribution,
}

impl Method {
    /// Whether it can be run, with what it needs.
    #[must_use]
    pub fn runs(self) -> bool {
        !matches!(self, Self::Description | Self::NotBuilt(_))
    }

    /// Seconds that a run takes, roughly: the weight of the experiment in the time left.
    #[must_use]
    pub fn weight_seconds(self, quick: bool) -> u64 {
        match self {
            Self::Generate(_) if !quick => 10,
            _ => 1,
        }
    }
}

/// Shorthand of the lists.
pub(super) const fn at(id: &'static str, measures: &'static str, method: Method) -> Experiment {
    Experiment { id, measures, method }
}
