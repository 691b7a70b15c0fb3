//! The accounts of a node, and which of them is due when. There may be thousands, one for each key that has work: none of what
//! is done for a claim looks at all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::limit::LimitName;

use super::Account;

/// So many that are of no use any more are closed at a time.
const MOST_CLOSED: usize = 256;

#[derive(Default)]
pub(super) struct Accounts {
    by_name: BTreeMap<Arc<LimitName>, Entry>,
    /// By the ids of their documents.
    by_id: BTreeMap<String, Arc<LimitName>>,
    /// When each is to be balanced, the next first.
    due: BTreeSet<(Duration, Arc<LimitName>)>,
    /// How many stand in line.
    in_line: usize,
}

struct Entry {
    account: Account,
    /// As it stands in `due`.
    due_at: Duration,
    is_in_line: bool,
}

impl Accounts {
    pub(super) fn get(&self, name: &LimitName) -> Option<&Account> {
        self.by_name.get(name).map(|entry| &entry.account)
    }

    /// Changes an account, if there is one.
    pub(super) fn change<R>(
        &mut self,
        name: &LimitName,
        change: impl FnOnce(&mut Account) -> R,
    ) -> Option<R> {
        let (name, _) = self.by_name.get_key_value(name)?;
        let name = Arc::clone(name);
        self.change_known(&name, change)
    }

    /// Changes an account, which is opened if there is none.
    pub(super) fn open<R>(
        &mut self,
        name: &LimitName,
        new: impl FnOnce() -> Account,
        change: impl FnOnce(&mut Account) -> R,
    ) -> Option<R> {
        if !self.by_name.contains_key(name) {
            let (name, account) = (Arc::new(name.clone()), new());
            let entry = Entry { due_at: account.due_at(), is_in_line: false, account };
            self.due.insert((entry.due_at, Arc::clone(&name)));
            self.by_id.insert(name.id(), Arc::clone(&name));
            self.by_name.insert(name, entry);
        }
        self.change(name, change)
    }

    fn change_known<R>(
        &mut self,
        name: &Arc<LimitName>,
        change: impl FnOnce(&mut Account) -> R,
    ) -> Option<R> {
        let entry = self.by_name.get_mut(name)?;
        let changed = change(&mut entry.account);
        let (due_at, is_in_line) = (entry.account.due_at(), entry.account.is_in_line());
        if due_at != entry.due_at {
            self.due.remove(&(entry.due_at, Arc::clone(name)));
            self.due.insert((due_at, Arc::clone(name)));
        }
        self.in_line = self.in_line + usize::from(is_in_line) - usize::from(entry.is_in_line);
        (entry.due_at, entry.is_in_line) = (due_at, is_in_line);
        Some(changed)
    }

    /// Changes those of a type, or all of them.
    pub(super) fn change_all(
        &mut self,
        of: Option<(&Domain, &str)>,
        mut change: impl FnMut(&LimitName, &mut Account),
    ) {
        let first =
            of.map(|(domain, kind)| LimitName { domain: domain.clone(), kind: kind.to_owned(), key: None });
        let is_of =
            |name: &LimitName| of.is_none_or(|(domain, kind)| name.domain == *domain && name.kind == kind);
        let names: Vec<_> = match &first {
            Some(first) => self
                .by_name
                .range::<LimitName, _>(first..)
                .map(|(name, _)| Arc::clone(name))
                .take_while(|name| is_of(name))
                .collect(),
            None => self.by_name.keys().cloned().collect(),
        };
        for name in names {
            self.change_known(&name, |account| change(&name, account));
        }
    }

    pub(super) fn named(&self, id: &str) -> Option<Arc<LimitName>> {
        self.by_id.get(id).cloned()
    }

    /// The types that have accounts.
    pub(super) fn types(&self) -> impl Iterator<Item = (&Domain, &str)> {
        self.by_name.keys().map(|name| (&name.domain, name.kind.as_str()))
    }

    pub(super) fn in_line(&self) -> usize {
        self.in_line
    }

    /// When the next is due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(due_at, _)| *due_at)
    }

    /// Those that are due, the longest due first. Those that are of no use any more are closed.
    pub(super) fn due(&mut self, at: Duration, most: usize) -> Vec<LimitName> {
        let (mut due, mut closed) = (Vec::new(), Vec::new());
        for (_, name) in self.due.iter().take_while(|(due_at, _)| *due_at <= at) {
            let Some(entry) = self.by_name.get(name) else { continue };
            if !entry.account.is_idle(at) {
                due.push(LimitName::clone(name));
            } else if closed.len() < MOST_CLOSED {
                closed.push((entry.due_at, Arc::clone(name)));
            }
            if due.len() == most {
                break;
            }
        }
        closed.iter().for_each(|known| self.close(known));
        due
    }

    /// One that holds nothing stands in no line.
    fn close(&mut self, known: &(Duration, Arc<LimitName>)) {
        self.due.remove(known);
        self.by_name.remove(&known.1);
        self.by_id.remove(&known.1.id());
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }
}
