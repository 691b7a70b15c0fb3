//! What a node does again and again, each a task of its own that ends with the node.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rota_model::log::Level;
use rota_store::StoreError;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Life, tell_of_taken};
use crate::flaws::Flaw;
use crate::maintenance::Maintenance;
use crate::membership::{Beat, HEARTBEAT, Membership, Rejoined};
use crate::meter::Latency;
use crate::patience::{Complaint, STORE_PAUSE};
use crate::watching::Watching;

/// How long a look through the queue may take.
const SEARCH: Duration = Duration::from_secs(30);
/// How often the watchdog looks at least: a clock that stood still while the machine slept must not be trusted for long.
const WATCHDOG: Duration = Duration::from_millis(250);

/// Says that the node lives, until its life is over; then says goodbye.
pub(super) async fn beat(
    life: Arc<Life>,
    mut membership: Membership,
    over: CancellationToken,
    stop: CancellationToken,
) {
    let mut complaint = Complaint::default();
    let mut due = life.surroundings.elapsed();
    loop {
        // Who slept is not saved by the beat that it sends when it wakes: what it ran may be another's by now.
        life.stop_if_over();
        let sent = life.surroundings.elapsed();
        let beaten = membership.beat(&life.doing()).await;
        if let Ok(Beat::Acknowledged) = beaten {
            let lag = life.surroundings.elapsed().saturating_sub(due.min(sent));
            life.surroundings.meter().record(Latency::HeartbeatLag, lag);
            due = sent + HEARTBEAT;
        }
        if let Ok(Beat::Acknowledged | Beat::Overtaken) = beaten {
            life.calls.beats.fetch_add(1, Ordering::Relaxed);
            life.obey(membership.wanted());
        }
        let pause = match beaten {
            Ok(Beat::Acknowledged) => HEARTBEAT,
            Ok(Beat::Overtaken) => continue,
            Ok(Beat::Condemned) if rejoin(&life, &mut membership, &over).await => STORE_PAUSE,
            Ok(Beat::Condemned | Beat::Superseded) => {
                let title = "another process lives under the id of this node; this one stops";
                life.surroundings.journal().tell(Level::Error, title);
                life.lease.end();
                life.processor.abandon();
                stop.cancel();
                return;
            }
            Err(error) => {
                life.surroundings.journal().complain(&mut complaint, "the heartbeat was not recorded", error);
                STORE_PAUSE
            }
        };
        tokio::select! {
            biased;
            () = over.cancelled() => break,
            () = life.calls.beat_now.notified() => {}
            () = sleep(pause) => {}
        }
    }
    if let Err(error) = membership.leave().await {
        tracing::warn!(%error, "cannot say goodbye");
    }
}

/// Others took us for dead: what we run is theirs by now. Says whether our id is still ours.
async fn rejoin(life: &Arc<Life>, membership: &mut Membership, over: &CancellationToken) -> bool {
    if !life.surroundings.has(Flaw::RejoinsAsTheSame) {
        life.lease.end();
        let stopped = life.processor.abandon();
        let title = "others took this node for dead; it joins again";
        life.surroundings.journal().tell_with(Level::Warn, title, format!("{stopped} jobs were stopped"));
    }
    let mut complaint = Complaint::default();
    loop {
        match membership.rejoin().await {
            Ok(Rejoined::Superseded) => return false,
            Ok(rejoined) => {
                // Nothing is claimed before the new life has both: its name and its lease.
                life.obey(membership.wanted());
                life.processor.set_holder(membership.holder());
                if let Rejoined::Now(sent) = rejoined {
                    life.lease.renew(sent);
                }
                return true;
            }
            Err(_) if over.is_cancelled() => return true,
            Err(error) => {
                let title = "cannot join again; trying once more";
                life.surroundings.journal().complain(&mut complaint, title, error);
                sleep(STORE_PAUSE).await;
            }
        }
    }
}

pub(super) async fn watch(life: Arc<Life>, mut watching: Watching) {
    let mut complaint = Complaint::default();
    loop {
        if let Err(error) = watching.look(&life).await {
            let title = "cannot read the state of the nodes";
            life.surroundings.journal().complain(&mut complaint, title, error);
        }
        sleep(crate::watch::EVERY).await;
    }
}

/// Queues again what nobody runs, and stops what is ours no more.
pub(super) async fn recover(life: Arc<Life>) {
    let mut complaint = Complaint::default();
    loop {
        match within(SEARCH, life.processor.recover(&life.nodes, life.exclusive)).await {
            Ok(taken) => tell_of_taken(&life.surroundings, taken),
            Err(error) => {
                let title = "cannot look for jobs whose holder is gone";
                life.surroundings.journal().complain(&mut complaint, title, error);
            }
        }
        let searched_once = life.surroundings.has(Flaw::DeadSearchedOnce);
        tokio::select! {
            biased;
            () = life.calls.recover_now.notified() => {}
            () = sleep(crate::watch::EVERY), if !searched_once => {}
        }
    }
}

/// Stops all handlers when the lease is over.
pub(super) async fn guard(life: Arc<Life>) {
    loop {
        life.stop_if_over();
        let left = life.lease.left();
        sleep(if left.is_zero() { WATCHDOG } else { left.min(WATCHDOG) }).await;
    }
}

/// Nobody waits for ever for a store that does not answer: what was not done is done the next time.
async fn within<T>(
    span: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let ended = timeout(span, call).await;
    ended.unwrap_or_else(|_| Err(StoreError::unavailable("look through the queue", "it took too long")))
}

pub(super) async fn maintain(life: Arc<Life>, mut maintenance: Maintenance) {
    let mut complaint = Complaint::default();
    loop {
        sleep(crate::watch::EVERY).await;
        // One node of the fleet is enough.
        if life.rank() == 0
            && let Err(error) = within(SEARCH, maintenance.tick()).await
        {
            life.surroundings.journal().complain(&mut complaint, "cannot clear out", error);
        }
    }
}
