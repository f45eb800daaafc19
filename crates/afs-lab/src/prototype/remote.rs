//! A client's connections to servers that are other processes.

use super::call::{Call, Refusal, Reply, ServerNumber};
use super::cell::Connections;
use super::wire::{Head, Request, broken};
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, Write};
use std::net::{SocketAddr, TcpStream};

/// Connections, made at the first call; a process of the server's serves each until it is closed.
pub(super) struct Remote {
    servers: Vec<SocketAddr>,
    open: BTreeMap<ServerNumber, BufReader<TcpStream>>,
}

impl Remote {
    pub(super) fn to(servers: Vec<SocketAddr>) -> Self {
        Self { servers, open: BTreeMap::new() }
    }

    fn connection(&mut self, at: ServerNumber) -> Result<BufReader<TcpStream>, Refusal> {
        if let Some(open) = self.open.remove(&at) {
            return Ok(open);
        }
        let address = self.servers.get(at.0 as usize).ok_or(Refusal::Absent)?;
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }
}

impl Connections for Remote {
    fn call(&mut self, at: ServerNumber, path: &str, call: Call<'_>) -> Result<Reply, Refusal> {
        let mut connection = self.connection(at)?;
        // A connection on which an exchange broke off is not used again.
        let reply = exchange(&mut connection, path, call)?;
        self.open.insert(at, connection);
        reply
    }
}

/// Sends a call, and reads the reply to its end.
fn exchange(
    connection: &mut BufReader<TcpStream>,
    path: &str,
    call: Call<'_>,
) -> Result<Result<Reply, Refusal>, Refusal> {
    let (mut data, mut length) = (None, 0);
    if let Call::Store(mut copy) = call {
        copy.rewind()?;
        length = copy.metadata()?.len();
        data = Some(copy.take(length));
    }
    let stream = connection.get_mut();
    stream.write_all(&Request::of(path, call, length).bytes()?)?;
    if let Some(mut data) = data {
        io::copy(&mut data, stream)?;
    }
    let head = Head::read(connection)?;
    Ok(match (head, call) {
        (Head::Refused(why), _) => Err(why),
        (Head::Valid(is_valid), _) => Ok(Reply::Valid(is_valid)),
        (Head::Status(stamp), _) => Ok(Reply::Status(stamp)),
        (Head::Names(length), _) => Ok(Reply::Names(names(&mut connection.take(length))?)),
        (Head::Data(stamp, length), Call::Fetch(mut copy)) => {
            if io::copy(&mut connection.take(length), &mut copy)? < length {
                return Err(Refusal::Io(io::ErrorKind::UnexpectedEof.into()));
            }
            Ok(Reply::Status(stamp))
        }
        (Head::Data(..), _) => return Err(broken("data for a call that has none").into()),
    })
}

fn names(from: &mut dyn Read) -> io::Result<Vec<String>> {
    let text = io::read_to_string(from)?;
    Ok(text.split_terminator('\0').map(str::to_owned).collect())
}
