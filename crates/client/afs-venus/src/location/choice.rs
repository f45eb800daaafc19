//! Order in which the sites of a volume are called: by the rank that an administrator of the machine gave the server, and in each rank
//! the nearest reachable one first, at random among similarly near ones.
//!
//! The chosen site is kept as long as it is not clearly worse than the best of its rank, so that one server has the promise and all
//! calls, and small measurement errors change nothing (docs/protocol/client.md "4. Choosing servers" has ranks alone).

use std::time::Duration;

/// What is known of a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    /// Rank of the server; a lower one goes first.
    pub rank: u16,
    /// Round-trip time, plus a penalty after recent failures.
    pub distance: Duration,
    /// True if all of its addresses are unreachable.
    pub is_unreachable: bool,
    /// Random number of the site.
    pub draw: u64,
    /// True for the site that was chosen before.
    pub is_chosen: bool,
}

/// Smaller differences are ignored: they may be caused by a busy server or a full queue.
const NOISE: Duration = Duration::from_millis(1);

/// Indices of the candidates, best first.
pub(crate) fn order(candidates: &[Candidate]) -> Vec<usize> {
    let nearest_of = |rank: u16| {
        let of_rank = candidates.iter().filter(|one| one.rank == rank && !one.is_unreachable);
        of_rank.map(|one| one.distance).min().unwrap_or(Duration::MAX)
    };
    let key = |index: &usize| {
        let one = candidates.get(*index)?;
        let nearest = nearest_of(one.rank);
        let stays = one.is_chosen && one.distance <= nearest.saturating_mul(2).saturating_add(NOISE);
        let is_near = one.distance <= nearest.saturating_add(nearest / 2).saturating_add(NOISE);
        // Similarly near ones at random; the others by distance.
        let rest = if is_near { (Duration::ZERO, one.draw) } else { (one.distance, one.draw) };
        Some((one.is_unreachable, one.rank, !stays, !is_near, rest))
    };
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(key);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(micros: u64, draw: u64) -> Candidate {
        let distance = Duration::from_micros(micros);
        Candidate { rank: 20_000, distance, is_unreachable: false, draw, is_chosen: false }
    }

    fn ranked(rank: u16, one: Candidate) -> Candidate {
        Candidate { rank, ..one }
    }

    fn chosen(one: Candidate) -> Candidate {
        Candidate { is_chosen: true, ..one }
    }

    fn silent(one: Candidate) -> Candidate {
        Candidate { is_unreachable: true, ..one }
    }

    #[test]
    fn the_choice_as_a_table() {
        type Row = (&'static str, Vec<Candidate>, Vec<usize>);
        let table: Vec<Row> = vec![
            ("none", vec![], vec![]),
            ("the nearer", vec![site(40_000, 1), site(300, 2)], vec![1, 0]),
            ("near equals by lot", vec![site(300, 9), site(900, 2), site(500, 5)], vec![1, 2, 0]),
            ("far ones behind", vec![site(80_000, 1), site(300, 9), site(30_000, 5)], vec![1, 2, 0]),
            ("the chosen one stays", vec![site(300, 1), chosen(site(1500, 9))], vec![1, 0]),
            ("unless it is clearly worse", vec![site(300, 1), chosen(site(1700, 9))], vec![0, 1]),
            ("or silent", vec![site(90_000, 1), silent(chosen(site(300, 0)))], vec![0, 1]),
            (
                "a rank before all distances",
                vec![chosen(site(300, 1)), ranked(5000, site(90_000, 9))],
                vec![1, 0],
            ),
            ("and behind all", vec![ranked(40_000, chosen(site(300, 1))), site(90_000, 9)], vec![1, 0]),
            (
                "by distance in one rank",
                vec![ranked(9, site(90_000, 1)), site(100, 2), ranked(9, site(300, 9))],
                vec![2, 0, 1],
            ),
            (
                "a silent one behind all ranks",
                vec![silent(ranked(1, site(300, 1))), site(90_000, 9)],
                vec![1, 0],
            ),
            ("all silent", vec![silent(site(300, 5)), silent(site(300, 1))], vec![1, 0]),
        ];
        for (what, candidates, expected) in table {
            assert_eq!(order(&candidates), expected, "{what}");
        }
    }
}
