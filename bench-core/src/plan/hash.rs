//! The identity of a plan: two submissions of one run id must mean the same.

use sha2::{Digest as _, Sha256};

use super::Plan;
use crate::ids::PlanHash;

impl Plan {
    /// The hash of the plan as it travels.
    pub fn hash(&self) -> PlanHash {
        let bytes = postcard::to_stdvec(self).expect("a plan has no type that postcard refuses");
        let digest = Sha256::digest(&bytes);
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest[..16]);
        PlanHash(hash)
    }
}
