//! What the routes work with.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rota_engine::desk::JobDesk;
use rota_engine::fleet::Fleet;
use rota_engine::logbook::Logbook;
use rota_engine::meter::board::Board;
use rota_engine::node::Node;
use rota_engine::observer::Observer;
use rota_engine::surroundings::Surroundings;
use rota_model::user::KeyHash;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::Needs;
use crate::accounts::Accounts;

/// How long the address that is printed at the start signs a browser in.
const CODE_LIFE: Duration = Duration::from_secs(15 * 60);

pub struct App {
    pub desk: Arc<JobDesk>,
    pub fleet: Fleet,
    pub logbook: Logbook,
    pub board: Board,
    pub observer: Observer,
    pub accounts: Accounts,
    pub sign_in_code: SignInCode,
    /// Ends the streams when the process stops.
    pub stop: CancellationToken,
    pub(crate) needs: Needs,
}

impl App {
    /// Serves what a node offers.
    pub fn new(node: &Node, accounts: Accounts, stop: CancellationToken) -> Self {
        let needs = Needs::of(&crate::contract::document());
        let (desk, fleet, logbook) = (Arc::clone(&node.desk), node.fleet.clone(), node.logbook.clone());
        let (board, observer) = (node.board.clone(), node.observer.clone());
        let sign_in_code = SignInCode::default();
        Self { desk, fleet, logbook, board, observer, accounts, sign_in_code, stop, needs }
    }
}

/// A code that signs the first administrator's browser in, once.
#[derive(Default)]
pub struct SignInCode(Mutex<Option<(KeyHash, Instant)>>);

impl SignInCode {
    /// Makes a new code; the one before ends.
    pub fn issue(&self, surroundings: &Surroundings) -> String {
        let code = URL_SAFE_NO_PAD.encode(surroundings.random_bytes::<24>());
        let issued = (KeyHash::of(&code), Instant::now() + CODE_LIFE);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(issued);
        code
    }

    /// Whether this is the code; it is good only once.
    pub fn redeem(&self, code: &str) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let good =
            held.as_ref().is_some_and(|(hash, end)| hash.equals(&KeyHash::of(code)) && *end > Instant::now());
        if good {
            *held = None;
        }
        good
    }
}
