//! Electors of one process over a switchboard that can be cut: elections, lost leaders, lost state.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;

use bench_core::ids::RunId;
use coordinator::Decisions;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;

/// Everybody's way to everybody.
#[derive(Debug, Default)]
struct Switchboard {
    here: Mutex<BTreeMap<NodeIndex, Arc<Electors>>>,
    /// From whom to whom nothing goes.
    cut: Mutex<Vec<(NodeIndex, NodeIndex)>>,
    /// What nodes that are no electors have seen.
    seen: Mutex<Option<Epoch>>,
}

#[derive(Debug)]
struct Plug {
    me: NodeIndex,
    board: Arc<Switchboard>,
}

impl Switchboard {
    fn cut_off(&self, one: u16, others: &[u16]) {
        let mut cut = self.cut.lock().unwrap();
        for other in others {
            cut.push((NodeIndex(one), NodeIndex(*other)));
            cut.push((NodeIndex(*other), NodeIndex(one)));
        }
    }

    fn heal(&self) {
        self.cut.lock().unwrap().clear();
    }

    /// The other end, if both directions are open: a question without its answer is no use.
    fn reach(&self, from: NodeIndex, to: NodeIndex) -> Option<Arc<Electors>> {
        if self.cut.lock().unwrap().contains(&(from, to)) {
            return None;
        }
        self.here.lock().unwrap().get(&to).cloned()
    }

    fn answers(&self, from: NodeIndex, to: NodeIndex) -> bool {
        !self.cut.lock().unwrap().contains(&(to, from))
    }
}

impl Wire for Plug {
    fn call(&self, elector: NodeIndex, payload: Vec<u8>, deadline: Duration) -> Answered<'_> {
        Box::pin(async move {
            let Some(there) = self.board.reach(self.me, elector) else {
                return Err(WireFault::Unreachable { reason: format!("{elector} is cut off") });
            };
            let answer = there.serve(self.me, &payload).await;
            if self.board.answers(self.me, elector) {
                return Ok(answer);
            }
            tokio::time::sleep(deadline).await;
            Err(WireFault::Timeout)
        })
    }

    fn look_around(&self) -> Pin<Box<dyn Future<Output = Surroundings> + Send + '_>> {
        Box::pin(async move {
            let others: Vec<NodeIndex> = self.board.here.lock().unwrap().keys().copied().collect();
            let electors: BTreeMap<NodeIndex, CommandView> = others
                .into_iter()
                .filter(|other| *other != self.me && self.board.answers(self.me, *other))
                .filter_map(|other| Some((other, self.board.reach(self.me, other)?.view())))
                .collect();
            let told = electors.values().filter_map(|view| view.seen).max();
            let seen = *self.board.seen.lock().unwrap();
            Surroundings { seen: told.max(seen), electors, ..Surroundings::default() }
        })
    }
}

/// One elector of a test.
struct One {
    electors: Arc<Electors>,
    events: mpsc::UnboundedReceiver<Event>,
    task: JoinHandle<Result<(), String>>,
}

struct Trial {
    board: Arc<Switchboard>,
    folder: TempDir,
    count: u16,
    join_timeout: Duration,
    boots: u8,
}

impl Trial {
    fn new(count: u16) -> Self {
        Self {
            board: Arc::default(),
            folder: tempfile::tempdir().unwrap(),
            count,
            join_timeout: Duration::from_secs(60),
            boots: 0,
        }
    }

    fn start(&mut self, me: u16) -> One {
        self.boots += 1;
        let config = ElectorsConfig {
            folder: self.folder.path().join(format!("e{me}")),
            me: NodeIndex(me),
            boot: BootId([self.boots; 16]),
            electors: (0..self.count).map(NodeIndex).collect(),
            quorum: Quorum::Majority,
            join_timeout: self.join_timeout,
        };
        let plug = Arc::new(Plug { me: NodeIndex(me), board: Arc::clone(&self.board) });
        let (sender, events) = mpsc::unbounded_channel();
        let (electors, duties) = Electors::open(config, plug, sender).unwrap();
        self.board.here.lock().unwrap().insert(NodeIndex(me), Arc::clone(&electors));
        let task = tokio::spawn(Arc::clone(&electors).run(duties));
        One { electors, events, task }
    }

    fn start_all(&mut self) -> Vec<One> {
        (0..self.count).map(|me| self.start(me)).collect()
    }

    /// Ends one as a kill does: nobody is told.
    async fn kill(&self, one: One) {
        let me = one.electors.config.me;
        self.board.here.lock().unwrap().remove(&me);
        one.task.abort();
        one.electors.shutdown().await;
    }

    fn state_of(&self, me: u16) -> PathBuf {
        self.folder.path().join(format!("e{me}"))
    }
}

/// The next event, within the time that an election may take on a busy machine.
async fn next(one: &mut One) -> Event {
    tokio::time::timeout(Duration::from_secs(20), one.events.recv())
        .await
        .expect("an event in time")
        .expect("the elector lives")
}

/// Waits until one of them is elected.
async fn elected(all: &mut [One]) -> (usize, Epoch, Decisions) {
    let limit = Instant::now() + Duration::from_secs(20);
    while Instant::now() < limit {
        for (at, one) in all.iter_mut().enumerate() {
            if let Ok(Event::Elected { epoch, decisions }) = one.events.try_recv() {
                return (at, epoch, *decisions);
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody is elected")
}

fn ended(run: u8, epoch: Epoch) -> Entry {
    Entry::RunEnded { run: RunId([run; 16]), epoch }
}

fn accepted(run: u8, epoch: Epoch) -> Entry {
    let plan = bench_core::plan::PlanSpec::default().validate().unwrap();
    Entry::RunAccepted { run: RunId([run; 16]), plan: Box::new(plan), wall_seconds: 1, epoch }
}

async fn decide(one: &mut One, entry: Entry) {
    one.electors.propose(entry.clone());
    match next(one).await {
        Event::Committed(committed) => assert_eq!(committed, entry),
        other => panic!("{entry:?} is decided, not {other:?}"),
    }
}

#[tokio::test]
async fn a_lone_elector_commands_at_once_and_in_a_higher_epoch_after_a_restart() {
    let mut trial = Trial::new(1);
    let mut one = trial.start(0);
    let begun = Instant::now();
    let Event::Elected { epoch: first, .. } = next(&mut one).await else { panic!("elected first") };
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    decide(&mut one, accepted(1, first)).await;
    trial.kill(one).await;
    let mut one = trial.start(0);
    let Event::Elected { epoch, decisions } = next(&mut one).await else { panic!("elected again") };
    assert!(epoch > first, "{epoch} after {first}");
    assert!(decisions.is_running(RunId([1; 16])), "what was decided is known");
}

#[tokio::test]
async fn another_elector_takes_over_in_a_higher_epoch_and_knows_what_was_decided() {
    let mut trial = Trial::new(3);
    let mut all = trial.start_all();
    let (leader, first, _) = elected(&mut all).await;
    decide(&mut all[leader], accepted(1, first)).await;
    let dead = all.remove(leader);
    let begun = Instant::now();
    trial.kill(dead).await;
    let (_, second, decisions) = elected(&mut all).await;
    assert!(second > first, "{second} after {first}");
    assert!(decisions.is_running(RunId([1; 16])));
    // The design's limit is 3 s to the first start; the rest is the margin of a shared machine.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_leader_that_is_cut_off_decides_nothing_and_is_deposed() {
    let mut trial = Trial::new(3);
    let mut all = trial.start_all();
    let (leader, first, _) = elected(&mut all).await;
    let mut old = all.remove(leader);
    let rest: Vec<u16> = (0..3).filter(|at| usize::from(*at) != leader).collect();
    trial.board.cut_off(leader as u16, &rest);
    old.electors.propose(accepted(1, first));
    let deposed = next(&mut old).await;
    assert!(matches!(deposed, Event::Deposed { .. }), "{deposed:?}");
    assert!(!old.electors.confirms(first));
    let (_, second, decisions) = elected(&mut all).await;
    assert!(second > first);
    assert_eq!(decisions.running, None);
    trial.board.heal();
    decide_somewhere(&mut all, ended(9, second)).await;
    assert!(old.events.try_recv().is_err(), "it does not command again by itself");
}

/// Decides an entry of the epoch in which one of them commands.
async fn decide_somewhere(all: &mut [One], entry: Entry) {
    for one in all.iter() {
        one.electors.propose(entry.clone());
    }
    let limit = Instant::now() + Duration::from_secs(20);
    while Instant::now() < limit {
        for one in all.iter_mut() {
            if let Ok(Event::Committed(committed)) = one.events.try_recv() {
                return assert_eq!(committed, entry);
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{entry:?} is not decided")
}

// Its signs of life arrive, so the others would follow it for ever: it must notice that it hears nobody.
#[tokio::test]
async fn a_leader_that_is_heard_and_hears_nobody_makes_room() {
    let mut trial = Trial::new(3);
    let mut all = trial.start_all();
    let (leader, first, _) = elected(&mut all).await;
    let mut old = all.remove(leader);
    {
        let mut cut = trial.board.cut.lock().unwrap();
        for other in (0..3_u16).filter(|at| usize::from(*at) != leader) {
            cut.push((NodeIndex(other), NodeIndex(leader as u16)));
        }
    }
    assert!(matches!(next(&mut old).await, Event::Deposed { .. }));
    let (_, second, _) = elected(&mut all).await;
    assert!(second > first);
}

#[tokio::test]
async fn an_elector_with_its_state_votes_again() {
    let mut trial = Trial::new(3);
    let mut all = trial.start_all();
    let (leader, first, _) = elected(&mut all).await;
    decide(&mut all[leader], accepted(1, first)).await;
    let follower = (leader + 1) % 3;
    let _restarted = restart(&mut trial, follower).await;
    // With the third one dead, leader and restarted follower are the only majority.
    let third = 3 - leader - follower;
    trial.board.here.lock().unwrap().remove(&NodeIndex(third as u16));
    decide(&mut all[leader], ended(1, first)).await;
}

/// Restarts an elector from its folder.
async fn restart(trial: &mut Trial, me: usize) -> One {
    let running = trial.board.here.lock().unwrap().remove(&NodeIndex(me as u16));
    running.expect("it ran").shutdown().await;
    trial.start(me as u16)
}

#[tokio::test]
async fn an_elector_without_its_state_is_mute_until_the_leader_has_replaced_it() {
    let mut trial = Trial::new(3);
    let mut all = trial.start_all();
    let (leader, first, _) = elected(&mut all).await;
    let (follower, third) = ((leader + 1) % 3, (leader + 2) % 3);
    decide(&mut all[leader], accepted(1, first)).await;
    let running = trial.board.here.lock().unwrap().remove(&NodeIndex(follower as u16));
    running.expect("it ran").shutdown().await;
    std::fs::remove_dir_all(trial.state_of(follower as u16)).unwrap();
    // Without the leader nobody can replace it, so it stays mute.
    trial.board.cut_off(leader as u16, &[follower as u16]);
    let fresh = trial.start(follower as u16);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(fresh.electors.view().standing, Standing::Mute);
    trial.board.heal();
    let limit = Instant::now() + Duration::from_secs(20);
    while fresh.electors.view().standing == Standing::Mute {
        assert!(Instant::now() < limit, "it is taken in");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It counts: with the third one dead, the leader needs its answer.
    trial.board.here.lock().unwrap().remove(&NodeIndex(third as u16));
    decide(&mut all[leader], ended(1, first)).await;
}

#[tokio::test]
async fn an_elector_that_meets_only_empty_ones_and_a_node_that_saw_an_epoch_does_not_found() {
    let mut trial = Trial::new(3);
    *trial.board.seen.lock().unwrap() = Some(Epoch { term: 7, elector: 2 });
    let all = trial.start_all();
    tokio::time::sleep(Duration::from_secs(3)).await;
    for one in &all {
        let view = one.electors.view();
        assert_eq!((view.standing, view.commander), (Standing::Mute, None));
    }
}

#[tokio::test]
async fn a_majority_founds_the_mesh_and_the_late_one_is_taken_in() {
    let mut trial = Trial::new(3);
    trial.join_timeout = Duration::from_millis(500);
    let mut all = vec![trial.start(0), trial.start(1)];
    let (leader, epoch, _) = elected(&mut all).await;
    let late = trial.start(2);
    let limit = Instant::now() + Duration::from_secs(20);
    while !matches!(late.electors.view().standing, Standing::Voter { .. }) {
        assert!(Instant::now() < limit, "it is taken in");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    decide(&mut all[leader], ended(1, epoch)).await;
}

#[tokio::test]
async fn a_damaged_vote_makes_an_elector_mute_and_is_put_aside() {
    let mut trial = Trial::new(1);
    let mut one = trial.start(0);
    assert!(matches!(next(&mut one).await, Event::Elected { .. }));
    trial.kill(one).await;
    flip(&trial.state_of(0).join("vote"));
    let one = trial.start(0);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(one.electors.view().standing, Standing::Mute);
    assert!(trial.folder.path().join("e0.damaged").exists());
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
}
