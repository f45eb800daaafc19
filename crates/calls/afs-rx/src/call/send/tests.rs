//! Tests of the retransmission queue: scripts of sends and acks.

use super::*;
use crate::packet::{Ack, AckTrailer, reason};

fn stream(packets: usize, window: u32) -> SendStream {
    let mut stream = SendStream::new();
    stream.begin(window, 10, 100);
    stream.write(&mut Bytes::from(vec![7; packets]), usize::MAX);
    stream.finish();
    stream
}

/// Sends all that may be sent, one byte a packet; returns the numbers.
fn burst(stream: &mut SendStream, now: Instant) -> Vec<u32> {
    let mut seqs = Vec::new();
    loop {
        let serial = stream.next_transmission as u32 + 1;
        match stream.pick(1) {
            Pick::Nothing => return seqs,
            Pick::Again(seq, _) => seqs.push(stream.retransmit(now, serial, seq).unwrap().seq),
            Pick::New(len) => {
                let (_, data, is_last) = stream.cut(len);
                seqs.push(stream.send_new(now, serial, (data, is_last)).seq);
            }
        }
    }
}

fn ack(stream: &mut SendStream, now: Instant, first: u32, soft: &[u8]) -> AckResult {
    let previous = first + soft.len() as u32;
    let trailer = AckTrailer { window: Some(stream.window), ..AckTrailer::default() };
    let kind = reason::IDLE;
    let ack = Ack { buffer_space: 0, skew_max: 0, first, previous, serial: 0, reason: kind, soft, trailer };
    assert_eq!(stream.freshness(&ack), Freshness::Fresh);
    let mut rtt = Rtt::new(Duration::from_millis(100));
    stream.handle_ack(now, &ack, stream.ack_serial + 1, &mut rtt)
}

#[test]
fn the_smaller_window_rules() {
    assert_eq!(burst(&mut stream(99, 4), Instant(0)), [1, 2, 3, 4]);
    assert_eq!(burst(&mut stream(99, 40), Instant(0)), (1..=10).collect::<Vec<_>>());
}

#[test]
fn an_overtaken_packet_is_sent_again_once() {
    let mut stream = stream(10, 40);
    burst(&mut stream, Instant(0));
    ack(&mut stream, Instant(1), 2, &[0, 1, 1]);
    assert_eq!(burst(&mut stream, Instant(1)), []);
    assert!(stream.reorder_at.is_set(), "the hole is watched");
    ack(&mut stream, Instant(2), 2, &[0, 1, 1, 1]);
    assert_eq!(burst(&mut stream, Instant(2)), [2]);
    ack(&mut stream, Instant(3), 2, &[0, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(burst(&mut stream, Instant(3)), []);
    ack(&mut stream, Instant(4), 11, &[]);
    assert!(stream.is_delivered());
    assert!(!stream.resend_at.is_set());
}

#[test]
fn a_timeout_resends_everything_slowly() {
    let mut stream = stream(4, 40);
    burst(&mut stream, Instant(0));
    assert_eq!(stream.handle_timeout(), retransmit::Timeout::Resend);
    assert_eq!(burst(&mut stream, Instant(1)), [1]);
    ack(&mut stream, Instant(2), 2, &[]);
    assert_eq!(burst(&mut stream, Instant(2)).len(), 2);
}

/// Sends one packet to a peer a millisecond away that says nothing for 12 s; returns when each copy was sent.
fn unanswered(stream: &mut SendStream, rtt: &Rtt) -> Vec<Duration> {
    let (mut now, mut sent_at) = (Instant::ZERO, Vec::new());
    while now < Instant::ZERO + Duration::from_secs(12) {
        sent_at.extend(burst(stream, now).iter().map(|_| now - Instant::ZERO));
        stream.arm(now, rtt, true);
        now = stream.resend_at;
        stream.handle_timeout();
    }
    sent_at
}

#[test]
fn a_silent_peer_is_sent_less_and_less() {
    let mut rtt = Rtt::new(Duration::from_millis(600));
    rtt.sample(Duration::from_millis(1));
    rtt.sample_turnaround(Duration::from_millis(1));
    let sent_at = unanswered(&mut stream(1, 40), &rtt);
    let gaps: Vec<u128> = sent_at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    assert_eq!(gaps, (0..gaps.len()).map(|doublings| 6 << doublings).collect::<Vec<_>>());
    assert_eq!(sent_at.len(), 11);
}

#[test]
fn a_probe_declares_nothing_lost() {
    let mut stream = stream(9, 40);
    burst(&mut stream, Instant(0));
    let mut rtt = Rtt::new(Duration::from_millis(600));
    rtt.sample(Duration::from_millis(1));
    stream.arm(Instant(0), &rtt, true);
    assert_eq!(stream.handle_timeout(), retransmit::Timeout::Probe);
    assert_eq!((burst(&mut stream, Instant(1)), stream.congestion_window()), (vec![9], 10));
}

#[test]
fn a_soft_ack_can_be_taken_back() {
    let mut stream = stream(3, 40);
    burst(&mut stream, Instant(0));
    ack(&mut stream, Instant(1), 1, &[1, 1, 1]);
    assert!(stream.is_delivered());
    ack(&mut stream, Instant(2), 1, &[1, 0, 1]);
    assert!(!stream.is_delivered());
    assert_eq!(burst(&mut stream, Instant(2)), [2]);
}

#[test]
fn a_head_that_is_final_is_not_sent_to_a_receiver_that_has_forgotten_it() {
    let mut stream = stream(3, 40);
    burst(&mut stream, Instant(0));
    ack(&mut stream, Instant(1), 1, &[1, 1, 1]);
    stream.end_head();
    ack(&mut stream, Instant(2), 1, &[0, 0, 0]);
    assert_eq!((burst(&mut stream, Instant(2)), stream.can_send(1)), (vec![], false));
    ack(&mut stream, Instant(3), 1, &[1, 0, 1]);
    assert_eq!(burst(&mut stream, Instant(3)), [2], "who has the head gets the rest");
}

/// A restarted server has nothing of the call; packets that reach it are acked from the beginning.
#[test]
fn a_receiver_that_has_forgotten_is_sent_everything_again() {
    let mut stream = stream(7, 40);
    burst(&mut stream, Instant(0));
    ack(&mut stream, Instant(1), 1, &[1; 7]);
    stream.ack_serial = 15;
    let make = |first, previous| Ack {
        buffer_space: 0,
        skew_max: 0,
        first,
        previous,
        serial: 0,
        reason: reason::REQUESTED,
        soft: &[],
        trailer: AckTrailer::default(),
    };
    let forgetful = make(2, 1);
    assert_eq!(stream.freshness(&forgetful), Freshness::Fresh);
    stream.handle_ack(Instant(2), &forgetful, 2, &mut Rtt::new(Duration::from_millis(100)));
    assert_eq!(burst(&mut stream, Instant(2)), [2, 3, 4, 5, 6, 7]);
    ack(&mut stream, Instant(3), 8, &[]);
    assert!(stream.is_delivered());
}

#[test]
fn a_list_that_is_short_takes_nothing_back() {
    let mut stream = stream(7, 40);
    burst(&mut stream, Instant(0));
    ack(&mut stream, Instant(1), 1, &[1; 7]);
    let trailer = AckTrailer::default();
    let kind = reason::PING_RESPONSE;
    let short = Ack {
        buffer_space: 0,
        skew_max: 0,
        first: 3,
        previous: 7,
        serial: 0,
        reason: kind,
        soft: &[1],
        trailer,
    };
    stream.handle_ack(Instant(2), &short, 99, &mut Rtt::new(Duration::from_millis(100)));
    assert_eq!(burst(&mut stream, Instant(2)), []);
    assert!(stream.is_delivered());
}

#[test]
fn a_closed_window_is_probed() {
    let mut stream = stream(9, 2);
    burst(&mut stream, Instant(0));
    ack(&mut stream, Instant(1), 1, &[1, 1]);
    stream.arm(Instant(1), &Rtt::new(Duration::from_millis(100)), true);
    assert!(stream.resend_at.is_set());
    assert_eq!(stream.handle_timeout(), retransmit::Timeout::Ping);
}

#[test]
fn old_and_impossible_acks() {
    let mut stream = stream(9, 40);
    burst(&mut stream, Instant(0));
    ack(&mut stream, Instant(1), 3, &[0, 1]);
    let trailer = AckTrailer::default();
    let make = |first, previous| Ack {
        buffer_space: 0,
        skew_max: 0,
        first,
        previous,
        serial: 0,
        reason: 8,
        soft: &[],
        trailer,
    };
    assert_eq!(stream.freshness(&make(2, 9)), Freshness::Stale);
    assert_eq!(stream.freshness(&make(3, 4)), Freshness::Stale);
    assert_eq!(stream.freshness(&make(3, 5)), Freshness::Fresh);
    assert_eq!(stream.freshness(&make(11, 9)), Freshness::BeyondSent);
    stream.ack_previous = 3 + 40;
    assert_eq!(stream.freshness(&make(3, 4)), Freshness::Fresh, "a serial from an old kernel");
}
