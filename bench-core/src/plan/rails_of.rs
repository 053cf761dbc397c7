//! Which devices a plan takes as the rails of which nodes, in place of what they choose themselves.
//!
//! ```toml
//! [rails_of]
//! "gpu-[001-064]" = ["mlx5_5", "mlx5_6"]
//! gpu-065 = ["ens1f0", "10.0.1.65"]
//! "*" = ["mlx5_0", "mlx5_1"]                 # every node that no other key names
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PlanError, bounds};
use crate::ids::NodeId;
use crate::roster::expand;

/// The devices that a plan takes as rails, rail 0 first: RDMA devices, network devices or addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RailsOf {
    /// Of every node that is not named.
    everybody: Option<Vec<String>>,
    /// Of the named ones.
    named: BTreeMap<NodeId, Vec<String>>,
}

impl RailsOf {
    /// What a node's rails are; `None` leaves it to the node.
    pub fn of(&self, node: &NodeId) -> Option<&[String]> {
        self.named.get(node).or(self.everybody.as_ref()).map(Vec::as_slice)
    }

    /// How many rails a node has by this; `None` if it names nobody's. Whether all have as many is seen once all have told.
    pub fn count(&self) -> Option<u16> {
        self.everybody.iter().chain(self.named.values()).map(|devices| devices.len() as u16).next()
    }

    /// A node that is named and not in the roster.
    pub fn stranger(&self, roster: &[NodeId]) -> Option<&NodeId> {
        self.named.keys().find(|node| !roster.contains(node))
    }

    /// Expands the names.
    pub(super) fn from_spec(spec: BTreeMap<String, Vec<String>>) -> Result<Self, PlanError> {
        let mut rails = Self::default();
        for (key, devices) in spec {
            check(&key, &devices)?;
            if key == EVERYBODY {
                rails.everybody = Some(devices);
                continue;
            }
            let names = expand(&key).map_err(|error| invalid(&key, &error.to_string()))?;
            for name in names {
                let node = NodeId::new(&name).map_err(|error| invalid(&key, &error.to_string()))?;
                if rails.named.insert(node, devices.clone()).is_some() {
                    return Err(invalid(&key, &format!("{name} is named by another key too")));
                }
            }
        }
        Ok(rails)
    }

    /// Back to the form of the text, one key a node.
    pub(crate) fn to_spec(&self) -> Option<BTreeMap<String, Vec<String>>> {
        let everybody = self.everybody.iter().map(|devices| (EVERYBODY.to_owned(), devices.clone()));
        let named = self.named.iter().map(|(node, devices)| (node.to_string(), devices.clone()));
        let spec: BTreeMap<_, _> = everybody.chain(named).collect();
        (!spec.is_empty()).then_some(spec)
    }
}

fn check(key: &str, devices: &[String]) -> Result<(), PlanError> {
    match devices.len() {
        0 => Err(invalid(key, "it names no device: name at least one, or leave the node out")),
        n if n > bounds::MAX_RAILS => {
            Err(invalid(key, &format!("{n} devices, it can have {}", bounds::MAX_RAILS)))
        }
        _ if devices.iter().any(|name| name.is_empty() || name.len() > bounds::MAX_DEVICE_NAME) => {
            Err(invalid(key, &format!("a device's name has 1 to {} characters", bounds::MAX_DEVICE_NAME)))
        }
        _ => Ok(()),
    }
}

fn invalid(key: &str, message: &str) -> PlanError {
    PlanError::RailsOf { key: key.to_owned(), message: message.to_owned() }
}

/// The key for every node that no other key names.
const EVERYBODY: &str = "*";
