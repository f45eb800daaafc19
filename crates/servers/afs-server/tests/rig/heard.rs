//! Callback service of a test client, which records its calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::{BoxFuture, Caller, EnvExt, EnvRef, Table};
use afs_wire::cb::{self, InterfaceAddr};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Capabilities, capability};
use afs_wire::ids::{Fid, Uuid};
use afs_wire::rpc::{Opcode, Request, ServiceId};

/// A callback that a client received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    TellMe,
    WhoAreYou,
    Reset(Uuid),
    OldReset,
    Break(Vec<Fid>),
    /// A lock is free.
    Free(Fid),
    Probe,
    Recall(Fid, fs::LeaseId),
}

/// What a client does about a recall before it replies.
pub type OnRecall = Arc<dyn Fn(cb::RecallLease) -> BoxFuture<'static, Result<(), AbortCode>> + Send + Sync>;

/// Behaviour of a client towards a server that calls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// Supports all calls, and translated error numbers.
    Modern,
    /// As Andrew's own clients: keeps rights until they are broken, too.
    KeepsRights,
    /// Supports `WhoAreYou` and nothing newer.
    Old,
    /// Has no identity.
    Nameless,
    /// Has no callback service at all.
    Deaf,
    /// Never replies to a request for its identity.
    Mute,
}

pub struct Ears {
    pub uuid: Uuid,
    pub heard: Arc<Mutex<Vec<Heard>>>,
    /// Delay of the reply to a break.
    pub delay: Arc<Mutex<Duration>>,
    pub env: EnvRef,
    pub on_recall: Arc<Mutex<Option<OnRecall>>>,
}

impl Ears {
    async fn hear_recall(&self, call: cb::RecallLease) -> Result<(), AbortCode> {
        self.note(Heard::Recall(call.dir, call.lease));
        let on_recall = self.on_recall.lock().unwrap().clone();
        match on_recall {
            Some(on_recall) => on_recall(call).await,
            None => Ok(()),
        }
    }

    async fn hear_break(&self, call: cb::CallBack) {
        let delay = *self.delay.lock().unwrap();
        if !delay.is_zero() {
            self.env.sleep(delay).await;
        }
        match (call.fids.first(), call.callbacks.first()) {
            (Some(fid), Some(&fs::CallBack::LOCK_FREE)) => self.note(Heard::Free(*fid)),
            _ => self.note(Heard::Break(call.fids.into_vec())),
        }
    }

    fn note(&self, heard: Heard) {
        self.heard.lock().unwrap().push(heard);
    }

    fn addresses(&self) -> InterfaceAddr {
        InterfaceAddr { uuid: self.uuid, ..InterfaceAddr::default() }
    }
}

pub fn service(ears: Arc<Ears>, manner: Manner) -> Table<Ears> {
    let table = Table::new(ServiceId::CALLBACK, ears)
        .call::<cb::CallBack, _, _, AbortCode>(|ears: Arc<Ears>, _: Caller, call: cb::CallBack| async move {
            ears.hear_break(call).await;
            Ok(())
        })
        .call::<cb::InitCallBackState, _, _, AbortCode>(|ears: Arc<Ears>, _: Caller, _| async move {
            ears.note(Heard::OldReset);
            Ok(())
        })
        .call::<cb::InitCallBackState3, _, _, AbortCode>(
            |ears: Arc<Ears>, _: Caller, call: cb::InitCallBackState3| async move {
                ears.note(Heard::Reset(call.server));
                Ok(())
            },
        )
        .call::<cb::RecallLease, _, _, AbortCode>(
            |ears: Arc<Ears>, _: Caller, call: cb::RecallLease| async move { ears.hear_recall(call).await },
        )
        .call::<cb::Probe, _, _, AbortCode>(|ears: Arc<Ears>, _: Caller, _| async move {
            ears.note(Heard::Probe);
            Ok(())
        })
        .call::<cb::ProbeUuid, _, _, AbortCode>(
            |ears: Arc<Ears>, _: Caller, call: cb::ProbeUuid| async move {
                ears.note(Heard::Probe);
                if call.client == ears.uuid { Ok(()) } else { Err(AbortCode(1)) }
            },
        )
        .call::<cb::WhoAreYou, _, _, AbortCode>(|ears: Arc<Ears>, _: Caller, _| async move {
            ears.note(Heard::WhoAreYou);
            Ok(cb::InterfaceAddrReply { addresses: ears.addresses() })
        })
        .call::<cb::TellMeAboutYourself, _, _, AbortCode>(move |ears: Arc<Ears>, _: Caller, _| async move {
            ears.note(Heard::TellMe);
            let keeps = if manner == Manner::KeepsRights { capability::RIGHTS_BREAKS } else { 0 };
            let capabilities = Capabilities::first_of([capability::ERROR_TRANSLATION | keeps]);
            Ok(cb::TellMeAboutYourselfReply { addresses: ears.addresses(), capabilities })
        });
    let unknown = |table: Table<Ears>, opcode| table.refuse(Opcode(opcode), AbortCode::RXGEN_OPCODE);
    match manner {
        Manner::Modern | Manner::KeepsRights | Manner::Deaf => table,
        Manner::Old => unknown(table, cb::TellMeAboutYourself::OPCODE),
        Manner::Mute => {
            table.call::<cb::TellMeAboutYourself, _, _, AbortCode>(|_, _, _| std::future::pending())
        }
        Manner::Nameless => unknown(unknown(table, cb::TellMeAboutYourself::OPCODE), cb::WhoAreYou::OPCODE),
    }
}
