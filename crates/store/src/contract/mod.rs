//! The suite that every store runs: `store_contract!(name, harness)`.
//!
//! Each test gets a harness of its own, opens the store through it, and restarts it by opening it
//! again without closing, as a process does that was killed.
#![allow(missing_docs, reason = "a test's name is its sentence")]

mod approvals;
mod files;
mod guests;
mod journal;
mod keeping;
mod lives;
mod outbox;
mod past;
mod search;
mod sessions;
mod spending;
mod trace;
mod world;

use std::sync::Arc;

use async_trait::async_trait;

pub use approvals::*;
pub use files::*;
pub use guests::*;
pub use journal::*;
pub use keeping::*;
pub use lives::*;
pub use outbox::*;
pub use past::*;
pub use search::*;
pub use sessions::*;
pub use spending::*;
pub use trace::*;

use crate::Store;

/// Where a store comes from.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Opens the store, empty at first. Every further call opens what the one before left, without
    /// having been closed; the one before is not used any more.
    async fn open(&self) -> Arc<dyn Store>;
}

/// Runs the suite in a module of that name, with a harness made anew for each test.
#[macro_export]
macro_rules! store_contract {
    ($module:ident, $harness:expr) => {
        mod $module {
            use super::*;

            $crate::store_contract! { tests $harness =>
                a_batch_and_its_cursor_are_journalled_together
                a_repeat_keeps_the_first_row_and_reports_its_number
                an_event_twice_in_one_batch_is_one_row
                a_row_that_nobody_answers_after_all_keeps_what_is_left_of_it
                the_same_event_on_another_account_is_another_event
                numbers_follow_arrival_across_accounts
                numbers_are_never_given_twice
                unread_rows_are_those_of_the_key_that_no_step_has_taken
                a_batch_without_a_cursor_leaves_it_where_it_was
                keys_and_addresses_never_collide
                pruning_forgets_only_what_has_ended_before
                pruning_keeps_what_still_has_to_be_delivered
                a_forwarded_row_is_unread_where_it_was_forwarded_to
                what_nobody_will_read_is_dropped_with_the_step_that_says_so
                a_row_that_was_not_let_in_stays_so_and_begins_no_conversation
                a_row_that_nobody_answers_is_known_and_read_by_nobody
                words_that_a_step_conceals_are_gone_with_it
                what_is_known_of_an_event_by_now_takes_the_place_of_what_arrived
                an_event_is_traced_by_its_id_its_message_and_its_chat
                what_came_of_an_event_is_traced_to_its_parcels
                what_is_said_later_about_an_event_is_traced_to_it
                an_event_is_followed_to_the_turn_that_took_it_again
                what_somebody_was_told_before_or_instead_of_an_answer_is_traced
                a_long_turn_is_traced_to_its_end
                what_was_not_answered_is_kept_in_short_and_the_newest_of_each_account
                a_stranger_is_traced_to_what_they_were_told
                approvals_are_traced_from_the_turn_that_asked_for_them
                what_waits_is_told_with_the_age_of_its_oldest

                a_session_comes_back_as_it_was_in_every_phase
                a_step_is_all_or_nothing
                a_life_of_another_conversation_is_refused
                history_is_the_newest_of_one_life_oldest_first
                a_transcript_spans_lives_and_is_read_page_by_page
                entries_come_back_as_they_were
                conversations_are_listed_by_last_use
                restless_sessions_are_found_page_by_page
                everything_is_counted

                parcels_keep_the_order_of_decisions
                chats_do_not_wait_for_each_other
                a_text_takes_over_the_message_of_its_preview
                what_a_preview_shows_beyond_the_text_is_withdrawn
                messages_that_are_gone_are_counted
                a_text_whose_preview_is_on_its_way_is_unsure_until_it_is_settled
                a_preview_that_never_became_visible_leaves_no_doubt
                a_second_preview_does_not_settle_the_first
                a_text_stands_where_it_was_decided_not_where_its_preview_began
                a_preview_is_no_parcel
                a_preview_that_no_text_replaced_ends_with_its_turn
                a_preview_cannot_be_settled_away
                a_delivered_parcel_stays_delivered
                a_parcel_that_is_there_already_is_left_alone
                an_attempt_that_did_not_arrive_waits_and_does_not_count
                an_attempt_that_may_have_arrived_counts_and_is_unsure
                formatting_that_was_not_accepted_is_remembered
                a_doubt_is_not_lost_by_a_later_attempt
                confidential_words_are_kept_until_they_are_settled_and_no_longer
                what_will_never_arrive_is_counted_and_gone_from_the_outbox
                what_will_never_arrive_is_known_with_its_reason
                a_notice_tells_once_of_all_that_was_lost_there
                what_crossed_on_the_way_is_known_by_both_moments
                addresses_where_something_is_untold_are_found_page_by_page
                settling_what_is_not_there_changes_nothing
                undelivered_addresses_are_found_page_by_page

                what_is_approved_for_good_is_written_with_the_step_and_stays
                what_a_step_says_for_the_record_is_written_with_it
                what_is_approved_twice_is_there_once_as_it_was_approved_last
                what_is_revoked_is_gone_at_once
                only_so_much_is_approved_for_good
                a_delivered_parcel_is_known_by_the_message_that_shows_it

                what_is_spent_is_added_up_with_the_steps_that_spend_it
                what_is_spent_is_told_apart_by_who_spends_it
                a_step_that_is_refused_spends_nothing
                old_days_are_forgotten

                a_file_is_needed_until_its_message_has_been_answered
                a_file_is_needed_until_it_is_delivered
                a_file_is_needed_while_a_branch_that_has_it_takes_a_turn
                a_file_is_let_go_with_the_last_entry_that_names_it

                a_store_that_was_never_opened_ended_cleanly
                a_store_that_was_closed_ended_cleanly
                a_store_that_was_not_closed_ended_abruptly
                dying_before_recovering_changes_nothing
                what_was_leaving_is_unsure_after_a_crash
                what_never_left_is_ready_after_a_crash
                a_preview_that_was_on_its_way_makes_its_text_unsure_after_a_crash
                a_shown_preview_is_edited_after_a_crash
                nothing_acknowledged_is_lost_by_a_crash
                recovering_twice_is_recovering_once

                search_finds_words_in_any_order
                search_finds_the_beginning_of_the_last_word
                search_finds_parts_of_words
                search_finds_scripts_without_spaces_and_pictures
                search_takes_operators_and_quotes_as_text
                search_never_leaves_its_scope
                search_puts_words_before_beginnings_before_parts_and_the_newest_first
                search_finds_what_was_just_recorded
                search_does_not_look_at_tool_results
                search_for_nothing_finds_nothing
                search_spans_lives_and_survives_a_crash
                a_person_searches_all_their_own_conversations_and_no_others
                search_follows_a_conversation_whose_owner_becomes_known
                search_is_narrowed_by_who_spoke_and_when
                search_leaves_out_what_was_taken_back
                search_says_what_a_life_was_about

                what_is_taken_back_is_kept_with_who_and_when
                a_summary_stands_for_what_is_before_it
                a_branch_begins_with_what_another_life_says
                a_branch_off_anothers_life_is_refused
                a_life_is_kept_when_it_gives_way_and_can_be_gone_back_to
                a_life_that_gave_way_without_a_word_is_known_by_what_was_recorded
                lives_are_listed_by_last_use_for_whom_they_belong_to
                a_life_is_named_by_its_id_or_title_and_by_the_beginning_of_one
                a_life_is_renamed

                a_guest_book_comes_back_as_it_was
                whoever_read_an_older_guest_book_changes_nothing
                what_is_recorded_stays_in_order_and_holds_together
                a_row_of_somebody_who_was_put_out_is_denied

                sessions_that_may_be_over_are_found_page_by_page
                tries_to_put_a_life_away_are_counted
                old_lives_are_forgotten_with_all_that_was_recorded_in_them
                forgetting_spares_what_is_needed
                old_entries_are_forgotten_and_their_lives_go_on
            }
        }
    };
    (tests $harness:expr => $($test:ident)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                $crate::contract::$test(&$harness).await;
            }
        )*
    };
}
