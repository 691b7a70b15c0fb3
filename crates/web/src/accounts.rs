//! People and programs, their keys, and the domains they may enter. Seed 000 lets the web service alone touch
//! `users`, so this stands here.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rota_engine::surroundings::Surroundings;
use rota_model::check::Invalid;
use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use rota_model::time::UnixMillis;
use rota_model::user::{KeyHash, KeyInfo, NewKey, Rights, User, UserId, UserSettings, new_key};
use rota_store::access::WebService;
use rota_store::collection::DOMAINS;
use rota_store::cursor::Cursor;
use rota_store::domains::Domains;
use rota_store::repository::{Created, Saved, Updated};
use rota_store::users::Users;
use rota_store::{Store, StoreError, Versioned};
use tokio::time::Instant;

use crate::access::Caller;

/// How long a key that was found good is taken to be good. What this process changes counts at once.
const REMEMBER: Duration = Duration::from_secs(2);
/// More keys than this at once are not remembered.
const MAX_REMEMBERED: usize = 10_000;
/// How long a browser stays signed in.
pub const SESSION: Duration = Duration::from_secs(12 * 3_600);

pub struct Accounts {
    users: Users,
    domains: Domains,
    surroundings: Surroundings,
    known_keys: Mutex<KnownKeys>,
    known_domains: Mutex<BTreeSet<Domain>>,
}

/// Who was found to hold a key, and until when that is believed.
#[derive(Default)]
struct KnownKeys {
    callers: HashMap<String, (Caller, Instant)>,
    /// Moves on whenever something is forgotten.
    generation: u64,
}

impl Accounts {
    pub fn new(store: &Arc<dyn Store>, surroundings: Surroundings) -> Self {
        Self {
            users: WebService::new(Arc::clone(store)).users(),
            domains: Domains::new(Arc::clone(store)),
            surroundings,
            known_keys: Mutex::default(),
            known_domains: Mutex::default(),
        }
    }

    /// Makes the first domain and the first administrator. Returns false if there is one already.
    pub async fn bootstrap(&self, key: &str) -> Result<bool, StoreError> {
        self.make_domain(Domain::default(), DomainSettings::default()).await?;
        let settings = UserSettings { installation_admin: true, ..UserSettings::default() };
        let mut admin = User::new(UserId::first_administrator(), settings, self.now());
        let new = NewKey { name: "first key".to_owned(), ..NewKey::default() };
        let added = admin.add_key(KeyHash::of(key), new.into_info(key, self.now()), self.now());
        added.map_err(|error| StoreError::refused("make the administrator", error))?;
        Ok(matches!(self.users.create(admin).await?, Created::New(_)))
    }

    /// Whether there is anybody yet. A first administrator who was removed does not come back.
    pub async fn has_users(&self) -> Result<bool, StoreError> {
        Ok(!self.users.list(1, None).await?.0.is_empty())
    }

    /// Who holds the key with this hash, and what it allows.
    pub async fn authenticate(&self, hash: &KeyHash) -> Result<Option<Caller>, StoreError> {
        if let Some(caller) = self.remembered(hash) {
            return Ok(Some(caller));
        }
        let generation = lock(&self.known_keys).generation;
        let Some(user) = self.users.by_key(hash).await? else { return Ok(None) };
        let Some(rights) = user.rights_by_key(hash, self.now()) else { return Ok(None) };
        let key = user.keys.iter().find(|key| key.id == hash.key_id());
        let limited = key.is_some_and(KeyInfo::is_limited);
        let ends = key.and_then(|key| key.expires);
        let caller = Caller { user: user.id, key: hash.clone(), rights, limited };
        self.remember(hash, &caller, generation, ends);
        Ok(Some(caller))
    }

    fn remembered(&self, hash: &KeyHash) -> Option<Caller> {
        let known = lock(&self.known_keys);
        let (caller, until) = known.callers.get(hash.as_str())?;
        (*until > Instant::now()).then(|| caller.clone())
    }

    /// Remembers what was read, unless something was forgotten meanwhile; never longer than the key is good.
    fn remember(&self, hash: &KeyHash, caller: &Caller, generation: u64, ends: Option<Timestamp>) {
        let left = ends.map_or(REMEMBER, |end| UnixMillis::from(end).since(self.surroundings.now()));
        let mut known = lock(&self.known_keys);
        if known.generation != generation {
            return;
        }
        if known.callers.len() >= MAX_REMEMBERED {
            known.callers.clear();
        }
        let until = Instant::now() + left.min(REMEMBER);
        known.callers.insert(hash.as_str().to_owned(), (caller.clone(), until));
    }

    fn forget_keys(&self) {
        let mut known = lock(&self.known_keys);
        known.callers.clear();
        known.generation += 1;
    }

    /// Adds a key to a user and returns it: the only time it is seen.
    pub async fn create_key(
        &self,
        id: &UserId,
        new: NewKey,
    ) -> Result<Option<(String, KeyInfo)>, AccountError> {
        new.check(self.now())?;
        if let Some(domain) = &new.domain
            && !self.has_domain(domain).await?
        {
            return Err(Invalid::one("/domain", "there is no such domain").into());
        }
        self.add_key(id, |key, now| new.clone().into_info(key, now)).await
    }

    /// Signs a browser in: a key that ends by itself, with the limits of the one it was made from, and with it.
    pub async fn create_session(
        &self,
        id: &UserId,
        from: Option<&KeyInfo>,
    ) -> Result<Option<String>, AccountError> {
        let made = self.add_key(id, |key, now| KeyInfo {
            session: true,
            parent: from.map(|key| key.id.clone()),
            expires: now.checked_add(SESSION).ok().into_iter().chain(from.and_then(|key| key.expires)).min(),
            domain: from.and_then(|key| key.domain.clone()),
            role: from.and_then(|key| key.role),
            ..NewKey { name: "browser".to_owned(), ..NewKey::default() }.into_info(key, now)
        });
        Ok(made.await?.map(|(key, _)| key))
    }

    /// Whether the caller's key is still good, and for this.
    pub async fn still(&self, caller: &Caller, may: impl Fn(&Rights) -> bool) -> Result<bool, StoreError> {
        let now = self.authenticate(&caller.key).await?;
        Ok(now.is_some_and(|caller| may(&caller.rights)))
    }

    async fn add_key(
        &self,
        id: &UserId,
        info: impl Fn(&str, Timestamp) -> KeyInfo,
    ) -> Result<Option<(String, KeyInfo)>, AccountError> {
        let key = new_key(&self.surroundings.random_bytes());
        let (hash, now) = (KeyHash::of(&key), self.now());
        let info = info(&key, now);
        // A session whose key was revoked a moment ago is not made.
        let orphan =
            |user: &User| info.parent.as_ref().is_some_and(|id| !user.keys.iter().any(|key| key.id == *id));
        let added = self.users.update(id, |user| {
            if orphan(user) {
                return Err(Invalid::one("/api_key", "this key was revoked"));
            }
            if user.hashed_api_key.contains(&hash) {
                Ok(())
            } else {
                user.add_key(hash.clone(), info.clone(), now)
            }
        });
        let added = added.await;
        // A session may have made room by ending another.
        self.forget_keys();
        match added? {
            Updated::Done(_) => Ok(Some((key, info))),
            Updated::Refused(invalid) => Err(invalid.into()),
            Updated::Missing => Ok(None),
        }
    }

    /// What is known of a key; none if the user has no such key.
    pub async fn key_info(&self, id: &UserId, key_id: &str) -> Result<Option<KeyInfo>, StoreError> {
        let user = self.users.get(id).await?;
        Ok(user.and_then(|user| user.document.keys.into_iter().find(|key| key.id == key_id)))
    }

    /// Ends a key at once; false if the user has no such key.
    pub async fn revoke_key(&self, id: &UserId, key_id: &str) -> Result<bool, StoreError> {
        let missing = || Invalid::one("/keyId", "no such key");
        let removed =
            self.users.update(id, |user| user.remove_key(key_id).then_some(()).ok_or_else(missing)).await;
        self.forget_keys();
        Ok(matches!(removed?, Updated::Done(_)))
    }

    pub async fn user(&self, id: &UserId) -> Result<Option<Versioned<User>>, StoreError> {
        self.users.get(id).await
    }

    pub async fn users(
        &self,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<User>>, Option<Cursor>), StoreError> {
        self.users.list(limit, after).await
    }

    pub async fn create_user(
        &self,
        id: UserId,
        settings: UserSettings,
    ) -> Result<Option<User>, AccountError> {
        settings.check()?;
        self.must_exist(&settings).await?;
        let user = User::new(id, settings, self.now());
        Ok(self.users.create(user).await?.into_new())
    }

    /// Changes what a user may do; none if there is no such user.
    pub async fn set_user(
        &self,
        id: &UserId,
        settings: UserSettings,
    ) -> Result<Option<Versioned<User>>, AccountError> {
        settings.check()?;
        self.must_exist(&settings).await?;
        let updated = self.users.update(id, |user| {
            user.set(settings.clone());
            Ok(())
        });
        let updated = updated.await;
        self.forget_keys();
        match updated? {
            Updated::Done(user) => Ok(Some(user)),
            Updated::Refused(invalid) => Err(invalid.into()),
            Updated::Missing => Ok(None),
        }
    }

    /// Removes a user with all its keys; false if someone changed or removed it meanwhile.
    pub async fn delete_user(&self, user: &Versioned<User>) -> Result<bool, StoreError> {
        let deleted = self.users.delete(user, self.surroundings.now()).await;
        self.forget_keys();
        Ok(matches!(deleted?, Saved::Applied(_)))
    }

    async fn must_exist(&self, settings: &UserSettings) -> Result<(), AccountError> {
        for domain in settings.domains.keys() {
            if !self.has_domain(domain).await? {
                return Err(Invalid::one(format!("/domains/{domain}"), "there is no such domain").into());
            }
        }
        Ok(())
    }

    /// Makes a domain; none if there is one of that name.
    pub async fn create_domain(
        &self,
        name: Domain,
        settings: DomainSettings,
    ) -> Result<Option<DomainDocument>, AccountError> {
        settings.check()?;
        Ok(self.make_domain(name, settings).await?)
    }

    async fn make_domain(
        &self,
        name: Domain,
        settings: DomainSettings,
    ) -> Result<Option<DomainDocument>, StoreError> {
        let domain = DomainDocument::new(name, self.now(), settings);
        Ok(self.domains.create(domain).await?.into_new())
    }

    pub async fn domain(&self, name: &Domain) -> Result<Option<Versioned<DomainDocument>>, StoreError> {
        self.domains.get(name).await
    }

    /// Changes a domain; none if someone else did meanwhile.
    pub async fn set_domain(
        &self,
        before: Versioned<DomainDocument>,
        settings: DomainSettings,
    ) -> Result<Option<Versioned<DomainDocument>>, AccountError> {
        settings.check()?;
        let document = before.document.clone().with(settings);
        let saved = self.domains.save(&before, &document).await?;
        Ok(match saved {
            Saved::Applied(version) => Some(Versioned { version, document, key: before.key }),
            _ => None,
        })
    }

    pub async fn has_domain(&self, name: &Domain) -> Result<bool, StoreError> {
        if lock(&self.known_domains).contains(name) {
            return Ok(true);
        }
        let found = self.domains.get(name).await?.is_some();
        if found {
            lock(&self.known_domains).insert(name.clone());
        }
        Ok(found)
    }

    /// The domains in which these rights give a role, by name. Neither the list nor its cursor tells of others.
    pub async fn domains(
        &self,
        rights: &Rights,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<DomainDocument>, Option<Cursor>), StoreError> {
        if rights.everywhere.is_some() {
            return self.domains.list(limit, after).await;
        }
        let after = after.as_ref().map(|cursor| cursor.id_in(&DOMAINS)).transpose()?;
        let mut names = rights.domains.keys().filter(|name| after.is_none_or(|after| name.as_str() > after));
        let (mut domains, mut last) = (Vec::new(), None);
        for name in names.by_ref().take(limit) {
            domains.extend(self.domains.get(name).await?.map(|domain| domain.document));
            last = Some(name);
        }
        let last = last.filter(|_| names.next().is_some());
        Ok((domains, last.map(|name| Cursor::behind_id(name.as_str(), &DOMAINS))))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.surroundings.now().to_date()
    }
}

/// Why an account was not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AccountError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AccountError> for crate::problem::Problem {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Invalid(invalid) => invalid.into(),
            AccountError::Store(error) => error.into(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
