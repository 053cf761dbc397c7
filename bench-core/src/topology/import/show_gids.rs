//! `show_gids`.

use super::Lines;
use super::port_facts::{self, PortFact};
use super::scan;
use crate::topology::model::{Gid, Inventory};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    Entry::parse(lines.get(at)).is_some()
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    if let Some(entry) = Entry::parse(lines.get(at)) {
        *seen = true;
        entry.learn(inventory);
    }
    at + 1
}

/// One line: device, port, index, GID, and where they are an IPv4 address, a version and a network device.
struct Entry<'a> {
    name: &'a str,
    port: u16,
    gid: Gid,
    netdev: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|name| scan::is_name(name))?;
        let port = words.next()?.parse().ok()?;
        let index = words.next()?.parse().ok()?;
        let gid = words.next()?;
        let digits = gid.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
        let colons = gid.bytes().filter(|b| *b == b':').count();
        if !digits || colons < 2 || gid.len() > scan::MAX_GID {
            return None;
        }
        let mut entry = Self {
            name,
            port,
            gid: Gid { index, gid: gid.to_owned(), version: None, ipv4: None },
            netdev: None,
        };
        for word in words.take(3) {
            if word.parse::<std::net::Ipv4Addr>().is_ok() {
                entry.gid.ipv4 = Some(word.to_owned());
            } else if word.eq_ignore_ascii_case("v1") || word.eq_ignore_ascii_case("v2") {
                entry.gid.version = Some(word.to_ascii_lowercase());
            } else if scan::is_name(word) {
                entry.netdev = Some(word);
            }
        }
        Some(entry)
    }

    fn learn(self, inventory: &mut Inventory) {
        let Some(id) = inventory.hca_named(self.name) else { return };
        if let Some(port) = inventory.hca_mut(id).port_mut(self.port) {
            // The form of ibstatus has no version: this one knows more of the same index.
            port.gids.retain(|known| known.index != self.gid.index || known.version.is_some());
            port.add_gid(self.gid);
        }
        if let Some(netdev) = self.netdev {
            port_facts::learn(inventory, id, self.port, PortFact::Netdev, netdev);
        }
    }
}
