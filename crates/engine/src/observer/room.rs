//! Where moments wait for those who listen: one room for each topic. A moment is what changed since the one before; it is
//! made once, and everybody who listens looks at the same.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::select_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Shared, Topic};

/// The shortest time between two updates to a listener: four in a second.
pub(super) const PACE: Duration = Duration::from_millis(250);
/// How many moments a listener may be behind and still get what changed in them.
const KEPT: usize = 8;

/// A document as JSON, under the name of what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub kind: &'static str,
    pub json: Arc<str>,
}

/// What changed.
#[derive(Debug, Default)]
pub struct Moment {
    /// By id, so that a later state of a document takes the place of an earlier one.
    changed: BTreeMap<String, Said>,
    counts: Option<Said>,
    /// Whether more happened than is said here.
    reload: bool,
    shown: OnceLock<Arc<[u8]>>,
}

impl Moment {
    pub(super) fn of(changed: BTreeMap<String, Said>, counts: Option<Said>, reload: bool) -> Self {
        Self { changed, counts, reload, shown: OnceLock::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.counts.is_none() && !self.reload
    }

    /// What changed, document by document.
    pub fn said(&self) -> impl Iterator<Item = &Said> {
        self.changed.values().chain(&self.counts)
    }

    /// Whether more happened than is said here, so that who wants to know must read.
    pub fn is_incomplete(&self) -> bool {
        self.reload
    }

    /// As somebody shows it; made by the first who asks, for all.
    pub fn shown(&self, show: impl FnOnce(&Self) -> String) -> Arc<[u8]> {
        Arc::clone(self.shown.get_or_init(|| show(self).into_bytes().into()))
    }

    /// Several as one: the newest state wins.
    fn together<'a>(moments: impl Iterator<Item = &'a Arc<Moment>>) -> Self {
        let mut all = Moment::default();
        for moment in moments {
            all.changed.extend(moment.changed.iter().map(|(id, said)| (id.clone(), said.clone())));
            all.counts = moment.counts.clone().or(all.counts);
            all.reload |= moment.reload;
        }
        all
    }
}

/// The newest moments, and how things stand after them.
#[derive(Default)]
struct Recent {
    /// The number of the newest.
    number: u64,
    moments: VecDeque<Arc<Moment>>,
    counts: Option<Said>,
}

pub(super) struct Room(watch::Sender<Recent>);

impl Default for Room {
    fn default() -> Self {
        Self(watch::Sender::new(Recent::default()))
    }
}

impl Room {
    pub(super) fn listeners(&self) -> usize {
        self.0.receiver_count()
    }

    /// Whether those who come are told how things stand.
    pub(super) fn knows_counts(&self) -> bool {
        self.0.borrow().counts.is_some()
    }

    pub(super) fn tell(&self, moment: Moment) {
        if moment.is_empty() {
            return;
        }
        self.0.send_modify(|recent| {
            recent.counts = moment.counts.clone().or(recent.counts.take());
            recent.number += 1;
            recent.moments.push_back(Arc::new(moment));
            if recent.moments.len() > KEPT {
                recent.moments.pop_front();
            }
        });
    }
}

/// One who listens. It leaves its rooms when it is dropped, and an empty room goes.
pub struct Listener {
    shared: Arc<Shared>,
    ears: Vec<Ear>,
    /// No update before this.
    paced: Instant,
}

struct Ear {
    topic: Topic,
    /// There until dropped.
    recent: Option<watch::Receiver<Recent>>,
    /// The last moment that was heard.
    heard: u64,
    /// Whether it was told how things stand.
    knows: bool,
}

impl Listener {
    pub(super) fn new(shared: Arc<Shared>, rooms: Vec<(Topic, Arc<Room>)>) -> Self {
        let ear = |(topic, room): (Topic, Arc<Room>)| {
            let recent = room.0.subscribe();
            let heard = recent.borrow().number;
            Ear { topic, recent: Some(recent), heard, knows: false }
        };
        let ears = rooms.into_iter().map(ear).collect();
        shared.listeners.fetch_add(1, Ordering::Relaxed);
        Self { shared, ears, paced: Instant::now() }
    }

    /// What is new, in one piece for each topic; nothing if it was quiet for so long. None if nobody will tell any more.
    /// Whoever gives up waiting loses nothing.
    pub async fn next(&mut self, patience: Duration) -> Option<Vec<Arc<Moment>>> {
        let end = Instant::now() + patience;
        loop {
            sleep_until(self.paced.min(end)).await;
            if Instant::now() >= self.paced {
                let news: Vec<_> = self.ears.iter_mut().filter_map(Ear::news).collect();
                if !news.is_empty() {
                    self.paced = Instant::now() + PACE;
                    return Some(news);
                }
            }
            let changes = self.ears.iter_mut().map(|ear| Box::pin(ear.changed()));
            match timeout_at(end, select_all(changes)).await {
                Ok((true, ..)) => {}
                Ok((false, ..)) => return None,
                Err(_) => return Some(Vec::new()),
            }
        }
    }
}

impl Ear {
    async fn changed(&mut self) -> bool {
        match &mut self.recent {
            Some(recent) => recent.changed().await.is_ok(),
            None => false,
        }
    }

    fn news(&mut self) -> Option<Arc<Moment>> {
        let recent = self.recent.as_mut()?.borrow_and_update();
        let missed = usize::try_from(recent.number - self.heard).unwrap_or(usize::MAX);
        self.heard = recent.number;
        let knew = self.knows;
        self.knows |= recent.counts.is_some();
        match missed {
            0 if knew => None,
            0 => {
                let counts = recent.counts.clone()?;
                Some(Arc::new(Moment::of(BTreeMap::new(), Some(counts), false)))
            }
            1 if knew || recent.counts.is_none() => recent.moments.back().cloned(),
            few if few <= recent.moments.len() => {
                let since = recent.moments.len() - few;
                let mut moment = Moment::together(recent.moments.range(since..));
                if !knew {
                    moment.counts.clone_from(&recent.counts);
                }
                Some(Arc::new(moment))
            }
            _ => Some(Arc::new(Moment::of(BTreeMap::new(), recent.counts.clone(), true))),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.listeners.fetch_sub(1, Ordering::Relaxed);
        let mut rooms = self.shared.rooms();
        for ear in &mut self.ears {
            // Ours goes while the rooms are ours: then a room without listeners is really empty.
            ear.recent = None;
            if rooms.get(&ear.topic).is_some_and(|room| room.listeners() == 0) {
                rooms.remove(&ear.topic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(json: &str) -> Said {
        Said { kind: "job", json: json.into() }
    }

    fn changed(id: &str, json: &str) -> Moment {
        Moment::of([(id.to_owned(), said(json))].into(), None, false)
    }

    fn ear(room: &Room) -> Ear {
        let recent = room.0.subscribe();
        let heard = recent.borrow().number;
        Ear { topic: Topic::Nodes, recent: Some(recent), heard, knows: false }
    }

    fn texts(moment: &Moment) -> Vec<&str> {
        moment.said().map(|said| &*said.json).collect()
    }

    #[test]
    fn everybody_is_shown_the_same_and_it_is_made_once() {
        let room = Room::default();
        let (mut one, mut two) = (ear(&room), ear(&room));
        room.tell(changed("a", "1"));
        let (first, second) = (one.news().unwrap(), two.news().unwrap());
        let shown = first.shown(|_| "made".to_owned());
        assert_eq!(second.shown(|_| unreachable!()), shown);
        assert!(one.news().is_none());
    }

    #[test]
    fn who_is_slow_gets_the_newest_state_and_who_is_too_slow_is_told_to_read() {
        let room = Room::default();
        let mut slow = ear(&room);
        for json in ["1", "2", "3"] {
            room.tell(changed("a", json));
        }
        room.tell(changed("b", "4"));
        let moment = slow.news().unwrap();
        assert_eq!((texts(&moment), moment.is_incomplete()), (vec!["3", "4"], false));
        for _ in 0..=KEPT {
            room.tell(changed("a", "5"));
        }
        let moment = slow.news().unwrap();
        assert_eq!((texts(&moment), moment.is_incomplete()), (vec![], true));
    }

    #[test]
    fn who_comes_is_told_how_things_stand() {
        let room = Room::default();
        room.tell(Moment::of(BTreeMap::new(), Some(said("many")), false));
        let mut late = ear(&room);
        assert_eq!(texts(&late.news().unwrap()), ["many"]);
        assert!(late.news().is_none());
        let mut later = ear(&room);
        room.tell(changed("a", "1"));
        assert_eq!(texts(&later.news().unwrap()), ["1", "many"]);
    }
}
