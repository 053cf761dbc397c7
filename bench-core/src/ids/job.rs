//! The run id that all nodes of a batch job come to by themselves.

use sha2::{Digest as _, Sha256};

use super::{MeshId, PlanHash, RosterHash, RunId};

impl RunId {
    /// The run that a job's nodes mean: SHA-256 over mesh key, roster (with electors and generation), plan and the
    /// job's word, cut to 128 bits. The same on every node, and the same again when the job is submitted again; another
    /// word makes another run of the same plan.
    pub fn of_job(mesh: MeshId, roster: RosterHash, plan: PlanHash, job: &str) -> Self {
        // All but the last part have a fixed length, so no two different jobs give the same bytes.
        let digest = Sha256::new_with_prefix(HASH_DOMAIN)
            .chain_update(mesh.0)
            .chain_update(roster.0)
            .chain_update(plan.0)
            .chain_update(job)
            .finalize();
        let mut id = Self([0; 16]);
        id.0.copy_from_slice(&digest[..16]);
        id
    }
}

/// Keeps this hash apart from every other use of SHA-256, and one layout of it from the next.
const HASH_DOMAIN: &[u8] = b"railmesh one-shot run 1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_job_is_the_same_run_and_any_difference_is_another() {
        let id = |mesh: u8, roster: u8, plan: u8, job: &str| {
            RunId::of_job(MeshId([mesh; 16]), RosterHash([roster; 16]), PlanHash([plan; 16]), job)
        };
        let ids = [id(1, 2, 3, "7"), id(0, 2, 3, "7"), id(1, 0, 3, "7"), id(1, 2, 0, "7"), id(1, 2, 3, "8")];
        assert_eq!(ids[0], id(1, 2, 3, "7"));
        for (i, one) in ids.iter().enumerate() {
            assert!(ids[i + 1..].iter().all(|other| other != one), "{ids:?}");
        }
    }
}
