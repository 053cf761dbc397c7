//! What each port is for: the facts of the ports and the distances to the GPUs together.
//!
//! | distances | facts lean to compute | lean away | tell nothing |
//! |---|---|---|---|
//! | shares a switch with a GPU | compute, proven | not compute, as sure as the facts | compute, likely |
//! | shares none, but is nearest to a GPU without a better one | compute, as sure as the facts | not compute, as sure | compute, assumed |
//! | shares none, while others do | storage or front-end, likely | the same, likely | the same, likely |
//! | its GPU's row may be cut off | compute, as sure as the facts | not compute, as sure | unknown |
//! | nobody shares one | compute, as sure as the facts | not compute, as sure | compute, assumed |
//! | hidden | compute, as sure as the facts | not compute, as sure | unknown |
//! | none known | compute, as sure as the facts | not compute, as sure | unknown |

use crate::topology::model::{Distance, HcaId, Inventory, LinkLayer, Port};
use crate::topology::words::shortened;

use super::cards::cards;
use super::groups::{Groups, Lean, guess_layer};
use super::tree::{Locality, PciTree, distance, locality};
use super::{Confidence, PortAssessment, Role};

/// The role of every port, in the order of the HCAs.
pub(super) fn roles(inventory: &Inventory, tree: PciTree) -> Vec<PortAssessment> {
    let groups = Groups::new(inventory);
    let places: Vec<Locality> = inventory.hca_ids().map(|id| locality(inventory, tree, id)).collect();
    let somebody_near = places.iter().any(|place| matches!(place, Locality::Near { .. }));
    let beside = beside_the_rails(inventory, somebody_near);
    let needed = needed(inventory, tree, &places);
    let mut out = Vec::new();
    for id in inventory.hca_ids() {
        let hca = inventory.hca(id);
        let rule = Rule {
            inventory,
            tree,
            place: &places[id.0],
            somebody_near,
            aside: beside.contains(&id),
            needed: needed.contains(&id),
        };
        if hca.ports.is_empty() {
            out.push(rule.decide(id, None, Lean::Nowhere));
        }
        for port in &hca.ports {
            out.push(rule.decide(id, Some(port), groups.lean(id, port.number)));
        }
    }
    out
}

/// Where no HCA is near a GPU: ports of one card, if the others are just as many as the GPUs.
fn beside_the_rails(inventory: &Inventory, somebody_near: bool) -> Vec<HcaId> {
    let doubled: Vec<HcaId> = cards(inventory).into_iter().flat_map(|card| card.hcas).collect();
    let others = inventory.hcas.len() - doubled.len();
    let fits = !somebody_near && !inventory.gpus.is_empty() && others == inventory.gpus.len();
    if fits { doubled } else { Vec::new() }
}

/// The HCAs that are nearest to a GPU which shares a switch with none, and nearer to it than those that others share.
fn needed(inventory: &Inventory, tree: PciTree, places: &[Locality]) -> Vec<HcaId> {
    let mut found = Vec::new();
    if tree != PciTree::Shown {
        return found;
    }
    for gpu in &inventory.gpus {
        let ways: Vec<(HcaId, Distance)> =
            inventory.hca_ids().filter_map(|id| Some((id, distance(inventory, gpu.index, id)?))).collect();
        let Some(best) = ways.iter().map(|(_, distance)| *distance).min() else { continue };
        let nearest: Vec<HcaId> =
            ways.iter().filter(|(_, distance)| *distance == best).map(|(id, _)| *id).collect();
        let rail_among = nearest.iter().any(|id| matches!(places[id.0], Locality::Near { .. }));
        if !rail_among && best < Distance::Sys {
            found.extend(nearest);
        }
    }
    found
}

/// What decides over the ports of one HCA.
struct Rule<'a> {
    inventory: &'a Inventory,
    tree: PciTree,
    place: &'a Locality,
    somebody_near: bool,
    aside: bool,
    /// Nothing is nearer to some GPU, which shares a switch with no HCA.
    needed: bool,
}

impl Rule<'_> {
    fn decide(&self, hca: HcaId, port: Option<&Port>, lean: Lean) -> PortAssessment {
        let (role, confidence, reason) = match (port.is_some_and(|port| port.default_route), &lean) {
            (true, Lean::Other(..) | Lean::Nowhere) => {
                (Role::FrontEnd, Confidence::Proven, "the default route leaves by it".to_owned())
            }
            (true, Lean::Compute(..)) | (false, _) => self.by_place(port, lean),
        };
        PortAssessment { hca, port: port.map(|port| port.number), role, confidence, reason }
    }

    fn by_place(&self, port: Option<&Port>, lean: Lean) -> (Role, Confidence, String) {
        match self.place {
            Locality::Near { distance, gpus } => {
                let text = format!("{distance} to {}", self.gpus(gpus));
                match lean {
                    Lean::Compute(_, why) => (Role::Compute, Confidence::Proven, format!("{text}; {why}")),
                    Lean::Other(sure, why) => (other(port), sure, format!("{why}, though {text}")),
                    Lean::Nowhere => (Role::Compute, Confidence::Likely, text),
                }
            }
            Locality::Far { best } if self.somebody_near && self.needed => self.by_facts(port, lean, |_| {
                let why =
                    format!("{best} at best, but a GPU that shares a switch with no HCA has nothing nearer");
                (Role::Compute, Confidence::Assumed, why)
            }),
            Locality::Far { best } if self.somebody_near => {
                let text = format!("{best} at best: no GPU shares its switch, while other HCAs share one");
                match lean {
                    Lean::Compute(_, why) => {
                        (apart(port), Confidence::Likely, format!("{text}, though it is one of {why}"))
                    }
                    Lean::Other(_, why) => (other(port), Confidence::Likely, format!("{text}; {why}")),
                    Lean::Nowhere => (Role::StorageOrFrontEnd, Confidence::Likely, text),
                }
            }
            Locality::Far { best } => self.by_facts(port, lean, |rule| rule.undecided(*best)),
            Locality::Open { best } => self.by_facts(port, lean, |_| {
                let best = best.map_or_else(String::new, |best| format!("{best} at best so far; "));
                let why = format!("{best}the rows of GPUs that it may be near to are missing");
                (Role::Unknown, Confidence::Unknown, why)
            }),
            Locality::NotShown => self.by_facts(port, lean, Self::hidden),
        }
    }

    /// The facts of the port decide; if they tell nothing, `otherwise` does.
    fn by_facts(
        &self,
        port: Option<&Port>,
        lean: Lean,
        otherwise: impl Fn(&Self) -> (Role, Confidence, String),
    ) -> (Role, Confidence, String) {
        match lean {
            Lean::Compute(sure, why) => (Role::Compute, sure, why),
            Lean::Other(sure, why) => (other(port), sure, why),
            Lean::Nowhere => otherwise(self),
        }
    }

    fn undecided(&self, best: Distance) -> (Role, Confidence, String) {
        if self.aside {
            return set_aside();
        }
        let why = match self.inventory.hcas.len() {
            1 => format!("the only HCA; {best} at best"),
            _ => format!("{best} at best, and no HCA is nearer to a GPU: nothing sets it apart"),
        };
        (Role::Compute, Confidence::Assumed, why)
    }

    fn hidden(&self) -> (Role, Confidence, String) {
        match self.tree {
            PciTree::Hidden(distance) => {
                let why = format!("every distance is {distance}, and nothing else is known of it");
                (Role::Unknown, Confidence::Unknown, why)
            }
            PciTree::Separate if self.aside => set_aside(),
            PciTree::Separate => {
                let why = "every distance is SYS, as is normal on Grace; nothing sets it apart".to_owned();
                (Role::Compute, Confidence::Assumed, why)
            }
            PciTree::NotShown | PciTree::Shown => {
                let why = "neither its distance to the GPUs nor its link layer and rate are known".to_owned();
                (Role::Unknown, Confidence::Unknown, why)
            }
        }
    }

    fn gpus(&self, gpus: &[u16]) -> String {
        let label = |index: &u16| {
            let gpu = self.inventory.gpus.iter().find(|gpu| gpu.index == *index);
            gpu.map_or_else(|| format!("GPU{index}"), |gpu| gpu.label.clone())
        };
        shortened(&gpus.iter().map(label).collect::<Vec<_>>())
    }
}

fn set_aside() -> (Role, Confidence, String) {
    let why = "shares a card with another port, and the other HCAs are as many as the GPUs".to_owned();
    (Role::StorageOrFrontEnd, Confidence::Assumed, why)
}

/// What a port is that differs from the compute fabric: InfiniBand beside it is storage as a rule, Ethernet the
/// front-end.
fn other(port: Option<&Port>) -> Role {
    match port.and_then(|port| port.link_layer.or_else(|| guess_layer(port))) {
        Some(LinkLayer::InfiniBand) => Role::Storage,
        Some(LinkLayer::Ethernet) => Role::FrontEnd,
        None => Role::StorageOrFrontEnd,
    }
}

/// What a port is that is like the rails but stands apart from the GPUs.
fn apart(port: Option<&Port>) -> Role {
    match port.and_then(|port| port.link_layer) {
        Some(LinkLayer::InfiniBand) => Role::Storage,
        Some(LinkLayer::Ethernet) | None => Role::StorageOrFrontEnd,
    }
}
