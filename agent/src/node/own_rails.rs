//! This node's rails: its own choice, or what a plan names in its place.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bench_core::node::RailEndpoint;

use crate::inventory::{RailChoice, Site};

/// This node's rails.
#[derive(Debug)]
pub(super) struct OwnRails {
    own: Arc<[RailEndpoint]>,
    root: PathBuf,
    /// What was named last: a run names the same for each of its rounds.
    named: Mutex<Option<Named>>,
}

/// Rails that a plan named.
#[derive(Debug)]
struct Named {
    names: Vec<String>,
    rails: Arc<[RailEndpoint]>,
}

impl OwnRails {
    pub(super) fn new(own: Vec<RailEndpoint>, root: PathBuf) -> Self {
        Self { own: own.into(), root, named: Mutex::default() }
    }

    /// The rails of a run that names these devices, or none. Devices are looked for anew when the names change.
    ///
    /// # Errors
    /// What cannot be found, with what there is.
    pub(super) fn of(&self, names: Option<&[String]>) -> Result<Arc<[RailEndpoint]>, String> {
        let Some(names) = names else { return Ok(Arc::clone(&self.own)) };
        let mut known = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = known.as_ref().filter(|known| known.names == names) {
            return Ok(Arc::clone(&named.rails));
        }
        let site =
            Site::read(&self.root).map_err(|error| format!("the addresses cannot be listed: {error}"))?;
        let rails = site.choose(&RailChoice::Named(names.to_vec())).map_err(|error| error.to_string())?;
        let rails: Arc<[RailEndpoint]> = rails.into();
        *known = Some(Named { names: names.to_vec(), rails: Arc::clone(&rails) });
        Ok(rails)
    }
}
