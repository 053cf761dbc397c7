//! The election model: what the electors' consensus promises to the run machine, in virtual time and without IO.
//!
//! Terms, votes, a replicated log, a leader lease; a commit needs a majority that can be reached. An elector that lost
//! its state is mute: it votes for nobody and its answers count for nothing before the log holds its replacement. It
//! gives the outputs that the adapter of the real consensus gives: elected with what was committed before, deposed,
//! committed in log order.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use bench_core::fabric::Rng;
use bench_core::ids::Epoch;
use bench_core::time::Mono;
use coordinator::{Decisions, Entry};

/// One place of the log.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) term: u64,
    pub(crate) what: What,
}

/// What stands in a place of the log.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A leader's first item: once it commits, everything before it has.
    Begin,
    /// A decision.
    Decision(Rc<Entry>),
    /// An elector that lost its state counts again.
    Replaced { elector: usize, incarnation: u64 },
}

/// What electors say to each other.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Vote { term: u64, len: usize, last: u64 },
    Voted { term: u64, granted: bool },
    Append { term: u64, from: usize, before: u64, items: Vec<Item>, commit: usize },
    Appended { term: u64, len: usize, matched: bool, mute: Option<u64> },
}

/// What the machine of this elector must hear.
#[derive(Debug)]
pub(crate) enum Output {
    Elected(Epoch, Box<Decisions>),
    Deposed(String),
    Committed(Rc<Entry>),
}

#[derive(Debug)]
enum Role {
    Follower,
    Candidate { votes: BTreeSet<usize> },
    Leader(Leader),
}

#[derive(Debug)]
struct Leader {
    next: Vec<usize>,
    matched: Vec<usize>,
    heard: Vec<Mono>,
    begin: usize,
    told: bool,
}

/// One elector's consensus.
#[derive(Debug)]
pub(crate) struct Elector {
    me: usize,
    electors: usize,
    incarnation: u64,
    mute: bool,
    term: u64,
    voted: Option<usize>,
    log: Vec<Item>,
    commit: usize,
    applied: usize,
    decisions: Decisions,
    role: Role,
    heard: Mono,
    patience: Duration,
    outputs: Vec<Output>,
}

impl Elector {
    pub(crate) fn new(me: usize, electors: usize, now: Mono, rng: &mut Rng) -> Self {
        Self {
            me,
            electors,
            incarnation: 0,
            mute: false,
            term: 0,
            voted: None,
            log: Vec::new(),
            commit: 0,
            applied: 0,
            decisions: Decisions::default(),
            role: Role::Follower,
            heard: now,
            patience: patience(rng),
            outputs: Vec::new(),
        }
    }

    /// The process starts again with what it had on disk.
    pub(crate) fn restart(&mut self, now: Mono, rng: &mut Rng) {
        self.role = Role::Follower;
        self.outputs.clear();
        (self.commit, self.applied) = (0, 0);
        self.decisions = Decisions::default();
        self.heard = now;
        self.patience = patience(rng);
    }

    /// The process starts again with nothing.
    pub(crate) fn lose_state(&mut self, now: Mono, rng: &mut Rng) {
        let incarnation = self.incarnation + 1;
        *self = Self::new(self.me, self.electors, now, rng);
        self.incarnation = incarnation;
        self.mute = true;
    }

    pub(crate) fn is_mute(&self) -> bool {
        self.mute
    }

    /// The epoch that it tells a process that just started: the lowest of its term, so that whoever leads the term is
    /// obeyed and nobody of an earlier one. A mute elector tells nothing.
    pub(crate) fn tells(&self) -> Option<Epoch> {
        let Self { term, .. } = *self;
        (!self.mute).then_some(Epoch { term, elector: 0 })
    }

    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Time passes: a follower stands for election, a leader sends signs of life or finds that it leads nobody.
    pub(crate) fn tick(&mut self, now: Mono, rng: &mut Rng) -> Vec<(usize, Message)> {
        match &self.role {
            Role::Leader(leader) => {
                let near = leader.heard.iter().enumerate();
                let near = near.filter(|(peer, at)| *peer == self.me || now.since(**at) < LEASE);
                if near.count() <= self.electors / 2 {
                    self.step_down("no majority answered within its lease", now, rng);
                    return Vec::new();
                }
                self.append_to_all()
            }
            Role::Follower | Role::Candidate { .. } if self.mute || now.since(self.heard) < self.patience => {
                Vec::new()
            }
            Role::Follower | Role::Candidate { .. } => self.stand(now, rng),
        }
    }

    /// Appends a decision; nothing happens if this elector does not lead.
    pub(crate) fn propose(&mut self, entry: Entry) -> Vec<(usize, Message)> {
        let Role::Leader(leader) = &mut self.role else {
            return Vec::new();
        };
        self.log.push(Item { term: self.term, what: What::Decision(Rc::new(entry)) });
        leader.matched[self.me] = self.log.len();
        self.advance_commit();
        self.append_to_all()
    }

    /// The machine gave up its epoch: somebody has seen a higher one.
    pub(crate) fn resign(&mut self, now: Mono, rng: &mut Rng) {
        self.step_down("its machine gave up the epoch", now, rng);
    }

    pub(crate) fn leads(&self) -> bool {
        match self.role {
            Role::Leader(_) => true,
            Role::Follower | Role::Candidate { .. } => false,
        }
    }

    pub(crate) fn receive(
        &mut self,
        from: usize,
        message: Message,
        now: Mono,
        rng: &mut Rng,
    ) -> Vec<(usize, Message)> {
        match message {
            Message::Vote { term, len, last } => self.on_vote(from, term, (last, len), now, rng),
            Message::Voted { term, granted } => {
                self.see_term(term, now, rng);
                match &mut self.role {
                    Role::Candidate { votes } if granted && term == self.term => {
                        votes.insert(from);
                        self.count_votes(now)
                    }
                    Role::Candidate { .. } | Role::Follower | Role::Leader(_) => Vec::new(),
                }
            }
            Message::Append { term, from: at, before, items, commit } => {
                let reply = self.on_append(from, term, (at, before), items, commit, now, rng);
                vec![(from, reply)]
            }
            Message::Appended { term, len, matched, mute } => {
                self.see_term(term, now, rng);
                self.on_appended(from, len, matched, mute, now)
            }
        }
    }

    fn stand(&mut self, now: Mono, rng: &mut Rng) -> Vec<(usize, Message)> {
        self.term += 1;
        self.voted = Some(self.me);
        self.heard = now;
        self.patience = patience(rng);
        self.role = Role::Candidate { votes: BTreeSet::from([self.me]) };
        let alone = self.count_votes(now);
        if !alone.is_empty() || self.leads() {
            return alone;
        }
        let (len, last) = (self.log.len(), self.last_term());
        let vote = Message::Vote { term: self.term, len, last };
        self.peers().map(|peer| (peer, vote.clone())).collect()
    }

    fn on_vote(
        &mut self,
        from: usize,
        term: u64,
        theirs: (u64, usize),
        now: Mono,
        rng: &mut Rng,
    ) -> Vec<(usize, Message)> {
        // A leader that was heard lately is not voted against: a node that hears badly must not depose it.
        let led = match self.role {
            Role::Leader(_) => true,
            Role::Follower => now.since(self.heard) < LEASE,
            Role::Candidate { .. } => false,
        };
        if self.mute || (led && term > self.term) {
            return Vec::new();
        }
        self.see_term(term, now, rng);
        let current = theirs >= (self.last_term(), self.log.len());
        let granted = term == self.term && current && self.voted.is_none_or(|voted| voted == from);
        if granted {
            self.voted = Some(from);
            self.heard = now;
        }
        let term = self.term;
        vec![(from, Message::Voted { term, granted })]
    }

    fn count_votes(&mut self, now: Mono) -> Vec<(usize, Message)> {
        match &self.role {
            Role::Candidate { votes } if votes.len() > self.electors / 2 => {}
            Role::Candidate { .. } | Role::Follower | Role::Leader(_) => return Vec::new(),
        }
        self.log.push(Item { term: self.term, what: What::Begin });
        let mut leader = Leader {
            next: vec![self.log.len() - 1; self.electors],
            matched: vec![0; self.electors],
            heard: vec![now; self.electors],
            begin: self.log.len(),
            told: false,
        };
        leader.matched[self.me] = self.log.len();
        self.role = Role::Leader(leader);
        self.advance_commit();
        self.append_to_all()
    }

    fn append_to_all(&self) -> Vec<(usize, Message)> {
        self.peers().filter_map(|peer| Some((peer, self.append_for(peer)?))).collect()
    }

    fn append_for(&self, peer: usize) -> Option<Message> {
        let Role::Leader(leader) = &self.role else {
            return None;
        };
        let from = leader.next[peer];
        Some(Message::Append {
            term: self.term,
            from,
            before: from.checked_sub(1).map_or(0, |i| self.log[i].term),
            items: self.log[from..].to_vec(),
            commit: self.commit,
        })
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message, taken apart by the caller")]
    fn on_append(
        &mut self,
        leader: usize,
        term: u64,
        (at, before): (usize, u64),
        items: Vec<Item>,
        commit: usize,
        now: Mono,
        rng: &mut Rng,
    ) -> Message {
        let mute = self.mute.then_some(self.incarnation);
        if term < self.term {
            return Message::Appended { term: self.term, len: 0, matched: false, mute };
        }
        self.see_term(term, now, rng);
        if !matches!(self.role, Role::Follower) {
            self.step_down("another elector leads its term", now, rng);
        }
        self.heard = now;
        self.voted.get_or_insert(leader);
        let fits = at <= self.log.len() && at.checked_sub(1).is_none_or(|i| self.log[i].term == before);
        if !fits {
            let len = self.log.len().min(at.saturating_sub(1));
            return Message::Appended { term: self.term, len, matched: false, mute };
        }
        let len = at + items.len();
        for (i, item) in items.into_iter().enumerate() {
            let place = at + i;
            if self.log.get(place).is_some_and(|own| own.term != item.term) {
                assert!(place >= self.commit, "a committed place is never overwritten");
                self.log.truncate(place);
            }
            if place == self.log.len() {
                self.log.push(item);
            }
        }
        self.commit = self.commit.max(commit.min(self.log.len()));
        self.apply();
        let mute = self.mute.then_some(self.incarnation);
        Message::Appended { term: self.term, len, matched: true, mute }
    }

    fn on_appended(
        &mut self,
        peer: usize,
        len: usize,
        matched: bool,
        mute: Option<u64>,
        now: Mono,
    ) -> Vec<(usize, Message)> {
        let Role::Leader(leader) = &mut self.role else {
            return Vec::new();
        };
        leader.next[peer] = len.min(self.log.len());
        if let Some(incarnation) = mute {
            // What a mute elector has counts for nothing, but the log is brought to it.
            leader.matched[peer] = 0;
            return self.replace(peer, incarnation);
        }
        leader.heard[peer] = now;
        if matched {
            leader.matched[peer] = leader.matched[peer].max(len);
            self.advance_commit();
        }
        match &self.role {
            Role::Leader(leader) if leader.next[peer] < self.log.len() => {
                self.append_for(peer).map(|message| (peer, message)).into_iter().collect()
            }
            Role::Leader(_) | Role::Follower | Role::Candidate { .. } => Vec::new(),
        }
    }

    fn replace(&mut self, elector: usize, incarnation: u64) -> Vec<(usize, Message)> {
        let is_there = self.log.iter().any(|item| {
            matches!(item.what, What::Replaced { elector: e, incarnation: i } if e == elector && i == incarnation)
        });
        if is_there {
            return Vec::new();
        }
        let what = What::Replaced { elector, incarnation };
        self.log.push(Item { term: self.term, what });
        if let Role::Leader(leader) = &mut self.role {
            leader.matched[self.me] = self.log.len();
        }
        self.append_to_all()
    }

    fn advance_commit(&mut self) {
        let Role::Leader(leader) = &self.role else { return };
        let mut matched = leader.matched.clone();
        matched.sort_unstable();
        let by_majority = matched[(self.electors - 1) / 2];
        if by_majority > self.commit && self.log[by_majority - 1].term == self.term {
            self.commit = by_majority;
            self.apply();
        }
    }

    fn apply(&mut self) {
        while self.applied < self.commit {
            let item = self.log[self.applied].clone();
            self.applied += 1;
            match item.what {
                What::Decision(entry) => {
                    self.decisions.apply(&entry);
                    self.outputs.push(Output::Committed(entry));
                }
                What::Replaced { elector, incarnation } => {
                    if elector == self.me && incarnation == self.incarnation {
                        self.mute = false;
                    }
                }
                What::Begin => self.tell_elected(),
            }
        }
    }

    fn tell_elected(&mut self) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        if self.applied == leader.begin && !std::mem::replace(&mut leader.told, true) {
            let epoch = Epoch { term: self.term, elector: self.me as u16 };
            self.outputs.push(Output::Elected(epoch, Box::new(self.decisions.clone())));
        }
    }

    fn see_term(&mut self, term: u64, now: Mono, rng: &mut Rng) {
        if term > self.term {
            self.step_down("a higher term was seen", now, rng);
            self.term = term;
            self.voted = None;
        }
    }

    fn step_down(&mut self, reason: &str, now: Mono, rng: &mut Rng) {
        let was = std::mem::replace(&mut self.role, Role::Follower);
        self.patience = patience(rng);
        if let Role::Leader(leader) = was {
            self.heard = now;
            if leader.told {
                self.outputs.push(Output::Deposed(reason.to_owned()));
            }
        }
    }

    fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.electors).filter(move |peer| *peer != me)
    }

    fn last_term(&self) -> u64 {
        self.log.last().map_or(0, |item| item.term)
    }
}

fn patience(rng: &mut Rng) -> Duration {
    LEASE + Duration::from_millis(50 + rng.next_u64() % 500)
}

/// How long a leader leads without an answer of a majority, and a follower holds with it without a sign of life.
const LEASE: Duration = Duration::from_millis(500);
