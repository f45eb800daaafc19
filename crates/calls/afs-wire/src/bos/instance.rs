//! Calls on the servers that an overseer runs, its instances.

use super::{InstanceStatus, RunState, SERVICE, Text};
use crate::rpc::Nothing;

/// [`GetInstanceParm::index`] of the notifier program, instead of a command.
pub const NOTIFIER: i32 = 999;

calls! {
    service SERVICE;

    /// Creates an instance and starts it.
    80 "CreateBnode" CreateBnode {
        /// `simple`, `cron`, `fs` or `dafs`.
        kind: Text,
        instance: Text,
        /// Commands, as many as the kind requires; the others are empty.
        command1: Text,
        command2: Text,
        command3: Text,
        command4: Text,
        command5: Text,
        /// Program to run when a process ends, or `__NONOTIFIER__`.
        notifier: Text,
    } -> Nothing;

    /// Removes an instance that does not run.
    81 "DeleteBnode" DeleteBnode { instance: Text } -> Nothing;

    /// Starts or stops an instance permanently.
    82 "SetStatus" SetStatus { instance: Text, goal: RunState } -> Nothing;

    /// Reads whether an instance runs.
    83 "GetStatus" GetStatus { instance: Text } -> GetStatusReply {
        state: RunState,
        /// Additional information; often empty.
        auxiliary: Text,
    };

    /// Reads an instance's name. Beyond the last the call fails with `BZDOM`.
    84 "EnumerateInstance" EnumerateInstance {
        /// From 0.
        index: i32,
    } -> EnumerateInstanceReply { instance: Text };

    /// Reads an instance's kind and history.
    85 "GetInstanceInfo" GetInstanceInfo { instance: Text } -> GetInstanceInfoReply {
        kind: Text,
        status: InstanceStatus,
    };

    /// Reads one of an instance's commands. Beyond the last the call fails with `BZDOM`.
    86 "GetInstanceParm" GetInstanceParm {
        instance: Text,
        /// From 0; or [`NOTIFIER`].
        index: i32,
    } -> GetInstanceParmReply { command: Text };

    /// Starts or stops an instance until the overseer starts again.
    98 "SetTStatus" SetTStatus { instance: Text, goal: RunState } -> Nothing;

    /// Stops everything until the overseer starts again.
    99 "ShutdownAll" ShutdownAll {} -> Nothing;

    /// Stops everything and starts the instances whose goal is to run.
    100 "RestartAll" RestartAll {} -> Nothing;

    /// Starts the instances whose goal is to run.
    101 "StartupAll" StartupAll {} -> Nothing;

    /// Stops everything and restarts the overseer itself.
    103 "ReBozo" ReBozo {} -> Nothing;

    /// Stops an instance and starts it.
    104 "Restart" Restart { instance: Text } -> Nothing;

    /// Returns when every instance has reached its goal.
    113 "WaitAll" WaitAll {} -> Nothing;

    /// Reads which of an instance's processes failed.
    114 "GetInstanceStrings" GetInstanceStrings { instance: Text } -> GetInstanceStringsReply {
        /// Empty if none did.
        error_name: Text,
        spare1: Text,
        spare2: Text,
        spare3: Text,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::encode_call;
    use crate::xdr::{Decode, DecodeError, Encode};

    #[test]
    fn a_question_and_its_answer() {
        let instance = Text::new(b"fs".as_slice()).unwrap();
        let call = encode_call(&GetInstanceParm { instance: instance.clone(), index: NOTIFIER });
        assert_eq!(call, [0, 0, 0, 86, 0, 0, 0, 2, b'f', b's', 0, 0, 0, 0, 3, 231]);
        let reply = GetInstanceInfoReply { kind: instance, status: InstanceStatus::default() };
        assert_eq!(reply.to_bytes().len(), 8 + InstanceStatus::WIRE_LEN);
    }

    #[test]
    fn texts_have_256_bytes_at_most() {
        let mut wire = 257u32.to_bytes();
        wire.extend([b'a'; 260]);
        let refused = DeleteBnode::from_bytes(&wire);
        assert!(matches!(refused, Err(DecodeError::TooLong { limit: 256, .. })), "{refused:?}");
    }
}
