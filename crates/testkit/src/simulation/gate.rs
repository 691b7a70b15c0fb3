//! Stands before every task of a process. Shut, it lets none of them do anything, while their timers run on: that is a
//! process that is frozen. Dead, it has dropped them all: that is a crash.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

type Task = BoxFuture<'static, ()>;

#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    state: State,
    next: u64,
    tasks: BTreeMap<u64, Held>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Shut,
    Dead,
}

#[derive(Default)]
struct Held {
    /// None while it is being polled.
    task: Option<Task>,
    waker: Option<Waker>,
}

impl Gate {
    pub fn shut(&self) {
        self.inside().state = State::Shut;
    }

    /// Lets all tasks go on, in an order by chance.
    pub fn open(&self, dice: &mut StdRng) {
        let mut inside = self.inside();
        inside.state = State::Open;
        let mut wakers: Vec<Waker> = inside.tasks.values_mut().filter_map(|held| held.waker.take()).collect();
        drop(inside);
        wakers.shuffle(dice);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Drops every task, now. The gate lets nothing through ever again.
    pub fn kill(&self) {
        let mut inside = self.inside();
        inside.state = State::Dead;
        let tasks = std::mem::take(&mut inside.tasks);
        drop(inside);
        for held in tasks.into_values() {
            drop(held.task);
            held.waker.into_iter().for_each(Waker::wake);
        }
    }

    pub fn hold(&self, task: Task) -> Passage {
        let mut inside = self.inside();
        let number = inside.next;
        inside.next += 1;
        if inside.state != State::Dead {
            inside.tasks.insert(number, Held { task: Some(task), waker: None });
        }
        drop(inside);
        Passage { gate: self.clone(), number }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl rota_engine::surroundings::Gate for Gate {
    fn hold(&self, task: Task) -> Task {
        Box::pin(Gate::hold(self, task))
    }
}

/// A task behind a gate.
pub struct Passage {
    gate: Gate,
    number: u64,
}

impl Future for Passage {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inside = self.gate.inside();
        let is_open = inside.state == State::Open;
        let Some(held) = inside.tasks.get_mut(&self.number) else { return Poll::Ready(()) };
        held.waker = Some(cx.waker().clone());
        if !is_open {
            return Poll::Pending;
        }
        let Some(mut task) = held.task.take() else { return Poll::Ready(()) };
        drop(inside);
        if task.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // Whoever crashed by its own doing is not put back.
        if let Some(held) = self.gate.inside().tasks.get_mut(&self.number) {
            held.task = Some(task);
        }
        Poll::Pending
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let held = self.gate.inside().tasks.remove(&self.number);
        drop(held);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use rand::SeedableRng;
    use tokio::time::sleep;

    use super::*;

    /// A task that counts seconds, and says when it was dropped.
    fn counting(gate: &Gate) -> (Arc<AtomicU32>, Arc<AtomicU32>) {
        struct Dropped(Arc<AtomicU32>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (count, dropped) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (counted, guard) = (Arc::clone(&count), Dropped(Arc::clone(&dropped)));
        tokio::spawn(gate.hold(Box::pin(async move {
            let _guard = guard;
            loop {
                sleep(Duration::from_secs(1)).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        })));
        (count, dropped)
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_frozen_does_nothing_and_goes_on_when_thawed() {
        let gate = Gate::default();
        let (count, dropped) = counting(&gate);
        sleep(Duration::from_millis(2_500)).await;
        gate.shut();
        sleep(Duration::from_secs(10)).await;
        assert_eq!(count.load(Ordering::Relaxed), 2);
        gate.open(&mut StdRng::seed_from_u64(1));
        sleep(Duration::from_millis(1)).await;
        assert_eq!(count.load(Ordering::Relaxed), 3, "its timer ran on");
        sleep(Duration::from_secs(1)).await;
        assert_eq!((count.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed)), (4, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_crashes_is_dropped_at_once_and_begins_nothing() {
        let gate = Gate::default();
        let (count, dropped) = counting(&gate);
        sleep(Duration::from_millis(1_500)).await;
        gate.kill();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        let (later, _) = counting(&gate);
        sleep(Duration::from_secs(10)).await;
        assert_eq!((count.load(Ordering::Relaxed), later.load(Ordering::Relaxed)), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_is_aborted_is_dropped() {
        let gate = Gate::default();
        let task = tokio::spawn(gate.hold(Box::pin(std::future::pending())));
        task.abort();
        let _ = task.await;
        assert!(gate.inside().tasks.is_empty());
    }
}
