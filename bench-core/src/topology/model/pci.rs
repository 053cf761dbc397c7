//! PCI addresses.

use std::fmt;

/// A PCI address: domain, bus, device, function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// The domain; four hexadecimal digits as a rule, more on some platforms.
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device (slot), 0 to 31.
    pub device: u8,
    /// The function, 0 to 7.
    pub function: u8,
}

impl PciAddress {
    /// Reads `00000000:18:00.0`, `0000:18:00.0` or `18:00.0`.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, function) = text.rsplit_once('.')?;
        let (rest, device) = rest.rsplit_once(':')?;
        let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
        let hex = |digits: &str, most: usize| {
            let fits = !digits.is_empty() && digits.len() <= most;
            let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
            (fits && all).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
        };
        let small = |digits: &str| hex(digits, 2).and_then(|value| u8::try_from(value).ok());
        let address = Self {
            domain: hex(domain, 8)?,
            bus: small(bus)?,
            device: small(device)?,
            function: small(function)?,
        };
        (address.device < 32 && address.function < 8 && bus.len() == 2 && device.len() == 2)
            .then_some(address)
    }

    /// The address that a predictable interface name such as `rocep90s0f1` stands for.
    ///
    /// `p` is the bus and `s` the slot, both decimal, `f` the function and a leading `P` the domain. Only a hint:
    /// names can be changed at will.
    pub fn of_predictable_name(name: &str) -> Option<Self> {
        let (before, rest) = name.rsplit_once('p')?;
        let (bus, rest) = split_digits(rest);
        let (device, rest) = split_digits(rest.strip_prefix('s')?);
        let function = match rest.strip_prefix('f') {
            Some(rest) => split_digits(rest).0.parse().ok()?,
            None => 0,
        };
        let domain = match before.rsplit_once('P') {
            Some((_, digits)) => digits.parse().ok()?,
            None => 0,
        };
        let address = Self { domain, bus: bus.parse().ok()?, device: device.parse().ok()?, function };
        (address.device < 32 && address.function < 8).then_some(address)
    }

    /// Whether both are functions of one card.
    pub fn is_same_card(self, other: Self) -> bool {
        (self.domain, self.bus, self.device) == (other.domain, other.bus, other.device)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_the_forms_of_all_tools() {
        let address = PciAddress { domain: 0, bus: 0x18, device: 0, function: 1 };
        for text in ["00000000:18:00.1", "0000:18:00.1", "18:00.1"] {
            assert_eq!(PciAddress::parse(text), Some(address), "{text}");
        }
        assert_eq!(address.to_string(), "0000:18:00.1");
        for text in ["", "18:00", "18:20.0", "18:00.8", "fe80:0:0.1", "1:2.3", "x8:00.0"] {
            assert_eq!(PciAddress::parse(text), None, "{text}");
        }
    }

    #[test]
    fn predictable_names_tell_the_card() {
        let of = PciAddress::of_predictable_name;
        let (first, second) = (of("rocep90s0f0").unwrap(), of("rocep90s0f1").unwrap());
        assert_eq!(first.to_string(), "0000:5a:00.0");
        assert!(first.is_same_card(second));
        assert_eq!(of("ibP2p3s0").map(|a| a.to_string()).as_deref(), Some("0002:03:00.0"));
        for name in ["mlx5_0", "ens11f0", "p", "ps", "eno1np0", "ibp300s0"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
