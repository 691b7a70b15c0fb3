//! People, programs and their keys. Only the web service has this repository (seed 000): [`crate::access`] hands it out.

use rota_model::check::Invalid;
use rota_model::time::UnixMillis;
use rota_model::user::{KeyHash, User, UserId};
use serde_json::json;

use crate::StoreError;
use crate::collection::{Collection, USERS};
use crate::cursor::Cursor;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Updated, Versioned};
use crate::seam::Key;

impl Kept for User {
    const COLLECTION: &'static Collection = &USERS;
}

#[derive(Clone)]
pub struct Users {
    users: Repository<User>,
}

impl Users {
    pub(crate) fn new(users: Repository<User>) -> Self {
        Self { users }
    }

    pub async fn create(&self, user: User) -> Result<Created<User>, StoreError> {
        self.users.create(Key::new(&USERS, &user.id), user).await
    }

    pub async fn get(&self, id: &UserId) -> Result<Option<Versioned<User>>, StoreError> {
        self.users.get(Key::new(&USERS, id)).await
    }

    pub async fn update(
        &self,
        id: &UserId,
        change: impl Fn(&mut User) -> Result<(), Invalid>,
    ) -> Result<Updated<User, Invalid>, StoreError> {
        self.users.update(Key::new(&USERS, id), change).await
    }

    pub async fn delete(&self, user: &Versioned<User>, at: UnixMillis) -> Result<Saved, StoreError> {
        self.users.delete(user, at).await
    }

    pub async fn list(
        &self,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<User>>, Option<Cursor>), StoreError> {
        let mut query = Query::new(&USERS, Order::BY_ID).limit(limit);
        query.after = after;
        self.users.find(query).await
    }

    /// Whoever holds the key with this hash.
    pub async fn by_key(&self, hash: &KeyHash) -> Result<Option<User>, StoreError> {
        let query = Query::new(&USERS, Order::BY_ID)
            .filter(Filter::Is("hashed_api_key", json!(hash.as_str())))
            .limit(1);
        let (found, _) = self.users.find(query).await?;
        Ok(found.into_iter().next().map(|user| user.document))
    }
}
