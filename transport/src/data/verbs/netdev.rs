//! What is known of the network device of a GID.

use rustix::net::{AddressFamily, SocketType, netdevice, socket};

/// A network device, as seen from this network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Netdev {
    /// It is up.
    Up,
    /// It is down.
    Down,
    /// It is in another namespace.
    Elsewhere,
}

/// Looks at the device with this index.
pub(super) fn netdev(index: u32) -> Netdev {
    let name = socket(AddressFamily::INET, SocketType::DGRAM, None)
        .ok()
        .and_then(|socket| netdevice::index_to_name(socket, index).ok());
    let Some(name) = name else {
        return Netdev::Elsewhere;
    };
    // A device without a carrier says `down`; loopback and some others say `unknown`.
    match std::fs::read_to_string(format!("/sys/class/net/{name}/operstate")) {
        Ok(state) if state.trim() == "down" => Netdev::Down,
        Ok(_) | Err(_) => Netdev::Up,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_up_and_an_unused_index_is_elsewhere() {
        assert_eq!(netdev(1), Netdev::Up);
        assert_eq!(netdev(u32::MAX), Netdev::Elsewhere);
    }
}
