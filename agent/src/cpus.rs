//! Sets of processors, in the kernel's list form (`0-3,8`), and the affinity of a thread.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::str::FromStr;

use thiserror::Error;

/// Processors by number, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(BTreeSet<u32>);

impl CpuSet {
    /// The processors that the calling thread may use.
    ///
    /// # Errors
    /// The kernel's refusal, such as on a machine with more than 1,024 processors.
    pub fn of_this_thread() -> io::Result<Self> {
        let set = rustix::thread::sched_getaffinity(None)?;
        Ok((0..MAX_CPUS).filter(|cpu| set.is_set(*cpu as usize)).collect())
    }

    /// Makes the calling thread, and all that it starts from now on, use these processors only.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the set is empty, has a number of 1,024 or more, or none of it is open to
    /// this process.
    pub fn pin_this_thread(&self) -> io::Result<()> {
        let mut set = rustix::thread::CpuSet::new();
        for cpu in self.iter() {
            if cpu >= MAX_CPUS {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!(
                        "processor {cpu} is above the highest number that can be pinned, {}",
                        MAX_CPUS - 1
                    ),
                ));
            }
            set.set(cpu as usize);
        }
        Ok(rustix::thread::sched_setaffinity(None, &set)?)
    }

    /// The processors in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest number.
    pub fn lowest(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// The processors that both have.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// Without one processor.
    #[must_use]
    pub fn without(mut self, cpu: u32) -> Self {
        self.0.remove(&cpu);
        self
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for CpuSet {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let error = || CpuListError { text: text.chars().take(80).collect() };
        let number = |part: &str| match part.parse::<u32>() {
            Ok(cpu) if cpu < MAX_LISTED => Ok(cpu),
            Ok(_) | Err(_) => Err(error()),
        };
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(error());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

/// A text that is not a list of processors.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a list of processors such as 0-3,8")]
pub struct CpuListError {
    /// The refused text, cut to 80 characters.
    pub text: String,
}

/// How many processors an affinity mask names: CPU_SETSIZE of the C library.
const MAX_CPUS: u32 = rustix::thread::CpuSet::MAX_CPU as u32;

/// Numbers in a list are below this: four times the kernel's own limit (NR_CPUS is at most 8,192 on x86-64 and
/// arm64), so that a damaged list cannot ask for four billion entries.
const MAX_LISTED: u32 = 32_768;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_form_round_trips() {
        for (text, cpus) in [
            ("0", vec![0]),
            ("0-3,8", vec![0, 1, 2, 3, 8]),
            ("0-1,112-113", vec![0, 1, 112, 113]),
            ("", vec![]),
        ] {
            let set: CpuSet = text.parse().unwrap();
            assert_eq!(set, cpus.into_iter().collect());
            assert_eq!(set.to_string(), text);
        }
        assert_eq!("0-1\n".parse::<CpuSet>().map(|set| set.len()), Ok(2), "as sysfs writes it");
    }

    #[test]
    fn a_damaged_list_is_refused() {
        for text in ["a", "3-1", "1-", "-1", "1 2", "0-4294967295", "0x1"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_thread_and_its_children_stay_on_the_processors_it_was_pinned_to() {
        std::thread::spawn(|| {
            let one: CpuSet = CpuSet::of_this_thread().unwrap().lowest().into_iter().collect();
            one.pin_this_thread().unwrap();
            let child = std::thread::spawn(|| CpuSet::of_this_thread().unwrap());
            assert_eq!(child.join().unwrap(), one);
        })
        .join()
        .unwrap();
        assert!(CpuSet::default().pin_this_thread().is_err());
    }
}
