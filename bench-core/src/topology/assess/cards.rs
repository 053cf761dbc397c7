//! Which HCAs are ports of one card.

use crate::topology::model::{Device, Distance, HcaId, Inventory, PciAddress};

use super::tree::distance;

/// HCAs that share a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    /// The HCAs, in order; at least two.
    pub(super) hcas: Vec<HcaId>,
    /// Why they are taken for one card.
    pub(super) why: CardSign,
}

/// What shows that HCAs share a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CardSign {
    /// One system image GUID.
    Guid,
    /// Functions of one PCI address.
    Address,
    /// Their names stand for functions of one address.
    Name,
    /// PIX to each other and to no GPU: one card, or one switch without GPUs.
    Distance,
}

/// The cards with more than one HCA.
pub(super) fn cards(inventory: &Inventory) -> Vec<Card> {
    let nearest: Vec<Option<Distance>> = inventory
        .hca_ids()
        .map(|id| inventory.gpus.iter().filter_map(|gpu| distance(inventory, gpu.index, id)).min())
        .collect();
    let mut cards: Vec<Card> = Vec::new();
    for id in inventory.hca_ids() {
        let joined = cards.iter_mut().find_map(|card| {
            let sign = card.hcas.iter().find_map(|other| sign(inventory, &nearest, *other, id))?;
            Some((card, sign))
        });
        match joined {
            Some((card, sign)) => {
                card.hcas.push(id);
                card.why = sign;
            }
            None => cards.push(Card { hcas: vec![id], why: CardSign::Distance }),
        }
    }
    cards.retain(|card| card.hcas.len() > 1);
    cards
}

fn sign(inventory: &Inventory, nearest: &[Option<Distance>], a: HcaId, b: HcaId) -> Option<CardSign> {
    let (x, y) = (inventory.hca(a), inventory.hca(b));
    let is_guid = |guid: &&String| guid.bytes().any(|b| b != b'0');
    if let (Some(x), Some(y)) =
        (x.system_guid.as_ref().filter(is_guid), y.system_guid.as_ref().filter(is_guid))
    {
        return (x == y).then_some(CardSign::Guid);
    }
    if let (Some(x), Some(y)) = (x.bus, y.bus) {
        return x.is_same_card(y).then_some(CardSign::Address);
    }
    let named = |name: Option<&str>| name.and_then(PciAddress::of_predictable_name);
    if let (Some(x), Some(y)) = (named(x.name.as_deref()), named(y.name.as_deref())) {
        return x.is_same_card(y).then_some(CardSign::Name);
    }
    let beside = inventory.links.pcie(Device::Hca(a), Device::Hca(b)) == Some(Distance::Pix);
    let apart = [a, b].iter().all(|id| nearest[id.0].is_none_or(|best| best > Distance::Pix));
    (beside && apart).then_some(CardSign::Distance)
}
