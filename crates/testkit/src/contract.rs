//! The contract of the seam: one suite, run on every store. `store_contract!(make)` makes a test of each promise;
//! `make` returns a fresh, empty store and whatever must live as long as it.
//!
//! - [`writing`], [`deleting`], [`finding`], [`paging`], [`domains`], [`counting`], [`claiming`], [`numbers`],
//!   [`hints`], [`text`]: what the verbs promise
//! - [`survival`], [`bad_input`]: what is odd comes back as it was, what is wrong is refused
//! - [`histories`]: random histories, one after the other and many at once, held against the in-memory store
//! - [`examples`], [`verbs`], [`patience`]: what the tests are written with
//!
//! A store may show what was written a little later to those who find, count or claim. Tests wait for that with
//! [`patience::eventually`], which is strict with a store that promises no lag.

pub mod bad_input;
pub mod claiming;
pub mod counting;
pub mod deleting;
pub mod domains;
mod examples;
pub mod finding;
pub mod hints;
pub mod histories;
pub mod numbers;
pub mod paging;
mod patience;
pub mod survival;
pub mod text;
mod verbs;
pub mod writing;

use std::sync::Arc;

use rota_store::Store;

pub type Subject = Arc<dyn Store>;

/// Makes a test of every promise.
#[macro_export]
macro_rules! store_contract {
    ($make:expr) => {
        $crate::store_contract!(@each $make, writing:
            an_id_is_taken_once, a_write_needs_the_version, what_is_not_there_is_missing, fields_change_on_their_own,
            a_change_of_nothing_is_a_new_version, a_change_makes_what_it_stands_in, a_field_has_one_value,
            a_replace_leaves_nothing_of_what_was, answers_come_in_order, a_batch_may_write_a_document_several_times,
            neighbours_do_not_matter, a_version_is_never_used_again, a_batch_may_be_as_large_as_the_limit,
            one_of_many_is_first, a_field_that_is_set_can_be_read);
        $crate::store_contract!(@each $make, deleting:
            what_is_hidden_is_not_seen, a_hidden_id_stays_taken, hidden_documents_are_found_from_their_instant_on,
            hidden_documents_are_listed_like_others, purging_frees_the_id, only_what_is_hidden_is_purged,
            what_is_not_hidden_is_gone_at_once, what_was_deleted_first_is_purged_first);
        $crate::store_contract!(@each $make, finding:
            keywords_are_compared_as_a_whole, integers_are_compared_as_numbers,
            several_texts_are_found_by_each_of_them, instants_are_compared_however_they_are_spelt,
            all_filters_hold_together, what_changed_is_found_by_what_it_is_now, texts_go_by_their_characters,
            orders_are_total, a_value_that_few_have_finds_few_and_orders_all, keys_are_found_without_bodies, collections_are_apart);
        $crate::store_contract!(@each $make, paging:
            pages_show_each_once, a_page_may_be_as_large_as_the_limit, pages_go_on_among_equals_and_absences, the_first_of_each_value_is_found,
            a_cursor_outlives_its_document, a_cursor_from_elsewhere_is_refused, a_mangled_cursor_is_refused, a_forged_cursor_does_no_harm,
            a_walk_shows_what_stays_once);
        $crate::store_contract!(@each $make, domains:
            an_id_is_free_in_every_domain, a_domain_is_asked_by_itself, all_domains_are_one_list,
            equal_documents_of_all_domains_are_shown_once);
        $crate::store_contract!(@each $make, counting:
            totals_follow_every_write, totals_ignore_what_was_not_applied, totals_follow_a_batch,
            totals_come_by_value, a_count_counts_beyond_the_page, a_domain_is_counted_by_itself);
        $crate::store_contract!(@each $make, claiming:
            claims_never_overlap, a_claim_marks_what_it_takes, a_claim_answers_with_what_is_there, a_claim_is_found_again,
            a_claim_adds_one_to_what_is_there, a_claim_asks_its_queries_in_order,
            a_claim_may_be_about_anything_that_changes, a_claim_takes_a_document_once,
            a_claim_adds_nothing_to_the_last_number, claims_and_changes_lose_nothing);
        $crate::store_contract!(@each $make, numbers:
            numbers_are_never_given_twice, every_sequence_has_its_own_numbers, too_many_numbers_are_refused);
        $crate::store_contract!(@each $make, hints:
            every_change_is_hinted, a_hint_names_its_domain, all_listeners_hear_of_it, who_falls_behind_is_told,
            listeners_hold_nobody_up);
        $crate::store_contract!(@each $make, text:
            words_are_found_where_they_are_searched, a_star_finds_what_begins_like_it, what_is_typed_is_only_words,
            words_of_many_writings_are_found, words_that_no_longer_stand_there_are_not_found,
            words_stay_while_other_fields_change, words_are_one_filter_among_others,
            words_of_logs_and_timers_are_found);
        $crate::store_contract!(@each $make, survival:
            odd_text_survives, ids_are_what_they_are, large_documents_survive, numbers_survive, emptiness_survives,
            any_json_survives, deep_documents_survive_or_are_refused, nul_characters_survive_or_are_refused, any_name_of_a_member_survives,
            what_stands_in_the_place_of_a_parent_survives);
        $crate::store_contract!(@each $make, bad_input:
            wrong_keys_are_refused, wrong_bodies_are_refused, too_much_is_refused, wrong_changes_are_refused,
            wrong_questions_are_refused, wrong_claims_are_refused);
        $crate::store_contract!(@each $make, histories:
            random_histories_are_the_models, concurrent_histories_are_chains);
    };
    (@each $make:expr, $room:ident: $($promise:ident),+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $promise() {
            let (store, _alive) = $make();
            $crate::contract::$room::$promise(store).await;
        }
    )+};
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// A promise that the macro does not name would never be tested.
    #[test]
    fn every_promise_is_named() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/contract");
        let named = include_str!("contract.rs").split(|c: char| !c.is_alphanumeric() && c != '_');
        let named: Vec<&str> = named.collect();
        let mut promises = 0;
        for file in
            std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|file| file.path().is_file())
        {
            let text = std::fs::read_to_string(file.path()).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let promise = line.split('(').next().unwrap();
                assert!(named.contains(&promise), "{promise} in {:?}", file.file_name());
                promises += 1;
            }
        }
        assert!(promises > 80, "{promises}");
    }
}
