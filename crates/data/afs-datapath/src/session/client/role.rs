//! What a client does with the messages of a drive.

use crate::frame::Message;
use crate::session::Lost;
use crate::session::driver::Role;
use crate::session::link::Link;
use crate::session::request::Reply;

pub(super) struct ClientRole;

impl Role for ClientRole {
    fn message(&mut self, link: &Link, message: Message) -> Result<(), Lost> {
        let now = link.now();
        link.with(|state| match message {
            Message::Announce { request, length, file_length } => {
                state.take_reply(request, Reply::Announced { length, file_length }, now)
            }
            Message::Stored { request, ticket } => state.take_reply(request, Reply::Stored(ticket), now),
            Message::Performed { request, reply } => state.take_reply(request, Reply::Performed(reply), now),
            Message::Failed { request, failure } => state.take_failure(request, failure),
            Message::Credit { request, bytes } => state.take_credit(request, bytes, now),
            _ => Err(Lost::Violation("a message that drives do not send")),
        })
    }
}
