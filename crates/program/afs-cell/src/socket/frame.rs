//! Codec of frames: a length, a kind and bytes, bounded in both directions.

use std::io::{self, Read, Write};

/// Writes a frame: four bytes with the length of the rest, one byte of kind, the parts.
pub(crate) fn write_frame(to: &mut impl Write, kind: u8, parts: &[&[u8]], max: usize) -> io::Result<()> {
    let length = 1 + parts.iter().map(|p| p.len()).sum::<usize>();
    let short = u32::try_from(length).ok().filter(|_| length <= max).ok_or_else(|| damaged("too long"))?;
    let mut frame = Vec::with_capacity(4 + length);
    frame.extend_from_slice(&short.to_be_bytes());
    frame.push(kind);
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    to.write_all(&frame)?;
    to.flush()
}

/// Reads the next frame: its kind and its contents, together at most `max` bytes; `None` at the end of the stream.
pub(crate) fn read_frame(from: &mut impl Read, max: usize) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut length = [0; 4];
    // The stream may end between two frames, but not within one.
    if read_some(from, &mut length[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut length[1..])?;
    let length = u32::from_be_bytes(length) as usize;
    if length == 0 || length > max {
        return Err(damaged("a frame of an impossible length"));
    }
    let mut kind = [0];
    from.read_exact(&mut kind)?;
    let mut body = Vec::new();
    from.take(length as u64 - 1).read_to_end(&mut body)?;
    if body.len() != length - 1 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((kind[0], body)))
}

/// Reads again after a signal. It interrupts a read with a time-out even where reads are restarted (signal(7)).
fn read_some(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Error of a frame with invalid contents.
pub(crate) fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing {
    use super::*;

    /// The bytes in a frame, the first of them as its kind.
    pub(crate) fn framed(bytes: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        if let Some((kind, body)) = bytes.split_first() {
            let _ = write_frame(&mut wire, *kind, &[body], bytes.len());
        }
        wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of which each read is interrupted by a signal once.
    struct Interrupted<'a>(&'a [u8], bool);

    impl Read for Interrupted<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(into) }
        }
    }

    #[test]
    fn a_signal_is_no_error_of_a_frame() {
        let wire = fuzzing::framed(b"\x07frame");
        let mut stream = Interrupted(&wire, false);
        assert_eq!(read_frame(&mut stream, 100).unwrap(), Some((7, b"frame".to_vec())));
        assert_eq!(read_frame(&mut stream, 100).unwrap(), None);
    }
}
