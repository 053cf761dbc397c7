//! What goes wrong, and when: drawn from the seed before the simulation begins.

use std::time::Duration;

use bench_core::fabric::Rng;
use bench_core::time::Mono;

/// When a fault strikes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// At this time.
    At(Mono),
    /// When a machine gives its command of this number: it strikes the giver before the command is executed.
    Command(u64),
}

/// Whom a fault strikes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    Coordinator,
    Node(usize),
}

/// What a killed process finds when it starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Kept,
    Lost,
}

/// Which direction of a cut is silent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Both,
    /// Nothing leaves the side of the one that is struck.
    Out,
    /// Nothing reaches it.
    In,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The process ends without a word and starts again later.
    Kill { who: Who, away: Duration, state: State },
    /// The process stands still, and goes on as if nothing had been.
    Pause { who: Who, away: Duration },
    /// The network falls in two; bit n of `sides` puts node n on the side of the one that is struck.
    Cut { who: Who, sides: usize, way: Way },
    /// Messages are lost (of a thousand) and late (by up to so many microseconds).
    Lossy { loss: u64, jitter: u64 },
    /// The network is whole again.
    Mend,
}

/// Faults of one simulation.
pub(crate) fn draw(rng: &mut Rng, nodes: usize) -> Vec<(When, Fault)> {
    let mut faults = Vec::new();
    for _ in 0..1 + rng.next_u64() % 5 {
        let mut pick = |below: u64| rng.next_u64() % below;
        let millis = 500 + pick(8_000);
        let at = |millis: u64| When::At(Mono::from_nanos(millis * 1_000_000));
        let when = if pick(2) == 0 { When::Command(1 + pick(160)) } else { at(millis) };
        let away = Duration::from_millis(100 + pick(3_000));
        let who = if pick(3) == 0 { Who::Node(pick(nodes as u64) as usize) } else { Who::Coordinator };
        let state = if pick(4) == 0 { State::Lost } else { State::Kept };
        let way = [Way::Both, Way::Out, Way::In][pick(3) as usize];
        let sides = pick(1 << nodes) as usize & if pick(2) == 0 { 0 } else { usize::MAX };
        let fault = match pick(6) {
            0 | 1 => Fault::Kill { who, away, state },
            2 => Fault::Pause { who, away },
            3 | 4 => Fault::Cut { who, sides, way },
            _ => Fault::Lossy { loss: 10 + pick(250), jitter: pick(100_000) },
        };
        faults.push((when, fault));
        if let Fault::Cut { .. } | Fault::Lossy { .. } = fault {
            faults.push((at(millis + 300 + pick(3_000)), Fault::Mend));
        }
    }
    faults
}
