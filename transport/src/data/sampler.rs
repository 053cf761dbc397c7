//! Counts the bytes of one stream inside the window, with its running total at fixed instants.
//!
//! The hot loop calls [`Counter::add`] with the one clock reading that it made. The instants are the same for every
//! stream of a cell, so the totals of a cell are sums, and a stall shows as equal totals.

use std::time::Duration;

use bench_core::measure::{BandwidthSample, DataCheck, Mark, Window};
use bench_core::time::Mono;
use rustix::time::{ClockId, clock_gettime};

use crate::data::Timing;

/// Where a clock reading lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::data) enum Stage {
    /// Before the window.
    Before,
    /// In it.
    Inside,
    /// After it.
    After,
}

/// The bytes of one stream.
#[derive(Debug)]
pub(in crate::data) struct Counter {
    window: Window,
    interval: Duration,
    stage: Stage,
    /// The next instant at which something but the total changes.
    next: Mono,
    bytes: u64,
    /// The total at each interval's end; allocated before.
    totals: Vec<u64>,
    marks: usize,
    cpu_started: Option<Duration>,
    cpu: Option<Duration>,
}

impl Counter {
    /// A counter for the window of `timing`.
    pub(in crate::data) fn new(timing: &Timing) -> Self {
        let interval = BandwidthSample::mark_interval(timing.window);
        let marks = timing.window.as_nanos() / interval.as_nanos().max(1);
        let marks = usize::try_from(marks)
            .map_or(BandwidthSample::MAX_MARKS, |marks| marks.min(BandwidthSample::MAX_MARKS));
        Self {
            window: Window::new(timing.window_start(), timing.window),
            interval,
            stage: Stage::Before,
            next: timing.window_start(),
            bytes: 0,
            totals: Vec::with_capacity(marks),
            marks,
            cpu_started: None,
            cpu: None,
        }
    }

    /// Counts `bytes` that were done by `now`, and tells where that lies.
    #[inline]
    pub(in crate::data) fn add(&mut self, now: Mono, bytes: usize) -> Stage {
        if now >= self.next {
            self.cross(now);
        }
        if self.stage == Stage::Inside {
            self.bytes += bytes as u64;
        }
        self.stage
    }

    /// Takes note of an instant at which nothing was done.
    #[inline]
    pub(in crate::data) fn look(&mut self, now: Mono) {
        if now >= self.next {
            self.cross(now);
        }
    }

    #[cold]
    fn cross(&mut self, now: Mono) {
        if self.stage == Stage::Before {
            self.stage = Stage::Inside;
            self.cpu_started = thread_cpu();
            self.next = self.mark_at(0);
        }
        while self.totals.len() < self.marks && now >= self.mark_at(self.totals.len()) {
            self.totals.push(self.bytes);
        }
        if now >= self.window.end {
            self.stage = Stage::After;
            self.cpu = thread_cpu().zip(self.cpu_started).map(|(end, start)| end.saturating_sub(start));
            self.next = Mono::from_nanos(u64::MAX);
        } else {
            self.next = self.mark_at(self.totals.len()).min(self.window.end);
        }
    }

    fn mark_at(&self, index: usize) -> Mono {
        self.window.start.after(self.interval * (index as u32 + 1))
    }

    fn total_at(&self, index: usize) -> u64 {
        self.totals.get(index).copied().unwrap_or(self.bytes)
    }
}

/// The sample of a cell from its streams' counters, which are of one window.
pub(in crate::data) fn sample(
    counters: &[Counter],
    timing: &Timing,
    block: u64,
    check: DataCheck,
) -> BandwidthSample {
    let block = block.max(1);
    let marks = counters.first().map_or(0, |counter| counter.marks);
    let interval_ns = BandwidthSample::mark_interval(timing.window).as_nanos() as u64;
    BandwidthSample {
        window: Window::new(timing.window_start(), timing.window),
        bytes: counters.iter().map(|counter| counter.bytes).sum(),
        marks: (0..marks)
            .map(|index| Mark {
                at_ns: interval_ns * (index as u64 + 1),
                bytes: counters.iter().map(|counter| counter.total_at(index)).sum(),
                completions: counters.iter().map(|counter| counter.total_at(index) / block).sum(),
            })
            .collect(),
        check,
        retransmits: None,
        cpu_ns: counters
            .iter()
            .map(|counter| counter.cpu)
            .sum::<Option<Duration>>()
            .map(|time| time.as_nanos() as u64),
    }
}

/// Processor time of this thread so far.
fn thread_cpu() -> Option<Duration> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing() -> Timing {
        Timing {
            at: ms(0),
            warmup: Duration::from_millis(10),
            window: Duration::from_millis(100),
            tail: Duration::from_millis(10),
        }
    }

    fn ms(millis: u64) -> Mono {
        Mono::from_nanos(millis * 1_000_000)
    }

    fn counted(events: &[(u64, usize)]) -> Counter {
        let mut counter = Counter::new(&timing());
        for (at, bytes) in events {
            counter.add(ms(*at), *bytes);
        }
        counter
    }

    fn totals(counters: &[Counter]) -> Vec<u64> {
        let sample = sample(counters, &timing(), 1, DataCheck::Unchecked);
        sample.marks.iter().map(|mark| mark.bytes).collect()
    }

    #[test]
    fn bytes_count_from_the_first_instant_of_the_window_to_before_its_end() {
        let counter = counted(&[(9, 1), (10, 10), (109, 100), (110, 1_000), (115, 1_000)]);
        assert_eq!(counter.bytes, 110);
    }

    #[test]
    fn a_stall_shows_as_equal_totals() {
        let counter = counted(&[(10, 1), (25, 1), (75, 1), (111, 1)]);
        assert_eq!(totals(&[counter]), [1, 2, 2, 2, 2, 2, 3, 3, 3, 3]);
    }

    #[test]
    fn streams_add_up_at_the_same_instants() {
        let all = [counted(&[(12, 5), (120, 1)]), counted(&[(35, 7), (120, 1)])];
        assert_eq!(totals(&all), [5, 5, 12, 12, 12, 12, 12, 12, 12, 12]);
    }

    #[test]
    fn a_stream_that_stalls_over_the_whole_window_has_every_mark_and_no_byte() {
        let counter = counted(&[(1, 9), (500, 9)]);
        assert_eq!((totals(&[counter]), 10), (vec![0; 10], 10));
    }

    #[test]
    fn a_long_window_keeps_no_more_marks_than_a_sample_may_hold() {
        let timing = Timing { window: Duration::from_nanos(3_600_000_000_001), ..timing() };
        let mut counter = Counter::new(&timing);
        counter.add(ms(4_000_000), 1);
        let sample = sample(&[counter], &timing, 1, DataCheck::Unchecked);
        assert_eq!(sample.marks.len(), BandwidthSample::MAX_MARKS);
        let last = sample.marks.last().expect("marks").at_ns;
        assert!(u128::from(last) <= timing.window.as_nanos());
    }
}
