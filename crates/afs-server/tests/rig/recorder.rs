//! The audit log of a test cell.

use std::io;
use std::sync::Mutex;

use afs_rpc::sync::lock;
use afs_server::AuditSink;
use afs_server::audit::AuditRecord;

/// Keeps what was recorded until a test looks: `who call object -> code` a line.
#[derive(Default)]
pub struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0))
    }
}

impl AuditSink for Recorder {
    fn write(&self, records: &[AuditRecord]) -> io::Result<()> {
        let line = |record: &AuditRecord| match record {
            AuditRecord::Call(call) => {
                let who = call.identity.principal().map_or("-".into(), ToString::to_string);
                format!("{who} {} {} -> {}", call.call, call.object, call.code.0)
            }
            AuditRecord::Lost(count) => format!("lost {count}"),
        };
        lock(&self.0).extend(records.iter().map(line));
        Ok(())
    }
}
