//! The fencing token that every command of a coordinator carries.

use std::fmt;

use serde::{Deserialize, Serialize};

/// (term, elector), ordered lexicographically. A command whose epoch is lower than the highest seen is refused.
///
/// The derived order compares `term` first and `elector` second, which is total because both are integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch {
    /// The election term; grows with every election and every restart of a lone elector.
    pub term: u64,
    /// Position of the elected elector in the roster.
    pub elector: u16,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.elector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_term_beats_any_elector() {
        assert!(Epoch { term: 2, elector: 0 } > Epoch { term: 1, elector: 4 });
        assert!(Epoch { term: 2, elector: 1 } > Epoch { term: 2, elector: 0 });
    }
}
