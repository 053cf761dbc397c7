//! A small seeded generator: the same seed gives the same numbers on every machine. Not for secrets.

/// SplitMix64 (Steele, Lea, Flood 2014): one addition and one mix a number, and every seed is a good one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// A generator from one seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator from several numbers in order; one that differs anywhere gives another sequence.
    pub fn of(parts: &[u64]) -> Self {
        Self(parts.iter().fold(0, |state, part| mix(state ^ mix(*part))))
    }

    /// The next number, uniform over all 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// The next number in 0 to below 1, with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The next number of an exponential distribution with mean about 1.
    ///
    /// Leading zeros are geometric, so zeros plus a uniform fraction is an exponential with a piecewise linear density.
    /// Unlike a logarithm it rounds the same everywhere.
    pub fn exponential(&mut self) -> f64 {
        let halvings = f64::from(self.next_u64().leading_zeros());
        (halvings + self.unit()) * MEAN_SCALE
    }
}

fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(GOLDEN);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// 2^64 over the golden ratio, odd: SplitMix64's step.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Zeros average 1 and the fraction 1/2, so this brings the mean of their sum to 1.
const MEAN_SCALE: f64 = 2.0 / 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_others() {
        let draw = |parts: &[u64]| Rng::of(parts).next_u64();
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
        assert_ne!(draw(&[0]), draw(&[0, 0]));
    }

    #[test]
    fn means_are_what_the_documentation_says() {
        let mut rng = Rng::new(7);
        let n = 100_000;
        let unit: f64 = (0..n).map(|_| rng.unit()).sum::<f64>() / f64::from(n);
        let exponential: f64 = (0..n).map(|_| rng.exponential()).sum::<f64>() / f64::from(n);
        assert!((unit - 0.5).abs() < 0.01, "{unit}");
        assert!((exponential - 1.0).abs() < 0.02, "{exponential}");
    }
}
