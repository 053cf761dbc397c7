//! `lspci -vvv`: access control (ACS) of bridges.

use super::Lines;
use super::scan;
use crate::topology::model::{Acs, Inventory, PciAddress};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    device(lines.get(at)).is_some() || control(lines.get(at)).is_some()
}

/// The flags of an `ACSCtl:` line.
fn control(line: &str) -> Option<&str> {
    line.trim().strip_prefix("ACSCtl:")
}

/// `18:00.0 3D controller: NVIDIA ...` at the margin.
fn device(line: &str) -> Option<(PciAddress, &str)> {
    let (address, title) = line.split_once(' ')?;
    let title = title.trim();
    let named = title.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric()) && title.contains(": ");
    named.then(|| scan::bus(address)).flatten().map(|address| (address, title))
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let Some((address, title)) = device(lines.get(at)) else {
        // grep leaves the lines without their devices.
        if let Some(flags) = control(lines.get(at)) {
            *seen = true;
            learn(inventory, None, "", flags);
        }
        return at + 1;
    };
    let mut end = lines.len();
    for here in at + 1..lines.len() {
        let line = lines.get(here);
        if line.trim().is_empty() || !line.starts_with([' ', '\t']) {
            end = here;
            break;
        }
        let Some(flags) = control(line) else { continue };
        *seen = true;
        learn(inventory, Some(address), title, flags);
    }
    end
}

fn learn(inventory: &mut Inventory, address: Option<PciAddress>, title: &str, flags: &str) {
    let redirects = ["ReqRedir+", "CmpltRedir+"].iter().any(|flag| flags.contains(flag));
    let known = address.is_some() && inventory.acs.iter().any(|acs| acs.address == address);
    if !known && inventory.acs.len() < MAX_BRIDGES {
        let title = title.chars().take(MAX_TITLE).collect();
        inventory.acs.push(Acs { address, title, redirects });
    }
}

/// Bridges that are kept.
const MAX_BRIDGES: usize = 1024;
/// Characters of a title that are kept.
const MAX_TITLE: usize = 120;
