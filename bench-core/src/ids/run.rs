//! Fixed-size identities that print as hexadecimal: runs, boots, meshes and content hashes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub [u8; $bytes]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $name {
            type Err = HexError;

            fn from_str(text: &str) -> Result<Self, HexError> {
                let mut bytes = [0; $bytes];
                parse_hex(text, &mut bytes)?;
                Ok(Self(bytes))
            }
        }
    };
}

hex_id!(
    /// 128 bits chosen by the client: submitting the same run twice starts it once.
    RunId, 16
);
hex_id!(
    /// 128 random bits made when an agent starts: tells two processes with one name apart.
    BootId, 16
);
hex_id!(
    /// Hash of the mesh certificate authority's public key: which mesh key a node holds.
    MeshId, 16
);
hex_id!(
    /// Hash of the build: all members of a mesh run the same one.
    BuildHash, 16
);
hex_id!(
    /// Hash of roster, electors and mesh generation.
    RosterHash, 16
);
hex_id!(
    /// Hash of a plan as submitted.
    PlanHash, 16
);

/// The generation of a mesh: raised by hand when a majority of the electors is lost for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A text that is not the hexadecimal form of an identity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not {digits} hexadecimal digits")]
pub struct HexError {
    /// The refused text, cut to 80 characters.
    pub text: String,
    /// How many digits the identity has.
    pub digits: usize,
}

fn parse_hex(text: &str, bytes: &mut [u8]) -> Result<(), HexError> {
    let error = || HexError { text: text.chars().take(80).collect(), digits: bytes.len() * 2 };
    if text.len() != bytes.len() * 2 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(error());
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16)
            .expect("two characters that were checked to be hexadecimal digits");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_survives_its_text_form() {
        let id = RunId([0xa5; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("a5".parse::<RunId>().is_err());
        assert!("é".repeat(16).parse::<RunId>().is_err());
    }
}
