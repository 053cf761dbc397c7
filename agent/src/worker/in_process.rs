//! Workers that are tasks of this process: where hundreds of agents run in one process, and for the modelled fabric.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bench_core::message::{FromWorker, ToWorker};
use tokio::sync::{Notify, mpsc};

use super::registry::Registry;
use super::serve::ready;
use super::tasks::{Handled, Outbox, Tasks};
use crate::supervise::{Kill, Link, LinkEvent, WorkerFactory, WorkerSpec};

/// Makes workers that are one task of the calling runtime each, and one thread for each task that they are given.
///
/// Unlike a process they share this process's fate and its processors (`WorkerSpec::cpus` is not heeded), and a task
/// whose backend does not stop keeps its thread.
#[derive(Clone)]
pub struct InProcessFactory {
    registry: Arc<dyn Registry>,
}

impl InProcessFactory {
    /// Workers that measure with the backends of `registry`.
    pub fn new(registry: Arc<dyn Registry>) -> Self {
        Self { registry }
    }
}

impl WorkerFactory for InProcessFactory {
    fn start(&self, _spec: &WorkerSpec) -> Link {
        let (to, inbox) = mpsc::channel(DEPTH);
        let (events, from) = mpsc::channel(DEPTH);
        let life = Arc::new(Life::default());
        let registry = Arc::clone(&self.registry);
        tokio::spawn(serve(registry, inbox, events, Arc::clone(&life)));
        Link { to, events: from, kill: Kill::new(move || life.end()) }
    }
}

impl fmt::Debug for InProcessFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessFactory").field("capabilities", &self.registry.capabilities()).finish()
    }
}

/// Whether the worker still lives.
#[derive(Debug, Default)]
struct Life {
    over: AtomicBool,
    ended: Notify,
}

impl Life {
    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.ended.notify_one();
    }
}

/// Ends when the link is dropped or killed.
async fn serve(
    registry: Arc<dyn Registry>,
    mut inbox: mpsc::Receiver<ToWorker>,
    events: mpsc::Sender<LinkEvent>,
    life: Arc<Life>,
) {
    let outbox = Arc::new(ChannelOutbox { events: events.clone(), life: Arc::clone(&life) });
    // Sending fails only when the link is gone, which ends the loop.
    let _ = events.send(LinkEvent::Started { pid: None }).await;
    let _ = events.send(LinkEvent::Message(Box::new(ready(registry.as_ref())))).await;
    let tasks = Tasks::new(registry, outbox);
    let how = loop {
        let message = tokio::select! {
            () = life.ended.notified() => break "was killed".to_owned(),
            message = inbox.recv() => message,
        };
        match message.map(|message| tasks.handle(message)) {
            None => break "was closed".to_owned(),
            Some(Handled::Silently) => {}
            Some(Handled::Answer(answer)) => drop(events.send(LinkEvent::Message(answer)).await),
            Some(Handled::Stuck(task)) => break format!("ended because task {} does not stop", task.0),
        }
    };
    life.end();
    tasks.abort_all();
    let _ = events.send(LinkEvent::Ended { how }).await;
}

struct ChannelOutbox {
    events: mpsc::Sender<LinkEvent>,
    life: Arc<Life>,
}

impl Outbox for ChannelOutbox {
    /// Waits while the channel is full; only ever called on a task's own thread.
    fn send(&self, message: FromWorker) {
        if !self.life.over.load(Ordering::Acquire) {
            // It fails only when the link is gone.
            let _ = self.events.blocking_send(LinkEvent::Message(Box::new(message)));
        }
    }
}

/// Depth of both channels, as for a process.
const DEPTH: usize = 64;
