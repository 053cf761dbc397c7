//! A reproducible sample of the turns of a pattern.

/// Which turns are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// Every turn.
    All,
    /// These, ascending.
    Some(Box<[u32]>),
}

impl Sample {
    /// `kept` of `all` turns, each set of them as likely as any other; the same seed gives the same ones everywhere.
    pub(super) fn draw(seed: u64, kept: u32, all: u32) -> Self {
        let mut random = SplitMix64(seed);
        let mut turns: Vec<u32> = (0..all).collect();
        // The first steps of a Fisher-Yates shuffle.
        for position in 0..kept.min(all) {
            let other = position + random.below(all - position);
            turns.swap(position as usize, other as usize);
        }
        turns.truncate(kept as usize);
        turns.sort_unstable();
        Self::Some(turns.into())
    }

    /// How many are kept, of a pattern that has `all`.
    pub(super) fn len(&self, all: u32) -> u32 {
        match self {
            Self::All => all,
            Self::Some(turns) => {
                u32::try_from(turns.len()).expect("a sample has at most as many turns as the pattern")
            }
        }
    }

    /// The turn that is kept at `position`.
    pub(super) fn turn(&self, position: u32) -> u32 {
        match self {
            Self::All => position,
            Self::Some(turns) => turns[position as usize],
        }
    }
}

/// Sebastiano Vigna's splitmix64 (public domain, prng.di.unimi.it/splitmix64.c): one word of state, every output once
/// in its period of 2^64. Written here so that a seed means the same pairs in every later version.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`: the high half of a product, whose bias is below `bound` / 2^64.
    fn below(&mut self, bound: u32) -> u32 {
        let scaled = (u128::from(self.next()) * u128::from(bound)) >> 64;
        u32::try_from(scaled).expect("a 64-bit fraction of a 32-bit bound is below it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_sequence() {
        // The first outputs for seed 1234567 in the reference implementation, as Rosetta Code and many ports list them.
        let mut random = SplitMix64(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_sample_is_ascending_distinct_and_the_same_for_the_same_seed() {
        let Sample::Some(turns) = Sample::draw(7, 50, 127) else { panic!("a drawn sample lists its turns") };
        assert_eq!(turns.len(), 50);
        assert!(turns.windows(2).all(|two| two[0] < two[1]) && turns[49] < 127);
        assert_eq!(Sample::draw(7, 50, 127), Sample::draw(7, 50, 127));
        assert_ne!(Sample::draw(7, 50, 127), Sample::draw(8, 50, 127));
        assert_eq!(Sample::draw(0, 9, 9), Sample::Some((0..9).collect()));
    }

    #[test]
    fn over_many_seeds_every_turn_is_kept_about_equally_often() {
        let mut kept = [0_u32; 20];
        for seed in 0..2_000 {
            if let Sample::Some(turns) = Sample::draw(seed, 5, 20) {
                turns.iter().for_each(|turn| kept[*turn as usize] += 1);
            }
        }
        // 500 expected, standard deviation 19: five of them.
        assert!(kept.iter().all(|count| (405..=595).contains(count)), "{kept:?}");
    }
}
