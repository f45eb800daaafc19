//! Requests of a player, and what it says about them.

use afs_datapath::capability::Group;
use afs_datapath::frame::{DATA_MAX, HandleNumber, Message, RequestId};

use super::drive_moves;
use super::drive_player::Player;
use super::heard::Expected;
use super::script::Script;
use super::watched::{SENT, VERSION};
use super::watched_chunks::STORE;

impl Player {
    pub async fn withdraw(&mut self, script: &mut Script) -> bool {
        let handle = HandleNumber(u32::from(script.byte() % 8));
        self.now().line.send(&Message::Withdraw { handle }, script).await
    }

    /// The number of a new request, which is seldom one of before.
    fn number(&mut self, script: &mut Script) -> RequestId {
        let latest = self.now().latest;
        let number = match script.below(200) {
            0 => latest,
            1 => 0,
            2 => latest + 1 + script.word() % 1000,
            _ => latest + 1,
        };
        self.now().latest = latest.max(number);
        RequestId(number)
    }

    /// The number of a request that may be in progress; seldom of one that never began.
    fn earlier(&mut self, script: &mut Script) -> Option<RequestId> {
        let latest = self.now().latest;
        match script.below(80) {
            0 => Some(RequestId(latest + 1)),
            _ if latest == 0 => None,
            _ => Some(RequestId(latest.saturating_sub(u32::from(script.byte() % 4)).max(1))),
        }
    }

    /// A handle, mostly one by which something was presented.
    fn held(&mut self, script: &mut Script) -> drive_moves::Held {
        let other = (HandleNumber(script.pick(&[0, 5, 6, 1 << 30])), Group::Chunks(STORE));
        let held: Vec<_> = self.now().held.iter().map(|(handle, group)| (*handle, *group)).collect();
        if held.is_empty() || script.once_in(30) { other } else { script.pick(&held) }
    }

    fn expect(&mut self, request: RequestId, expected: Expected) {
        // A number that was used before ends the connection; what comes until then is of the first request.
        self.now().heard.lock().unwrap().expected.entry(request.0).or_insert(expected);
    }

    pub async fn read(&mut self, script: &mut Script) -> bool {
        let (request, held) = (self.number(script), self.held(script));
        let message = drive_moves::read(request, held, script);
        if let Message::Read { fid, range, version, credit, .. } = message {
            let of = (version == VERSION).then_some((fid, range.start()));
            self.expect(request, Expected { of, credit: credit.into(), ..Expected::default() });
        }
        self.now().line.send(&message, script).await
    }

    /// A store, mostly with its bytes as far as the first credit goes.
    pub async fn store(&mut self, script: &mut Script) -> bool {
        let (request, held) = (self.number(script), self.held(script));
        let (message, total) = drive_moves::store(request, held, script);
        self.expect(request, Expected::default());
        if held.1.stream().is_some() {
            self.now().streams.insert(request.0);
        }
        self.now().line.send(&message, script).await && self.bytes_of(request, total, script).await
    }

    pub async fn perform(&mut self, script: &mut Script) -> bool {
        let (request, held) = (self.number(script), self.held(script));
        let drive = self.drive.clone();
        let message = drive_moves::perform(request, held, &drive, script);
        let Message::Perform { what, .. } = &message else { return true };
        let credit = what.outgoing().map_or(0, |(_, credit)| credit);
        self.expect(request, Expected { credit: credit.into(), ..Expected::default() });
        let total = what.incoming();
        let waits = what.first_credit(1) == 0;
        self.now().line.send(&message, script).await && (waits || self.bytes_of(request, total, script).await)
    }

    /// Bytes of a request: mostly all, which is at most the drive's window.
    async fn bytes_of(&mut self, request: RequestId, total: u64, script: &mut Script) -> bool {
        // Seldom more than there is credit for.
        let window = if script.once_in(16) { 1 << 20 } else { 512 << 10 };
        let all = usize::try_from(total).unwrap_or(usize::MAX).min(window);
        let len = match script.below(60) {
            0 => (all + 1).min(window),
            1..=8 => 0,
            9..=16 => all / 2,
            _ => all,
        };
        self.now().unsent.insert(request.0, total.saturating_sub(len as u64));
        let most = script.pick(&[DATA_MAX, DATA_MAX, 5000, 64 << 10]);
        self.now().line.data(request.0, &vec![SENT; len], most, script).await
    }

    /// More bytes of a store; seldom some that nobody waits for.
    pub async fn data(&mut self, script: &mut Script) -> bool {
        let Some(request) = self.earlier(script) else { return true };
        let left = self.now().unsent.get(&request.0).copied().unwrap_or(0);
        let wanted = u64::from(script.length());
        let len = if script.once_in(30) { wanted } else { wanted.min(left) };
        self.now().unsent.insert(request.0, left.saturating_sub(len));
        self.now().line.data(request.0, &vec![SENT; usize::try_from(len).unwrap()], DATA_MAX, script).await
    }

    /// The end of a stream, mostly of one that the client sends.
    pub async fn end(&mut self, script: &mut Script) -> bool {
        let Some(request) = self.earlier(script) else { return true };
        if !self.now().streams.contains(&request.0) && !script.once_in(30) {
            return true;
        }
        let message = Message::Announce { request, length: u64::from(script.length()), file_length: 0 };
        self.now().line.send(&message, script).await
    }

    pub async fn credit(&mut self, script: &mut Script) -> bool {
        let Some(request) = self.earlier(script) else { return true };
        let bytes = script.pick(&[0, 1, 5000, 300_000, 1 << 20, u32::MAX]);
        if let Some(expected) = self.now().heard.lock().unwrap().expected.get_mut(&request.0) {
            expected.credit += u64::from(bytes);
        }
        self.now().line.send(&Message::Credit { request, bytes }, script).await
    }

    /// A message about a request of before.
    pub async fn say(
        &mut self,
        message: impl FnOnce(RequestId, &mut Script) -> Message,
        script: &mut Script,
    ) -> bool {
        let Some(request) = self.earlier(script) else { return true };
        let message = message(request, script);
        self.now().line.send(&message, script).await
    }
}
