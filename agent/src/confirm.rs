//! Confirming the roster of a Service with plain address records: they have no order and no names, so every agent
//! collects them by itself, and nobody begins before all agents have come to one and the same set of `--expect`
//! addresses.
//!
//! ```text
//!  state       event                                   next        what it leads to
//!  collecting  saw exactly N                           confirming  start the agent with that set
//!  collecting  saw another number, or nothing          collecting
//!  confirming  saw the same N, or nothing              confirming
//!  confirming  saw another set of N                    confirming  start the agent anew, with the new set
//!  confirming  saw another number                      collecting  stop the agent: it vouches for no set
//!  confirming  the electors have begun                 confirmed   the set holds from now on
//!  collecting  the time is over                        failed      exit 3: what was seen
//!  confirming  the time is over                        failed      exit 3: who has not confirmed
//! ```
//! What makes it one set: an agent is admitted by another only with the same hash of the set (the hello), and with
//! `Quorum::Everybody` no elector begins before every node of its set is connected with it.

use std::net::IpAddr;

use bench_core::roster::{Peer, RosterError, peers_from_addresses};

/// What one agent knows of the set.
#[derive(Debug)]
pub struct Confirming {
    port: u16,
    expect: usize,
    state: State,
    /// What was seen last: addresses, or why there are none.
    seen: Result<Vec<IpAddr>, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Collecting,
    Confirming(Vec<Peer>),
    Confirmed,
}

/// What an event leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Stay,
    /// Start the agent with this set, in place of the one with the set before.
    Start(Vec<Peer>),
    /// Stop the agent.
    Stop,
}

impl Confirming {
    /// Nothing is known of a Service that should have `expect` addresses, whose agents serve `port`.
    pub fn new(port: u16, expect: usize) -> Self {
        Self { port, expect, state: State::Collecting, seen: Err("nothing was asked yet".to_owned()) }
    }

    /// DNS was asked.
    ///
    /// # Errors
    /// [`RosterError`] if that many addresses can be no roster, now or later.
    pub fn saw(&mut self, seen: Result<Vec<IpAddr>, String>) -> Result<Act, RosterError> {
        let peers = match &seen {
            Ok(addresses) => match peers_from_addresses(addresses, self.port, self.expect) {
                Ok(peers) => Some(peers),
                Err(RosterError::Count { .. }) => None,
                Err(error) => return Err(error),
            },
            Err(_) => {
                // A name server that is silent for a moment takes nothing back.
                if self.state == State::Collecting {
                    self.seen = seen;
                }
                return Ok(Act::Stay);
            }
        };
        self.seen = seen;
        Ok(match (&self.state, peers) {
            (State::Confirmed, _) | (State::Collecting, None) => Act::Stay,
            (State::Confirming(set), Some(peers)) if *set == peers => Act::Stay,
            (State::Collecting | State::Confirming(_), Some(peers)) => {
                self.state = State::Confirming(peers.clone());
                Act::Start(peers)
            }
            (State::Confirming(_), None) => {
                self.state = State::Collecting;
                Act::Stop
            }
        })
    }

    /// The electors of the set have begun.
    pub fn begun(&mut self) {
        match &self.state {
            State::Confirming(_) => self.state = State::Confirmed,
            State::Collecting | State::Confirmed => {}
        }
    }

    /// Whether the set holds.
    pub fn is_confirmed(&self) -> bool {
        self.state == State::Confirmed
    }

    /// Why it does not, when the time is over. `unconfirmed` names who has not confirmed, as far as the agent knows.
    pub fn failure(&self, host: &str, unconfirmed: &str) -> String {
        let seen = match &self.seen {
            Ok(addresses) => {
                let mut own: Vec<IpAddr> = addresses.iter().map(IpAddr::to_canonical).collect();
                own.sort_unstable();
                own.dedup();
                let named: Vec<String> = own.iter().take(NAMED).map(ToString::to_string).collect();
                let more = own.len().saturating_sub(NAMED);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                format!("found {} addresses, expected {}: {}{more}", own.len(), self.expect, named.join(", "))
            }
            Err(reason) => reason.clone(),
        };
        match &self.state {
            State::Collecting => {
                format!("the Service {host}: {seen}; wait until every pod is up, or correct --expect")
            }
            State::Confirming(_) | State::Confirmed => format!(
                "the Service {host}: {seen}; not every node has confirmed this set: {unconfirmed}; see what the \
                 agents there say, and whether their name server says the same"
            ),
        }
    }
}

/// Addresses named in a message.
const NAMED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn set(last: &[u8]) -> Result<Vec<IpAddr>, String> {
        Ok(last.iter().map(|n| Ipv4Addr::new(10, 0, 0, *n).into()).collect())
    }

    fn saw(confirming: &mut Confirming, last: &[u8]) -> Act {
        confirming.saw(set(last)).expect("a possible roster")
    }

    fn started(act: &Act) -> Vec<&str> {
        match act {
            Act::Start(peers) => peers.iter().map(|peer| peer.node.as_str()).collect(),
            other => panic!("started, not {other:?}"),
        }
    }

    #[test]
    fn collecting_goes_on_until_there_are_exactly_as_many_as_expected() {
        let mut confirming = Confirming::new(7777, 3);
        assert_eq!(saw(&mut confirming, &[1, 2]), Act::Stay);
        assert_eq!(saw(&mut confirming, &[1, 2, 3, 4]), Act::Stay);
        assert_eq!(confirming.saw(Err("no answer".to_owned())), Ok(Act::Stay));
        assert_eq!(started(&saw(&mut confirming, &[3, 1, 2, 1])), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    }

    #[test]
    fn all_agents_come_to_the_same_order_whatever_order_their_name_server_gives() {
        let order = |last: &[u8]| saw(&mut Confirming::new(7777, 3), last);
        assert_eq!(order(&[1, 2, 3]), order(&[3, 1, 2]));
    }

    #[test]
    fn another_set_is_confirmed_anew_and_another_number_is_vouched_for_by_nobody() {
        let mut confirming = Confirming::new(7777, 2);
        saw(&mut confirming, &[1, 2]);
        assert_eq!(saw(&mut confirming, &[2, 1]), Act::Stay);
        assert_eq!(confirming.saw(Err("no answer".to_owned())), Ok(Act::Stay));
        assert_eq!(started(&saw(&mut confirming, &[1, 3])), ["10.0.0.1", "10.0.0.3"]);
        assert_eq!(saw(&mut confirming, &[1, 2, 3]), Act::Stop);
        confirming.begun();
        assert!(!confirming.is_confirmed(), "nothing can have begun without an agent");
        assert_eq!(started(&saw(&mut confirming, &[1, 3])), ["10.0.0.1", "10.0.0.3"]);
    }

    #[test]
    fn what_has_begun_holds_whatever_the_name_server_says_later() {
        let mut confirming = Confirming::new(7777, 2);
        saw(&mut confirming, &[1, 2]);
        confirming.begun();
        assert!(confirming.is_confirmed());
        assert_eq!(saw(&mut confirming, &[1, 2, 3]), Act::Stay);
        assert_eq!(saw(&mut confirming, &[1, 3]), Act::Stay);
    }

    #[test]
    fn a_failure_names_what_was_seen_and_who_has_not_confirmed() {
        let mut confirming = Confirming::new(7777, 3);
        saw(&mut confirming, &[4, 1]);
        let text = confirming.failure("mesh", "");
        assert!(text.contains("found 2 addresses, expected 3: 10.0.0.1, 10.0.0.4"), "{text}");
        saw(&mut confirming, &[4, 1, 2]);
        let text = confirming.failure("mesh", "10.0.0.2 has not joined");
        assert!(text.contains("10.0.0.2 has not joined") && text.contains("found 3"), "{text}");
    }
}
