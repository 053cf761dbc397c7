//! Why a text or a set of flags is not a plan.

use thiserror::Error;

use super::{Pattern, SizesError, TestKind};
use crate::ids::RailId;

/// Why a text or a set of flags is not a plan. Each names the key and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The text is not TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the text, from 1.
        line: usize,
        /// What the parser met.
        message: String,
    },
    /// A key that does not exist, or a value that its key does not take.
    #[error("line {line}, {key}: {message}")]
    Key {
        /// Line of the text, from 1.
        line: usize,
        /// The key with the tables around it, such as `gates.min_bandwidth`.
        key: String,
        /// What is wrong, with what would be right.
        message: String,
    },
    /// A value outside its range.
    #[error("{key} is {value}, it can be {low} to {high}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The lower end.
        low: String,
        /// The upper end.
        high: String,
    },
    /// A list without entries.
    #[error("{key} is empty, name at least one or leave the key out")]
    Empty {
        /// The key.
        key: &'static str,
    },
    /// A list of sizes that names one twice or too many.
    #[error("{key}: {source}")]
    Sizes {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        source: SizesError,
    },
    /// More cases than a plan may have.
    #[error("the plan has {cases} cases, it can have {max}: name fewer tests or sizes")]
    TooManyCases {
        /// How many it has.
        cases: usize,
        /// The most there may be.
        max: usize,
    },
    /// Two ways of naming the tests at once.
    #[error("the plan has both tests and [[test]] tables, use one of them")]
    TwoTestLists,
    /// A parameter that this kind of test has not got.
    #[error("{key} does not apply to {kind}, leave it out or put it into [[test]] tables of other tests")]
    DoesNotApply {
        /// The key.
        key: &'static str,
        /// The kind of test.
        kind: TestKind,
    },
    /// More work requests at once than may be under way.
    #[error(
        "rdma.post_list is {post_list} and rdma.depth {depth}: hand over at most as many as may be under way"
    )]
    PostListAboveDepth {
        /// Work requests handed over at once.
        post_list: u16,
        /// Messages under way.
        depth: u16,
    },
    /// Both directions at once in a pattern that has its own directions.
    #[error("duplex both is for pattern pairs only, {pattern} fixes who sends to whom: use duplex one_way")]
    Duplex {
        /// The pattern.
        pattern: Pattern,
    },
    /// A key of `rails_of` that cannot be used.
    #[error("rails_of.{key:?}: {message}")]
    RailsOf {
        /// The key.
        key: String,
        /// What is wrong with it.
        message: String,
    },
    /// The same rail twice.
    #[error("rails names {rail} twice, name each rail once")]
    RepeatedRail {
        /// The rail.
        rail: RailId,
    },
    /// The same test twice.
    #[error("tests names {kind} twice, name each once or use [[test]] tables that differ")]
    RepeatedTest {
        /// The kind of test.
        kind: TestKind,
    },
}
