//! How much measuring time a plan may take.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::{exact_duration, parse_duration};

/// Upper bound on the expected measuring time. Above it, the schedule samples which pairs it measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Budget {
    /// None up to 32 nodes, 10 minutes above.
    #[default]
    Auto,
    /// Every pair, however long it takes.
    Off,
    /// This long.
    Time(Duration),
}

impl Budget {
    /// The bound for a roster of `nodes`; `None` measures every pair.
    pub fn limit(self, nodes: u16) -> Option<Duration> {
        match self {
            Self::Auto => (nodes > AUTO_NODES).then_some(AUTO_TIME),
            Self::Off => None,
            Self::Time(time) => Some(time),
        }
    }
}

impl fmt::Display for Budget {
    /// The form that is read back exactly: `auto`, `off`, `600s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Off => f.pad("off"),
            Self::Time(time) => f.pad(&exact_duration(*time)),
        }
    }
}

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            time => parse_duration(time).map(Self::Time).map_err(|_| BudgetError { text: text.to_owned() }),
        }
    }
}

/// A text that is not a budget.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a budget such as 10m, 1h30m, off or auto")]
pub struct BudgetError {
    /// The refused text.
    pub text: String,
}

/// Most nodes that are measured whole by default: 62 rounds a rail and case, about two and a half minutes.
const AUTO_NODES: u16 = 32;

/// Default budget above that. The smallest sample of the default tests on 8 rails takes five minutes, so this leaves
/// twice the least number of partners.
const AUTO_TIME: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rosters_above_32_nodes_have_a_budget_of_their_own() {
        assert_eq!(Budget::Auto.limit(32), None);
        assert_eq!(Budget::Auto.limit(33), Some(Duration::from_secs(600)));
        assert_eq!(Budget::Off.limit(4096), None);
        assert_eq!(Budget::Time(Duration::from_secs(5)).limit(2), Some(Duration::from_secs(5)));
    }

    #[test]
    fn budgets_survive_their_text_form() {
        for budget in [Budget::Auto, Budget::Off, Budget::Time(Duration::from_millis(90_500))] {
            assert_eq!(budget.to_string().parse(), Ok(budget));
        }
        assert_eq!("10m".parse(), Ok(Budget::Time(Duration::from_secs(600))));
        assert!("never".parse::<Budget>().is_err());
    }
}
