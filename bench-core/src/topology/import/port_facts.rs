//! What several tools tell of a port, each under a name of its own: here it becomes the same fact, so that what two tools
//! say can agree or contradict.

use super::scan;
use crate::topology::model::{HcaId, Inventory, LinkLayer, PhysicalState, PortState};

/// A fact of a port that more than one tool tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortFact {
    /// The logical state, as `Active` or `4: ACTIVE`.
    State,
    /// The physical state, as `LinkUp` or `5: LinkUp`.
    PhysicalState,
    /// The rate in Gb/s.
    Rate,
    /// Width and speed in brackets behind the rate.
    Lanes,
    /// The LID.
    Lid,
    /// The subnet manager's LID.
    SmLid,
    /// InfiniBand or Ethernet.
    LinkLayer,
    /// The network device.
    Netdev,
}

/// Learns what a tool wrote of a port; a value that cannot be read tells nothing.
pub(super) fn learn(inventory: &mut Inventory, id: HcaId, number: u16, fact: PortFact, value: &str) {
    match fact {
        PortFact::State => {
            inventory.learn_port(id, number, "state", PortState::parse(value), |port| &mut port.state);
        }
        PortFact::PhysicalState => {
            let state = PhysicalState::parse(value);
            inventory.learn_port(id, number, "physical state", state, |port| &mut port.physical);
        }
        PortFact::Rate => {
            if let Some(rate) = scan::gigabits(value) {
                inventory.learn_port(id, number, "rate", rate, |port| &mut port.rate);
            }
        }
        PortFact::Lanes => {
            if let Some(lanes) = scan::in_brackets(value) {
                inventory.learn_port(id, number, "lanes", lanes.to_owned(), |port| &mut port.lanes);
            }
        }
        PortFact::Lid => {
            if let Some(lid) = scan::number(value) {
                inventory.learn_port(id, number, "LID", lid, |port| &mut port.lid);
            }
        }
        PortFact::SmLid => {
            if let Some(lid) = scan::number(value) {
                inventory.learn_port(id, number, "subnet manager's LID", lid, |port| &mut port.sm_lid);
            }
        }
        PortFact::LinkLayer => {
            if let Some(layer) = LinkLayer::parse(value) {
                inventory.learn_port(id, number, "link layer", layer, |port| &mut port.link_layer);
            }
        }
        PortFact::Netdev => {
            inventory.learn_port(id, number, "network device", value.to_owned(), |port| &mut port.netdev);
        }
    }
}

/// The HCA of a capture that is cut above its name.
pub(super) fn hca_cut_above(inventory: &mut Inventory, command: &str) -> Option<HcaId> {
    let id = inventory.hca_unnamed();
    inventory.note_gap("the name of an HCA: the capture is cut above it".to_owned(), command);
    id
}
