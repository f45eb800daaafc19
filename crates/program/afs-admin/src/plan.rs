//! Plan of an operation: its parameters and its progress, as stored in the journal.

use afs_wire::ids::VolumeId;
use serde::{Deserialize, Serialize};

use crate::Admin;
use crate::error::AdminResult;
use crate::journal::Job;
use crate::ops::{
    BackupPlan, ConvertPlan, CopyPlan, CreatePlan, EditPlan, MovePlan, ReleasePlan, RemovePlan, RenamePlan,
    RestorePlan, SnapshotPlan, SwapPlan,
};

macro_rules! plans {
    ($($variant:ident($plan:ty);)*) => {
        /// An operation in the journal.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(tag = "operation", rename_all = "lowercase")]
        pub(crate) enum Plan { $(
            $variant($plan),
        )* }

        impl Plan {
            /// The tool's word for it.
            pub(crate) fn word(&self) -> &'static str {
                match self { $(Self::$variant(plan) => plan.word(),)* }
            }

            /// Id of the group's read-write volume, and its name.
            pub(crate) fn subject(&self) -> (VolumeId, &str) {
                match self { $(Self::$variant(plan) => (plan.volume, &plan.name),)* }
            }

            /// The next step, as one word.
            pub(crate) fn step(&self) -> String {
                match self { $(Self::$variant(plan) => word_of(&plan.step),)* }
            }

            /// The same for display.
            pub(crate) fn says(&self) -> String {
                match self { $(Self::$variant(plan) => plan.says(),)* }
            }

            /// Completes or undoes it, from whichever step it reached.
            pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
                match self { $(Self::$variant(plan) => Box::pin(plan.resume(admin, job)).await,)* }
            }
        }

        /// The steps of an operation in the journal, in order; `None` if there is no such operation. Tests
        /// use it to interrupt an operation at every step.
        #[must_use]
        pub fn steps_of(operation: &str) -> Option<&'static [&'static str]> {
            $(if operation.eq_ignore_ascii_case(stringify!($variant)) {
                return Some(crate::steps::steps::<$plan>());
            })*
            None
        }

        $(impl From<$plan> for Plan {
            fn from(plan: $plan) -> Self {
                Self::$variant(plan)
            }
        })*
    };
}

plans! {
    Create(CreatePlan);
    Remove(RemovePlan);
    Move(MovePlan);
    Copy(CopyPlan);
    Backup(BackupPlan);
    Release(ReleasePlan);
    Restore(RestorePlan);
    Rename(RenamePlan);
    Swap(SwapPlan);
    Convert(ConvertPlan);
    Edit(EditPlan);
    Snapshot(SnapshotPlan);
}

/// How an interrupted operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was completed.
    Completed,
    /// It was undone.
    Undone,
}

/// A step's name in the journal.
fn word_of(step: &impl Serialize) -> String {
    match serde_json::to_value(step) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".into(),
    }
}
