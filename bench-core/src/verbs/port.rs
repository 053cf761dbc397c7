//! Whether a port can carry RDMA, and if not, why and what to do.

use crate::topology::{LinkLayer, PhysicalState, PortState};

/// What is asked of a port before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortView {
    /// The device and, if it is not the first, its port.
    pub name: String,
    /// What runs on the wire.
    pub link_layer: LinkLayer,
    /// The logical state.
    pub state: PortState,
    /// The physical state.
    pub physical: PhysicalState,
    /// The LID.
    pub lid: u16,
    /// The subnet manager's LID.
    pub sm_lid: u16,
}

/// A port that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortProblem {
    /// What is wrong, with the port's name.
    pub text: String,
    /// What to do.
    pub remedy: String,
}

/// Looks whether a port can be used now.
///
/// # Errors
/// [`PortProblem`]: not active, or on InfiniBand without LID or subnet manager.
pub fn check_port(port: &PortView) -> Result<(), PortProblem> {
    let name = &port.name;
    let problem = |text: String, remedy: &str| Err(PortProblem { text, remedy: remedy.to_owned() });
    match (&port.state, port.link_layer) {
        (PortState::Active, LinkLayer::Ethernet) => Ok(()),
        (PortState::Active, LinkLayer::InfiniBand) => match (port.lid, port.sm_lid) {
            (0 | 0xffff, _) => problem(
                format!("{name} is active but has no LID ({})", port.lid),
                "no subnet manager has configured the port: look whether opensm (or the switch's) runs, with `sminfo`",
            ),
            (_, 0) => problem(
                format!("{name} knows no subnet manager (SM LID 0)"),
                "look whether a subnet manager runs on this fabric, with `sminfo`; in a VM ask for the port's SM LID",
            ),
            _ => Ok(()),
        },
        (PortState::Init | PortState::Armed, LinkLayer::InfiniBand) => problem(
            format!(
                "{name} is in state {}: its link is up, but no subnet manager has activated it",
                port.state.name()
            ),
            "start a subnet manager on this fabric (opensm, or the switch's), or look at its log",
        ),
        (PortState::Down | PortState::Init | PortState::Armed | PortState::Other(_), _) => problem(
            format!("{name} is {} (physical state: {})", port.state.name(), port.physical.name()),
            down_remedy(port),
        ),
    }
}

fn down_remedy(port: &PortView) -> &'static str {
    match (&port.physical, port.link_layer) {
        (PhysicalState::Disabled, LinkLayer::Ethernet) => {
            "set its network device up (`ip link set DEVICE up`); if it is, look at cable and switch port"
        }
        (PhysicalState::Disabled, LinkLayer::InfiniBand) => {
            "enable it (`ibportstate`), or look at the switch port"
        }
        (PhysicalState::Polling, _) => {
            "it finds no peer: check the cable, the transceiver and the switch port"
        }
        (PhysicalState::LinkUp | PhysicalState::Other(_), _) => {
            "look at the port with `ibstat` and `rdma link`, and at the kernel's log"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(
        link_layer: LinkLayer,
        state: PortState,
        physical: PhysicalState,
        lid: u16,
        sm_lid: u16,
    ) -> PortView {
        PortView { name: "mlx5_3".to_owned(), link_layer, state, physical, lid, sm_lid }
    }

    #[test]
    fn an_active_port_passes() {
        for port in [
            port(LinkLayer::InfiniBand, PortState::Active, PhysicalState::LinkUp, 12, 1),
            port(LinkLayer::Ethernet, PortState::Active, PhysicalState::LinkUp, 0, 0),
        ] {
            assert_eq!(check_port(&port), Ok(()));
        }
    }

    #[test]
    fn what_is_wrong_with_a_port_is_named_with_the_port() {
        use LinkLayer::{Ethernet, InfiniBand};
        use PhysicalState::{Disabled, LinkUp, Polling};
        for (port, text, remedy) in [
            (port(InfiniBand, PortState::Active, LinkUp, 0, 1), "has no LID (0)", "sminfo"),
            (port(InfiniBand, PortState::Active, LinkUp, 0xffff, 1), "has no LID (65535)", "sminfo"),
            (port(InfiniBand, PortState::Active, LinkUp, 4, 0), "SM LID 0", "subnet manager"),
            (port(InfiniBand, PortState::Init, LinkUp, 0, 0), "state init", "opensm"),
            (port(InfiniBand, PortState::Down, Polling, 0, 0), "down (physical state: polling)", "cable"),
            (
                port(Ethernet, PortState::Down, Disabled, 0, 0),
                "down (physical state: disabled)",
                "ip link set",
            ),
        ] {
            let problem = check_port(&port).expect_err(text);
            assert!(problem.text.contains(text) && problem.text.contains("mlx5_3"), "{problem:?}");
            assert!(problem.remedy.contains(remedy), "{problem:?}");
        }
    }
}
