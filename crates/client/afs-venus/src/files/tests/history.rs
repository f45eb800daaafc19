//! Random histories of opens, changes, stores, failures and removals, compared with a model after each step.

use afs_sim::SimRng;

use super::model::World;

/// Actions, and their relative frequencies.
const ACTIONS: &[(u64, &str)] = &[
    (8, "open"),
    (8, "write"),
    (3, "cut"),
    (2, "reach"),
    (2, "zero"),
    (2, "go direct"),
    (1, "leave direct"),
    (4, "write as the kernel"),
    (5, "store"),
    (3, "fail to store"),
    (7, "release"),
    (2, "give an open up"),
    (3, "store at another machine"),
    (3, "go on"),
    (2, "store again"),
    (1, "give up"),
    (2, "set a length without a handle"),
    (1, "fail to set a length without a handle"),
    (1, "remove"),
    (1, "lose a lock"),
];

#[test]
fn any_history_keeps_to_the_rules() {
    for seed in afs_sim::crash::seeds(150) {
        let mut rng = SimRng::new(seed);
        let mut world = World::new();
        for step in 0..150 {
            let action = draw(&mut rng);
            world.step = format!("seed {seed}, step {step}: {action}");
            world.act(action, &mut rng);
            world.check();
        }
        world.step = format!("seed {seed}, at the end");
        world.end();
    }
}

fn draw(rng: &mut SimRng) -> &'static str {
    let mut left = rng.below(ACTIONS.iter().map(|(weight, _)| weight).sum());
    for (weight, action) in ACTIONS {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return action,
        }
    }
    unreachable!("the weights are their sum")
}
