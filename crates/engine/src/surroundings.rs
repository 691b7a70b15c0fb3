//! Time and chance. Both are passed in, so that a run can be repeated: the simulator brings its own.

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng};
use rota_model::ids::Randomness;
use rota_model::time::UnixMillis;

/// Says what time it is.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> UnixMillis;
}

/// What a node knows of the world besides its store.
#[derive(Clone)]
pub struct Surroundings {
    clock: Arc<dyn Clock>,
    dice: Arc<Mutex<StdRng>>,
}

impl Surroundings {
    pub fn new(clock: Arc<dyn Clock>, seed: [u8; 32]) -> Self {
        Self { clock, dice: Arc::new(Mutex::new(StdRng::from_seed(seed))) }
    }

    pub fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    pub fn randomness(&self) -> Randomness {
        self.random_bytes()
    }

    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(&mut bytes);
        bytes
    }
}
