//! Tables 1 and 2 and Figure 2, from streams that take turns.

use super::PACKETS;
use super::chunks::{Readings, read};
use super::link::Link;
use super::streams::Stream;
use crate::error::LabError;
use crate::sheet::{Cell, Sheet};
use crate::spread::Spread;
use std::sync::atomic::{AtomicBool, Ordering};

/// Payload of a datagram that fills an Ethernet packet, one of 9 KB, and the largest.
const DATAGRAMS: [usize; 3] = [1472, 9000, 65_507];
/// Frames of the data path: those of the paper's packets, and the largest.
const FRAMES: [usize; 3] = [9 << 10, 64 << 10, 256 << 10];

/// All that was measured on a link.
pub struct Layers {
    rates: Vec<(Stream, Spread)>,
    in_turn: Spread,
    beside: Spread,
}

/// Streams by all layers, by turns, and readings of chunks.
///
/// # Errors
/// The peer is not reached, or `stop` became true.
pub fn measure(link: &Link, quick: bool, stop: &AtomicBool) -> Result<Layers, LabError> {
    let (runs, bytes, readings) = if quick { (2, 16 << 20, 20) } else { (5, 512 << 20, 400) };
    let rx = (0..PACKETS.len()).map(Stream::Rx);
    let path = FRAMES.into_iter().map(|frame| Stream::Path(frame, false));
    let all = DATAGRAMS.into_iter().map(Stream::Udp).chain([Stream::Tcp]).chain(rx).chain(path);
    let all: Vec<Stream> = all.chain([Stream::Path(FRAMES[2], true)]).collect();
    let mut rates = vec![Vec::new(); all.len()];
    for _ in 0..runs {
        for (stream, rates) in all.iter().zip(&mut rates) {
            if stop.load(Ordering::Acquire) {
                return Err(LabError::Stopped);
            }
            rates.push(stream.rate(link, bytes)?);
        }
    }
    let readings = (0..readings).map(|_| read(link)).collect::<Result<Vec<_>, _>>()?;
    let spread =
        |of: fn(&Readings) -> std::time::Duration| Spread::of(readings.iter().map(of)).ok_or(LabError::Lost);
    let (in_turn, beside) = (spread(|one| one.in_turn)?, spread(|one| one.beside)?);
    let rates =
        all.into_iter().zip(rates).filter_map(|(stream, rates)| Some((stream, Spread::of_values(rates)?)));
    Ok(Layers { rates: rates.collect(), in_turn, beside })
}

/// Table 1: Mbit/s of each layer.
#[must_use]
pub fn table1(layers: &Layers) -> Sheet {
    let mut sheet = Sheet::new(&[("test", "")]);
    sheet.add_spread("mbps", "Mbit/s");
    // Of the data path the largest frames alone.
    let is_told = |stream: Stream| !matches!(stream, Stream::Path(frame, _) if frame != FRAMES[2]);
    for (stream, rate) in layers.rates.iter().filter(|(stream, _)| is_told(*stream)) {
        let row = [Cell::Text(stream.name())].into_iter().chain(Cell::of_spread(Some(*rate), 1.0));
        sheet.rows.push(row.collect());
    }
    sheet
}

/// Table 2: Mbit/s of Rx over UDP, and of what takes its place for the bytes of files.
#[must_use]
pub fn table2(layers: &Layers) -> Sheet {
    let mut sheet = Sheet::new(&[("test", ""), ("packet_kb", "KB")]);
    sheet.add_spread("mbps", "Mbit/s");
    for (stream, rate) in &layers.rates {
        let (test, bytes) = match stream {
            Stream::Rx(packets) => ("Rx/UDP", PACKETS[*packets]),
            Stream::Path(frame, false) => ("data path/TCP", *frame),
            _ => continue,
        };
        let kilobytes = Cell::rounded(bytes as f64 / 1024.0, 10.0);
        sheet
            .rows
            .push([test.into(), kilobytes].into_iter().chain(Cell::of_spread(Some(*rate), 1.0)).collect());
    }
    sheet
}

/// Figure 2: time for five chunks, relative to that of a reader that takes turns with its fetches.
#[must_use]
pub fn figure2(layers: &Layers) -> Sheet {
    let mut sheet = Sheet::new(&[("case", ""), ("time_for_five_chunks", "relative")]);
    sheet.add_spread("elapsed", "ms");
    let cases = [("reader and fetch in turn", layers.in_turn), ("fetch ahead of the reader", layers.beside)];
    for (case, times) in cases {
        let relative = Cell::rounded(times.median / layers.in_turn.median, 100.0);
        let row = [case.into(), relative].into_iter().chain(Cell::of_spread(Some(times.times(1e3)), 1e3));
        sheet.rows.push(row.collect());
    }
    sheet
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::super::Peer;
    use super::*;

    #[test]
    fn every_layer_carries_bytes_and_the_tables_have_them() {
        let peer = Peer::listen(([127, 0, 0, 1], 0).into()).unwrap();
        let link = Link::open(peer.address()).unwrap();
        let layers = measure(&link, true, &AtomicBool::new(false)).unwrap();
        let (one, two, figure) = (table1(&layers), table2(&layers), figure2(&layers));
        assert_eq!([one.rows.len(), two.rows.len(), figure.rows.len()], [9, 6, 2]);
        for sheet in [&one, &two, &figure] {
            assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()));
        }
        assert!(one.rows.iter().all(|row| row[1].number() > Some(0.0)), "{one:?}");
        let stopped = measure(&link, true, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(LabError::Stopped)));
    }

    #[test]
    fn a_link_to_nothing_is_an_error() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(matches!(Link::open(free), Err(LabError::Network { .. })));
    }
}
