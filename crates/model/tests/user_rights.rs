//! What a key allows: never more than its user has, and never after its end.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rota_model::domain::Domain;
use rota_model::user::{
    KeyHash, KeyInfo, MAX_SESSIONS, NewKey, Role, User, UserId, UserSettings, check_given_key,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn domain(name: &str) -> Domain {
    name.parse().unwrap()
}

fn user(installation_admin: bool, red: Option<Role>) -> User {
    let domains = red.map(|role| (domain("red"), role)).into_iter().collect();
    let settings = UserSettings { domains, installation_admin, ..UserSettings::default() };
    User::new("local:uma".parse().unwrap(), settings, NOW)
}

fn add(user: &mut User, key: &str, new: NewKey) {
    user.add_key(KeyHash::of(key), new.into_info(key, NOW), NOW).unwrap();
}

fn role() -> impl Strategy<Value = Option<Role>> {
    prop::option::of(prop::sample::select(Role::ALL.to_vec()))
}

proptest! {
    #[test]
    fn a_key_carries_at_most_its_users_rights(
        admin in any::<bool>(), red in role(), cap in role(), limit in prop::option::of(prop::sample::select(vec!["red", "blue"])),
    ) {
        let mut user = user(admin, red);
        let new = NewKey { name: "k".into(), role: cap, domain: limit.map(domain), ..NewKey::default() };
        add(&mut user, "the limited key", new);
        add(&mut user, "the whole key", NewKey { name: "w".into(), ..NewKey::default() });
        let limited = user.rights_by_key(&KeyHash::of("the limited key"), NOW).unwrap();
        let whole = user.rights_by_key(&KeyHash::of("the whole key"), NOW).unwrap();
        prop_assert_eq!(whole.installation, admin);
        prop_assert_eq!(limited.installation, admin && cap.is_none() && limit.is_none());
        for name in ["red", "blue", "green"] {
            let (held, full) = (limited.role_in(&domain(name)), whole.role_in(&domain(name)));
            prop_assert!(held <= full, "{name}: {held:?} of {full:?}");
            prop_assert!(cap.is_none_or(|cap| held <= Some(cap)));
            let outside = limit.is_some_and(|only| only != name);
            let expected = full.filter(|_| !outside).map(|full| full.min(cap.unwrap_or(Role::Admin)));
            prop_assert_eq!(held, expected);
        }
    }
}

#[test]
fn a_key_ends_and_makes_room() {
    let mut user = user(false, Some(Role::Viewer));
    let end = NOW + SignedDuration::from_secs(60);
    add(&mut user, "short-lived", NewKey { name: "s".into(), expires: Some(end), ..NewKey::default() });
    let hash = KeyHash::of("short-lived");
    assert!(user.rights_by_key(&hash, NOW).is_some());
    assert!(user.rights_by_key(&hash, end).is_none());
    assert!(user.rights_by_key(&KeyHash::of("another"), NOW).is_none());
    user.add_key(KeyHash::of("next"), NewKey::default().into_info("next", end), end).unwrap();
    assert_eq!((user.keys.len(), user.hashed_api_key.len()), (1, 1), "what has ended is forgotten");
    assert!(user.remove_key(KeyHash::of("next").key_id()));
    assert!(!user.remove_key(KeyHash::of("next").key_id()));
}

#[test]
fn a_session_ends_with_its_key_and_never_takes_a_keys_place() {
    let mut user = user(false, Some(Role::Viewer));
    add(&mut user, "the parent", NewKey { name: "p".into(), ..NewKey::default() });
    let parent = KeyHash::of("the parent").key_id().to_owned();
    for n in 0..MAX_SESSIONS + 5 {
        let key = format!("session {n}");
        let info = NewKey::default().into_info(&key, NOW);
        let info = KeyInfo { session: true, parent: Some(parent.clone()), ..info };
        user.add_key(KeyHash::of(&key), info, NOW).unwrap();
    }
    assert_eq!(user.keys.len(), MAX_SESSIONS + 1);
    assert!(user.rights_by_key(&KeyHash::of("the parent"), NOW).is_some());
    assert!(user.rights_by_key(&KeyHash::of("session 0"), NOW).is_none(), "the oldest ended");
    assert!(user.remove_key(&parent));
    assert_eq!((user.keys.len(), user.hashed_api_key.len()), (0, 0));
}

#[test]
fn the_seeds_single_hash_is_read_as_one_of_many() {
    let hash = KeyHash::of("the only key");
    let seed = serde_json::json!({"id": "google:1093", "hashed_api_key": hash.as_str()});
    let user: User = serde_json::from_value(seed).unwrap();
    assert!(user.rights_by_key(&hash, NOW).is_some());
    assert!(!format!("{user:?}").contains(hash.as_str()));
}

#[test]
fn ids_and_given_keys_have_their_form() {
    for good in ["local:admin", "google:1093", "my-idp:alice@example.org"] {
        assert_eq!(good.parse::<UserId>().unwrap().as_str(), good);
    }
    for bad in ["", "admin", ":x", "local:", "Local:x", "local:a b", "local:a/b", "local:\u{7}"] {
        assert!(bad.parse::<UserId>().is_err(), "{bad:?}");
    }
    assert!(check_given_key("sixteen-letters!").is_ok());
    for bad in ["short", "with a space in it", "umlaut-umläut-umlaut", &"x".repeat(257)] {
        assert!(check_given_key(bad).is_err(), "{bad:?}");
    }
}
