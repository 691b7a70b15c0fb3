//! Several callers at once, over HTTP, through all lives of the program. Whoever named a request and heard nothing repeats it in
//! the next life, and now and then one that was answered; the others leave it in doubt.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rota_client::Client;
use rota_testkit::process::{KEY, Rota};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::ledger::Ledger;
use crate::requests::{Duty, Heard, Request, Whims};

const DUTIES: [Duty; 6] =
    [Duty::Singles, Duty::Singles, Duty::Batches, Duty::Batches, Duty::Twins, Duty::Changes];

/// How things stand with the program.
#[derive(Clone, Debug)]
enum Times {
    Down,
    Up(String),
    /// Nothing new is asked for; what was named and not answered is repeated.
    Last(String),
}

pub(crate) struct Load {
    times: watch::Sender<Times>,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn new(ledger: &Arc<Ledger>, dice: &mut StdRng) -> Self {
        let times = watch::Sender::new(Times::Down);
        let caller = |(nth, duty): (usize, Duty)| Caller {
            times: times.subscribe(),
            ledger: Arc::clone(ledger),
            whims: Whims::new(duty, nth, StdRng::seed_from_u64(dice.random())),
        };
        let callers = DUTIES.into_iter().enumerate().map(caller);
        let callers = callers.map(|caller| tokio::spawn(caller.call_on())).collect();
        Self { times, callers }
    }

    pub(crate) fn rota_is_up(&self, rota: &Rota) {
        self.times.send_replace(Times::Up(rota.url.clone()));
    }

    pub(crate) fn rota_is_down(&self) {
        self.times.send_replace(Times::Down);
    }

    /// None of the callers saw what must not be.
    pub(crate) fn must_go_on(&self) {
        let all = self.callers.iter().all(|caller| !caller.is_finished());
        assert!(all, "a caller saw a fault and ended");
    }

    /// Ends when every caller knows of all that it named.
    pub(crate) async fn end(self, rota: &Rota) {
        self.times.send_replace(Times::Last(rota.url.clone()));
        for caller in self.callers {
            caller.await.unwrap();
        }
    }
}

struct Caller {
    times: watch::Receiver<Times>,
    ledger: Arc<Ledger>,
    whims: Whims,
}

impl Caller {
    async fn call_on(mut self) {
        let mut open: Option<Request> = None;
        loop {
            let times = self.times.borrow_and_update().clone();
            let (url, last) = match times {
                Times::Up(url) => (url, false),
                Times::Last(url) => (url, true),
                Times::Down => {
                    self.times.changed().await.unwrap();
                    continue;
                }
            };
            let client = Client::new(&url, KEY).unwrap();
            while !self.times.has_changed().unwrap() {
                let request = match open.take() {
                    Some(request) => request,
                    None if last => return,
                    None => self.whims.request(&self.ledger).await,
                };
                let heard = request.send(&client, &self.ledger).await;
                let again = request.is_named() && (heard == Heard::Nothing || self.whims.repeats(&request));
                open = again.then_some(request);
                if heard == Heard::Nothing {
                    self.until_it_answers(last).await;
                    break;
                }
            }
        }
    }

    /// Whoever got no answer asks again in the next life; in the last one, a little later.
    async fn until_it_answers(&mut self, last: bool) {
        if last {
            sleep(Duration::from_millis(50)).await;
        } else {
            self.times.changed().await.unwrap();
        }
    }
}
