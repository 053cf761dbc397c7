//! The name of a node.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of a node in the roster: 1 to 63 characters of `a-z A-Z 0-9 . _ : -`, as in host names and addresses.
///
/// Cheap to clone. The order is that of the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// Checks `name` and takes it as a node's name.
    ///
    /// # Errors
    /// [`NodeIdError`] if the name is empty, too long or has a character that no host name or address has.
    pub fn new(name: &str) -> Result<Self, NodeIdError> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(NodeIdError::Length { name: name.chars().take(80).collect(), bytes: name.len() });
        }
        match name.chars().find(|c| !(c.is_ascii_alphanumeric() || "._:-".contains(*c))) {
            None => Ok(Self(name.into())),
            Some(character) => Err(NodeIdError::Character { name: name.to_owned(), character }),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for NodeId {
    type Err = NodeIdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for NodeId {
    type Error = NodeIdError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(&name)
    }
}

impl From<NodeId> for String {
    fn from(id: NodeId) -> Self {
        id.0.as_ref().to_owned()
    }
}

/// Why a text is not a node's name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NodeIdError {
    /// Empty or longer than 63 bytes.
    #[error("node name {name:?} has {bytes} bytes, a name has 1 to 63")]
    Length {
        /// The refused text, cut to 80 characters.
        name: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// A character outside `a-z A-Z 0-9 . _ : -`.
    #[error("node name {name:?} contains {character:?}, a name has letters, digits and . _ : - only")]
    Character {
        /// The refused text.
        name: String,
        /// The first character that is not allowed.
        character: char,
    },
}

/// Longest name in bytes: one DNS label (RFC 1035 section 2.3.4), which every orchestrator's node name fits.
const MAX_NAME_BYTES: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_and_addresses_are_taken_and_others_refused() {
        for good in ["gpu-001", "10.0.0.7", "fd00::1", "Node_3.rack2"] {
            assert_eq!(NodeId::new(good).map(|n| n.to_string()), Ok(good.to_owned()));
        }
        assert!(matches!(NodeId::new(""), Err(NodeIdError::Length { bytes: 0, .. })));
        assert!(matches!(NodeId::new("a b"), Err(NodeIdError::Character { character: ' ', .. })));
        assert!(matches!(NodeId::new(&"x".repeat(64)), Err(NodeIdError::Length { bytes: 64, .. })));
    }
}
