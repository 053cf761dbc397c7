//! The numbers of requests: which lane, and which message of it, or that it is none.
//!
//! ```text
//!  63      62       61..16          15..0
//!  receive control  message number  lane
//! ```

/// A message: the `number`-th of its lane, from 1.
#[inline]
pub(super) fn message(lane: usize, number: u64) -> u64 {
    (number << LANE_BITS) & !(RECEIVE | CONTROL) | lane as u64
}

/// A receive of a lane.
pub(super) fn receive(lane: usize) -> u64 {
    RECEIVE | lane as u64
}

/// A request beside the messages.
pub(super) fn control(lane: usize) -> u64 {
    CONTROL | lane as u64
}

/// What a completion is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Messages of this end, up to this number.
    Message(u64),
    /// A receive.
    Receive,
    /// A request beside the messages.
    Control,
}

/// What a completion is about.
#[inline]
pub(super) fn about(id: u64) -> About {
    if id & RECEIVE != 0 {
        About::Receive
    } else if id & CONTROL != 0 {
        About::Control
    } else {
        About::Message(id >> LANE_BITS)
    }
}

/// The lane of a completion.
#[inline]
pub(super) fn lane_of(id: u64) -> usize {
    (id & ((1 << LANE_BITS) - 1)) as usize
}

const LANE_BITS: u32 = 16;
const RECEIVE: u64 = 1 << 63;
const CONTROL: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_tells_what_it_was_made_of() {
        for lane in [0, 1, 255] {
            assert_eq!((about(message(lane, 77)), lane_of(message(lane, 77))), (About::Message(77), lane));
            assert_eq!((about(receive(lane)), lane_of(receive(lane))), (About::Receive, lane));
            assert_eq!((about(control(lane)), lane_of(control(lane))), (About::Control, lane));
        }
    }
}
