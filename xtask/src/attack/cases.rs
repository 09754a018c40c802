//! The list: one row for each case, and how it is shown to fail.

use super::Shown::{Absent, Both, Later, Live, Tests};
use super::{
    Case, Shown, approvals, backups, codes, doors, errands, hooks, keeping, people, refusals, words,
};

const fn case(number: u16, attack: &'static str, shown: Shown) -> Case {
    Case { number, attack, shown }
}

const MCP: &str = "MCP";
const PLUGINS: &str = "plugins; hooks and programs are files that the operator puts there";
const API: &str = "the OpenAI-compatible API";
const SCHEDULES: &str = "schedules";
const CLUSTER: &str = "more than one node";

/// Every case, in order.
pub(super) const CASES: &[Case] = &[
    case(
        1,
        "no credential and a listener that others reach",
        Live(doors::a_wrong_configuration_opens_no_door),
    ),
    case(
        2,
        "a configuration that does not load",
        Both(
            doors::a_wrong_configuration_opens_no_door,
            &[
                "a_start_with_an_older_configuration_lets_nobody_do_more_than_the_file_that_is_there",
            ],
        ),
    ),
    case(
        3,
        "another site opens the event stream with the operator's browser",
        Live(doors::another_site_gets_nothing),
    ),
    case(
        4,
        "a link that carries an address or a token",
        Live(doors::the_page_talks_to_its_own_origin),
    ),
    case(5, "another site posts in the operator's name", Live(doors::another_site_gets_nothing)),
    case(6, "DNS rebinding", Live(doors::a_name_that_is_not_ours_is_refused)),
    case(
        7,
        "a client states its own role",
        Both(doors::a_client_cannot_say_who_it_is, &["atk_007_a_client_cannot_say_who_it_is"]),
    ),
    case(8, "a token that is nearly right", Live(doors::a_token_that_is_nearly_right_is_wrong)),
    case(9, "forwarding headers", Live(doors::forwarding_headers_give_no_authority)),
    case(10, "spellings of a path", Live(doors::no_spelling_of_a_path_gets_past)),
    case(
        11,
        "a lesser role reaches administration by another way",
        Both(
            people::a_lesser_role_stays_one,
            &[
                "who_is_a_person_of_the_configuration_is_let_in_by_nothing_but_a_list",
                "a_role_grants_commands_to_whoever_was_let_in_by_name_or_by_pairing",
            ],
        ),
    ),
    case(
        12,
        "reading or stopping another's session by its key",
        Both(
            doors::an_id_opens_nothing,
            &[
                "atk_012_a_conversation_id_names_nothing_outside_this_account",
                "a_person_searches_all_their_own_conversations_and_no_others",
            ],
        ),
    ),
    case(13, "guessing the login", Live(doors::guessing_ends)),
    case(
        14,
        "splitting the limiter by the form of an address",
        Tests(&[
            "atk_014_no_spelling_and_no_neighbour_of_an_address_is_somebody_else",
            "atk_014_nobody_shuts_the_operator_out_alone_and_all_together_have_a_budget",
        ]),
    ),
    case(15, "many guesses at the same moment", Live(doors::guessing_ends)),
    case(16, "timing of comparisons", Live(doors::refusals_take_the_same_time)),
    case(
        17,
        "a login that was ended keeps an open stream",
        Both(
            doors::a_login_ends_when_it_is_ended,
            &[
                "atk_017_logging_out_ends_every_login_and_every_stream",
                "atk_017_a_stream_ends_with_its_login",
                "atk_017_no_stream_that_is_being_opened_misses_that_every_login_is_ended",
                "atk_017_what_is_still_being_said_when_the_login_ends_is_not_heard",
                "atk_017_a_download_breaks_off_with_its_login",
            ],
        ),
    ),
    case(18, "a token in the query", Live(doors::a_credential_in_an_address_is_refused)),
    case(19, "one secret for two surfaces", Live(doors::one_secret_for_two_doors_is_refused)),
    case(
        20,
        "anonymous routes that tell something",
        Both(
            doors::strangers_learn_nothing,
            &[
                "atk_020_who_is_not_logged_in_learns_nothing",
                "only_programs_on_this_machine_need_no_token",
            ],
        ),
    ),
    case(21, "clickjacking and stored scripts", Live(doors::answers_carry_protective_headers)),
    case(22, "frames and messages without bound", Live(doors::what_is_too_large_is_not_read)),
    case(
        23,
        "the model or a chat changes protected settings",
        Absent("no tool and no chat command writes the configuration"),
    ),
    case(24, "secrets through a configuration that is shown", Live(doors::no_secret_is_shown)),
    case(
        25,
        "discovery on the local network steers the command line",
        Absent("nothing is discovered: the command line uses the socket of its home"),
    ),
    case(26, "OAuth state, redirects, fixation", Absent("there is no OAuth login")),
    case(
        27,
        "a platform without its verification secret",
        Live(hooks::without_a_secret_there_is_no_door),
    ),
    case(
        28,
        "signatures that are missing, wrong, cut or doubled",
        Live(hooks::what_is_not_signed_is_refused),
    ),
    case(29, "a signature over other bytes", Live(hooks::the_bytes_are_what_is_signed)),
    case(30, "a replay within the window", Live(hooks::a_replay_does_nothing)),
    case(31, "a replay in equivalent bytes", Live(hooks::a_replay_does_nothing)),
    case(32, "a replay outside of the window", Live(hooks::a_recording_is_refused)),
    case(
        33,
        "an effect before the verdict about a replay",
        Live(hooks::what_is_not_signed_is_refused),
    ),
    case(
        34,
        "an event id that is missing or somebody else's",
        Both(hooks::an_id_suppresses_nothing, &["an_id_refuses_what_could_collide_or_forge"]),
    ),
    case(
        35,
        "forwarded hosts change the address that is signed",
        Live(hooks::forwarded_hosts_change_nothing),
    ),
    case(
        36,
        "an event of one account under the policy of another",
        Live(hooks::an_account_has_its_own_secret),
    ),
    case(
        37,
        "short webhook secrets",
        Both(hooks::a_short_secret_is_refused, &["what_is_wrong_with_an_account_says_what_to_do"]),
    ),
    case(
        38,
        "a flood of bad signatures",
        Both(
            doors::bad_signatures_cost_little,
            &[
                "atk_038_what_cannot_be_slack_s_is_refused_before_its_body_is_read",
                "atk_038_bodies_that_are_held_back_take_bounded_memory_and_keep_nobody_out",
                "the_body_of_a_stranger_that_trickles_in_is_cut_and_one_of_somebody_known_is_not",
            ],
        ),
    ),
    case(
        39,
        "a body without length, without end, packed",
        Live(doors::what_is_too_large_is_not_read),
    ),
    case(40, "strange JSON", Live(hooks::strange_json_breaks_nothing)),
    case(41, "the challenge as a reflector", Live(hooks::a_challenge_needs_the_secret)),
    case(
        42,
        "a rotated webhook secret stays valid",
        Tests(&[
            "a_webhook_secret_that_was_replaced_opens_nothing_any_more",
            "a_credential_that_was_replaced_is_not_taken_up_again",
        ]),
    ),
    case(
        43,
        "an address in an event that gets our token",
        Both(
            words::an_address_in_an_event_is_told_nothing,
            &[
                "a_token_goes_to_slack_and_nowhere_else",
                "an_address_for_answers_that_is_not_slack_s_is_not_used",
            ],
        ),
    ),
    case(
        44,
        "a display name equal to an allowed value",
        Both(people::a_name_lets_nobody_in, &["a_role_is_what_the_platform_says_and_not_a_name"]),
    ),
    case(45, "an empty or missing sender", Live(hooks::strangers_begin_nothing)),
    case(46, "a part of an id matches", Live(hooks::strangers_begin_nothing)),
    case(
        47,
        "a group's id where a person's is expected",
        Tests(&[
            "atk_047_whoever_speaks_in_the_name_of_a_chat_is_a_guest_at_most",
            "atk_047_a_program_is_a_guest_at_most_however_it_was_let_in",
        ]),
    ),
    case(
        48,
        "pairing in private grants rights in groups",
        Both(
            people::a_pairing_stays_where_it_was_granted,
            &["a_pairing_reaches_no_further_than_it_was_granted"],
        ),
    ),
    case(
        49,
        "a kind of chat that is missing or new",
        Both(
            people::a_pairing_stays_where_it_was_granted,
            &["only_what_is_surely_direct_is_direct"],
        ),
    ),
    case(50, "events besides messages skip the gate", Live(hooks::strangers_begin_nothing)),
    case(
        51,
        "quotes pull in the words of strangers",
        Both(
            people::a_strangers_words_beside_a_message_are_no_wish,
            &[
                "the_words_of_whoever_is_not_heard_are_marked_and_left_out_unless_everybodys_are_read",
            ],
        ),
    ),
    case(
        52,
        "a wildcard leaks into decisions about owners",
        Both(
            people::a_star_is_refused,
            &["who_is_heard_is_named_one_by_one_and_everybody_only_in_so_many_words"],
        ),
    ),
    case(
        53,
        "a batch runs with the last sender's authority",
        Tests(&["a_part_waits_for_the_next_one_as_long_as_its_platform_takes"]),
    ),
    case(
        54,
        "a tool reads what the requester may not",
        Both(words::a_search_finds_nothing_of_others, &["search_never_leaves_its_scope"]),
    ),
    case(
        55,
        "bots talk to each other without end",
        Both(words::programs_do_not_talk_for_ever, &["two_programs_that_answer_each_other_stop"]),
    ),
    case(
        56,
        "aliases of an account are confused",
        Both(
            people::each_account_knows_its_own_people,
            &["a_person_is_known_on_each_of_their_accounts_and_on_no_other"],
        ),
    ),
    case(
        57,
        "lookalike characters in names shown to an approver",
        Both(
            people::a_name_is_shown_as_it_is,
            &["a_name_hides_and_turns_nothing", "a_name_cannot_format_the_outcome"],
        ),
    ),
    case(
        58,
        "an allow list changed from a chat",
        Both(
            people::a_lesser_role_stays_one,
            &["only_an_administrator_decides_who_is_let_in_and_not_where_others_read_along"],
        ),
    ),
    case(
        59,
        "a removed user stays",
        Both(
            people::who_is_removed_is_not_heard,
            &[
                "who_is_put_out_is_not_heard_and_what_waits_of_them_is_parked",
                "who_is_taken_off_the_list_is_not_heard_and_what_waits_of_them_is_parked",
            ],
        ),
    ),
    case(
        60,
        "guessing a pairing code",
        Both(
            codes::five_wrong_codes_are_the_last,
            &[
                "a_million_guesses_let_nobody_in",
                "who_guesses_five_times_is_not_listened_to_for_an_hour",
            ],
        ),
    ),
    case(
        61,
        "guesses spread over many clients",
        Both(
            codes::guesses_of_many_void_the_code,
            &[
                "thousands_of_guesses_let_nobody_in_and_nobody_waits_for_them",
                "a_hundred_guesses_by_whomever_void_every_code",
            ],
        ),
    ),
    case(
        62,
        "a flood of pairing requests",
        Both(
            codes::a_flood_of_requests_changes_nothing,
            &[
                "three_may_ask_and_the_fourth_pushes_nobody_out",
                "nobody_is_answered_more_often_than_every_ten_minutes",
            ],
        ),
    ),
    case(
        63,
        "two redeem one code",
        Both(codes::a_code_lets_in_one, &["a_code_that_was_handed_on_lets_in_who_says_it_first"]),
    ),
    case(
        64,
        "pairing again with a wider scope",
        Both(
            people::the_first_stranger_is_a_stranger,
            &["a_pairing_reaches_as_far_as_it_was_granted_and_makes_no_administrator"],
        ),
    ),
    case(
        65,
        "a paired device approves another",
        Both(
            people::the_first_stranger_is_a_stranger,
            &["only_an_administrator_decides_who_is_let_in_and_not_where_others_read_along"],
        ),
    ),
    case(
        66,
        "session ids that are guessed or are paths",
        Both(
            doors::an_id_opens_nothing,
            &["an_id_that_is_a_path_finds_nothing", "an_id_refuses_what_could_collide_or_forge"],
        ),
    ),
    case(
        67,
        "a lookup by title finds another's session",
        Both(
            words::a_search_finds_nothing_of_others,
            &["a_person_searches_all_their_own_conversations_and_no_others"],
        ),
    ),
    case(68, "session keys collide", Tests(&["keys_that_print_alike_are_still_different_keys"])),
    case(
        69,
        "a shared index tells others' facts",
        Both(words::a_search_finds_nothing_of_others, &["search_never_leaves_its_scope"]),
    ),
    case(
        70,
        "cookies are stolen or fixed",
        Both(
            doors::a_login_ends_when_it_is_ended,
            &[
                "atk_005_a_login_cannot_be_made_by_another_site",
                "a_token_works_once",
                "over_https_the_cookie_is_for_this_host_alone_and_never_goes_in_the_clear",
                "atk_070_over_https_a_cookie_that_anybody_could_have_planted_is_no_login",
                "atk_070_a_login_that_is_not_used_for_a_week_is_over",
            ],
        ),
    ),
    case(
        71,
        "another member approves",
        Both(
            approvals::somebody_elses_yes_is_none,
            &["a_tap_of_somebody_else_approves_nothing_unless_policy_says_so"],
        ),
    ),
    case(
        72,
        "nobody may approve",
        Both(approvals::only_who_may_approves, &["whose_yes_counts_is_looked_at_when_it_arrives"]),
    ),
    case(
        73,
        "an old approval is replayed",
        Both(
            approvals::an_old_yes_is_none,
            &[
                "a_handle_is_of_one_question_only",
                "a_yes_that_was_used_is_no_yes_to_the_same_call_made_anew",
                "a_button_answers_only_in_the_chat_that_it_is_in",
            ],
        ),
    ),
    case(
        74,
        "what was approved is changed",
        Both(
            approvals::what_is_changed_is_not_done,
            &[
                "what_changes_while_the_person_thinks_is_not_done",
                "a_program_does_not_run_after_a_no_nor_when_it_is_another_by_then",
            ],
        ),
    ),
    case(
        75,
        "the dangerous part is hidden",
        Both(
            approvals::nothing_hides_in_a_question,
            &[
                "nothing_hides_among_the_signs_that_a_program_is_given",
                "nothing_hides_in_what_people_write",
                "what_is_too_long_to_be_read_is_not_asked",
            ],
        ),
    ),
    case(
        76,
        "a timeout counts as approval",
        Both(approvals::silence_is_a_no, &["nobody_answering_is_a_no_and_is_said"]),
    ),
    case(
        77,
        "a default answer approves",
        Both(approvals::only_a_plain_yes_is_one, &["only_what_can_mean_nothing_else_is_a_yes"]),
    ),
    case(
        78,
        "always for a wrapper covers anything",
        Both(
            approvals::a_wrapper_is_not_approved_for_good,
            &["what_wraps_others_is_never_approved_for_good"],
        ),
    ),
    case(
        79,
        "nobody is there and it is approved",
        Both(
            approvals::nobody_approves_in_the_background,
            &["work_in_the_background_is_approved_by_nobody"],
        ),
    ),
    case(
        80,
        "one kind of approval is taken for another",
        Both(
            approvals::an_answer_is_no_approval,
            &["the_choice_that_means_yes_is_no_yes_before_the_session_says_so"],
        ),
    ),
    case(
        81,
        "words that look like an approval",
        Both(
            approvals::only_a_plain_yes_is_one,
            &[
                "only_what_can_mean_nothing_else_is_a_yes",
                "somebody_elses_words_wait_and_decide_nothing",
            ],
        ),
    ),
    case(
        82,
        "an open approval after a restart",
        Both(
            approvals::a_kill_approves_nothing,
            &[
                "the_policy_is_read_again_when_the_answer_comes",
                "an_open_question_is_taken_up_again_after_a_restart_if_it_is_the_same",
            ],
        ),
    ),
    case(
        83,
        "a denied tool is reached by another way",
        Both(
            approvals::what_is_refused_is_not_asked,
            &["what_the_operator_refuses_is_not_even_asked_about"],
        ),
    ),
    case(
        84,
        "a page says to send secrets elsewhere",
        Both(
            errands::a_page_gives_no_orders,
            &[
                "a_program_does_not_run_after_a_no_nor_when_it_is_another_by_then",
                "a_tool_gives_no_secret_back",
            ],
        ),
    ),
    case(85, "a tool's result becomes an instruction", Tests(&["every_prompt_is_well_formed"])),
    case(
        86,
        "names and titles with newlines in the prompt",
        Both(words::nobody_speaks_for_another, &["a_place_is_described_with_all_that_matters"]),
    ),
    case(
        87,
        "words that imitate a sender",
        Both(
            words::nobody_speaks_for_another,
            &["among_several_people_everybody_speaks_under_a_name_that_nobody_can_forge"],
        ),
    ),
    case(
        88,
        "a wake-up with the owner's rights",
        Both(
            approvals::nobody_approves_in_the_background,
            &[
                "work_in_the_background_is_approved_by_nobody",
                "the_policy_is_read_again_when_the_answer_comes",
            ],
        ),
    ),
    case(
        89,
        "secrets leave in links and pictures",
        Both(
            errands::a_link_tells_nobody_by_itself,
            &[
                "telegram_opens_no_link_by_itself_unless_it_is_told_to",
                "discord_opens_no_link_by_itself_unless_it_is_told_to",
            ],
        ),
    ),
    case(90, "MCP descriptions change after approval", Later(MCP)),
    case(91, "an MCP server redirects to steal headers", Later(MCP)),
    case(92, "MCP servers from a workspace", Later(MCP)),
    case(93, "MCP answers without end", Later(MCP)),
    case(
        94,
        "an allow list of programs is bypassed",
        Both(
            approvals::a_program_gets_no_more_than_it_needs,
            &[
                "a_program_runs_after_a_yes_with_its_arguments_as_they_are",
                "a_program_that_others_can_change_is_refused_with_its_line",
            ],
        ),
    ),
    case(
        95,
        "variables of the environment reach a program",
        Both(
            approvals::a_program_gets_no_more_than_it_needs,
            &["it_gets_no_secrets", "a_program_is_told_no_more_than_it_needs"],
        ),
    ),
    case(
        96,
        "files in the present folder are read",
        Live(keeping::the_present_folder_means_nothing),
    ),
    case(
        97,
        "a sandbox is escaped",
        Absent("there is no sandbox: programs run with the rights of the gateway's user"),
    ),
    case(
        98,
        "a tool loop without end",
        Both(
            words::a_loop_ends,
            &[
                "a_model_that_never_stops_calling_is_stopped",
                "a_turn_that_takes_too_long_ends_with_what_it_has",
                "a_turn_that_sends_and_sends_is_told_that_this_is_enough",
            ],
        ),
    ),
    case(99, "an injection that stays in memory", Later("memory and skills")),
    case(
        100,
        "addresses of this machine and its networks",
        Both(
            errands::an_address_inside_is_not_asked,
            &[
                "every_way_to_write_an_address_is_read",
                "a_name_that_leads_inside_is_not_asked",
                "what_no_honest_address_names_is_never_asked",
                "what_the_operator_named_may_be_private_but_never_a_clouds_own",
            ],
        ),
    ),
    case(
        101,
        "transition forms and odd spellings of addresses",
        Both(
            errands::an_address_inside_is_not_asked,
            &[
                "an_address_that_is_not_public_is_not_in_any_disguise",
                "every_way_to_write_an_address_is_read",
            ],
        ),
    ),
    case(
        102,
        "a name resolves to something else when it is dialled",
        Tests(&["a_name_is_resolved_once_and_that_address_is_dialled"]),
    ),
    case(
        103,
        "redirects inside or to another scheme",
        Both(
            errands::a_redirect_leads_nowhere_inside,
            &[
                "each_redirect_is_judged_like_the_first_address",
                "five_redirects_are_followed_and_six_are_not",
                "credentials_are_shown_to_the_first_server_and_to_no_other",
            ],
        ),
    ),
    case(
        104,
        "another parameter skips the guard",
        Both(
            errands::an_address_inside_is_not_asked,
            &[
                "a_file_that_slack_does_not_hand_out_is_refused",
                "only_the_hosts_that_are_listed_are_asked",
            ],
        ),
    ),
    case(
        105,
        "slow, endless and lying servers",
        Tests(&[
            "a_trickle_is_given_up_after_ten_seconds",
            "what_is_larger_than_its_bound_is_not_read",
            "a_body_that_ends_early_is_an_error_and_not_a_file",
            "what_is_compressed_was_not_asked_for",
        ]),
    ),
    case(
        106,
        "a second hop names an internal address",
        Both(
            errands::an_address_inside_is_not_asked,
            &[
                "a_file_that_slack_does_not_hand_out_is_refused",
                "a_gateway_that_is_not_encrypted_does_not_get_the_token",
                "slack_names_no_server_to_connect_to_but_its_own",
                "discord_names_no_gateway_but_its_own",
            ],
        ),
    ),
    case(
        107,
        "a credential goes to a lookalike host",
        Tests(&[
            "a_token_goes_to_slack_and_nowhere_else",
            "a_gateway_that_is_not_encrypted_does_not_get_the_token",
        ]),
    ),
    case(
        108,
        "encryption is given up, or the environment names a proxy",
        Both(
            errands::no_proxy_of_the_environment_is_asked,
            &[
                "a_redirect_leads_where_it_says_but_never_out_of_encryption",
                "no_server_is_asked_through_a_proxy_of_the_environment",
                "a_proxy_sees_nothing_of_an_encrypted_socket_but_where_it_leads",
                "whoever_nobody_vouches_for_is_told_nothing",
            ],
        ),
    ),
    case(
        109,
        "hostile names of attachments",
        Tests(&["names_are_for_reading_only", "any_name_becomes_one_that_is_safe_to_save_under"]),
    ),
    case(
        110,
        "an answer names a local path",
        Both(
            words::an_answer_sends_no_other_file,
            &["only_ordinary_files_below_the_allowed_folders_are_sent"],
        ),
    ),
    case(
        111,
        "pipes, devices and others' files as attachments",
        Both(
            words::an_answer_sends_no_other_file,
            &[
                "what_is_opened_is_the_file_that_was_looked_at",
                "links_pipes_and_devices_are_not_read",
            ],
        ),
    ),
    case(
        112,
        "links in state and races for it",
        Both(
            keeping::links_and_open_secrets_are_refused,
            &["secrets_that_are_refused_are_not_replaced_by_older_ones"],
        ),
    ),
    case(
        113,
        "archives that unfold",
        Tests(&[
            "a_forged_backup_reaches_nothing_outside_its_place",
            "a_backup_that_unfolds_without_end_is_refused_before_it_fills_anything",
        ]),
    ),
    case(
        114,
        "pictures that decode without bound",
        Absent("no picture and no recording is decoded in the process"),
    ),
    case(
        115,
        "data addresses decoded before they are measured",
        Absent("no data address is decoded"),
    ),
    case(116, "a page as a picture from our origin", Live(keeping::a_file_runs_nothing)),
    case(117, "the media route without a login", Live(keeping::a_file_runs_nothing)),
    case(
        118,
        "strangers fill the disk",
        Both(
            words::a_stranger_fills_no_disk,
            &[
                "everybody_has_a_share_of_their_own_and_a_new_one_every_day",
                "a_full_store_makes_room_by_what_is_past_and_never_by_what_is_needed",
            ],
        ),
    ),
    case(
        119,
        "errors that repeat tokens",
        Both(refusals::no_refusal_repeats_a_secret, &["no_error_shows_the_token"]),
    ),
    case(
        120,
        "the model is asked for its keys",
        Both(
            words::no_secret_is_said,
            &[
                "a_tool_gives_no_secret_back",
                "no_event_of_an_agent_has_a_secret_in_its_words",
                "an_answer_that_grows_shows_no_part_of_a_secret",
            ],
        ),
    ),
    case(121, "an export with secrets", Live(words::no_export_has_a_secret)),
    case(
        122,
        "control characters forge log lines",
        Tests(&[
            "what_others_said_cannot_look_like_another_line",
            "a_line_is_not_turned_around_and_not_endless",
        ]),
    ),
    case(123, "dumps and files that others can read", Live(keeping::what_is_kept_is_for_us_alone)),
    case(
        124,
        "people in the labels of metrics",
        Both(
            doors::numbers_are_for_this_machine_or_the_token,
            &[
                "metrics_are_for_whoever_has_the_token_and_count_what_passes",
                "an_event_for_another_account_is_refused_and_each_event_gets_its_own_verdict",
            ],
        ),
    ),
    case(
        125,
        "the model calls everybody",
        Both(
            words::an_answer_calls_nobody_and_shows_where_links_lead,
            &[
                "nobody_is_called_who_was_not_called",
                "every_escape_is_whole_and_nobody_is_called",
                "people_and_channels_can_be_called_but_not_everybody",
            ],
        ),
    ),
    case(
        126,
        "markup that a platform refuses",
        Tests(&[
            "every_part_of_an_answer_is_valid_and_fits",
            "any_mixture_of_the_corpus_stays_text",
        ]),
    ),
    case(
        127,
        "a cut in the middle of something",
        Both(
            words::a_long_answer_arrives_whole,
            &["every_part_fits_and_nothing_is_lost", "any_text_under_any_limit_ends_and_fits"],
        ),
    ),
    case(
        128,
        "a link that shows another address",
        Both(
            words::an_answer_calls_nobody_and_shows_where_links_lead,
            &["a_link_that_names_another_place_shows_where_it_leads"],
        ),
    ),
    case(129, "a malicious package", Later(PLUGINS)),
    case(130, "a package changes after it was looked at", Later(PLUGINS)),
    case(
        131,
        "somebody else installs something",
        Tests(&[
            "a_hook_that_others_could_have_changed_is_refused",
            "a_program_that_others_can_change_is_refused_with_its_line",
        ]),
    ),
    case(132, "a plugin's name leads elsewhere", Later(PLUGINS)),
    case(
        133,
        "a hook (there are no plugins) wants what is not its own",
        Tests(&["a_hook_sees_nothing_of_our_environment_and_works_in_its_folder"]),
    ),
    case(
        134,
        "a hook (there are no plugins) hangs or floods",
        Tests(&[
            "a_hook_that_hangs_is_not_waited_for_and_then_left_alone",
            "a_python_handler_that_blocks_everything_is_ended",
            "hooks_that_hang_crash_and_babble_lose_nothing",
        ]),
    ),
    case(
        135,
        "a release or a dependency is not what it says",
        Later("signed releases; what is built in is pinned and checked by cargo-deny"),
    ),
    case(136, "an API key reaches administration", Later(API)),
    case(137, "a header picks another's session", Later(API)),
    case(138, "clients that hang up and burn tokens", Later(API)),
    case(139, "a hook chooses its agent by a blank", Later("webhooks that begin turns")),
    case(140, "a schedule outlives its creator's rights", Later(SCHEDULES)),
    case(141, "a thousand schedules", Later(SCHEDULES)),
    case(142, "a bus without credentials", Later(CLUSTER)),
    case(143, "a node writes after it lost its lease", Later(CLUSTER)),
    case(144, "SQL in a search", Live(keeping::a_search_is_a_search)),
    case(
        145,
        "a restored backup brings back what was revoked",
        Both(
            backups::nothing_comes_back_that_was_used_or_revoked,
            &[
                "who_was_put_out_since_and_what_was_taken_back_stay_so",
                "a_copy_of_every_version_can_be_gone_back_to",
                "a_death_at_any_moment_leaves_all_of_the_backup",
                "whom_a_backup_lets_in_is_said_where_nobody_knows_what_happened_since",
            ],
        ),
    ),
    case(
        146,
        "a default password",
        Absent(
            "there is no password; a login is a link that works once and is printed on the host",
        ),
    ),
    case(
        147,
        "the first stranger becomes the owner",
        Both(
            people::the_first_stranger_is_a_stranger,
            &[
                "a_pairing_reaches_as_far_as_it_was_granted_and_makes_no_administrator",
                "nobody_passes_without_an_explicit_grant",
            ],
        ),
    ),
    case(
        148,
        "slow heads and thousands of idle connections",
        Both(
            doors::a_flood_keeps_nobody_out,
            &[
                "a_head_that_trickles_in_is_cut",
                "a_connection_that_says_nothing_is_closed",
                "a_stranger_that_takes_a_byte_now_and_then_loses_the_place",
                "slow_readers_do_not_keep_an_honest_client_out",
            ],
        ),
    ),
    case(0, "a code of one account at another", Live(codes::a_code_is_of_one_account)),
    case(0, "a kill between a request and its approval", Live(codes::a_kill_loses_no_request)),
    case(
        0,
        "a kill while a backup is restored",
        Live(backups::a_kill_while_going_back_lets_nobody_in),
    ),
    case(0, "two gateways use one credential", Live(keeping::one_gateway_for_each_credential)),
    case(
        0,
        "a message to a chat that nobody granted or approved",
        Both(
            approvals::nothing_is_sent_elsewhere_without_a_yes,
            &[
                "a_message_is_held_until_exactly_it_is_approved",
                "what_a_role_does_not_grant_is_neither_offered_nor_sent",
                "a_message_is_held_through_a_crash_and_sent_once_after_a_yes",
            ],
        ),
    ),
    case(
        0,
        "a command right behind another that gets its answer",
        Tests(&[
            "a_stranger_s_command_gets_nobody_s_answer",
            "where_two_have_asked_only_what_is_known_to_be_for_one_of_them_is_said",
            "whoever_cannot_be_reached_any_more_is_not_taken_for_somebody_else",
        ]),
    ),
    case(
        0,
        "a direct chat between others that passes for one with us",
        Tests(&["a_direct_chat_between_two_others_is_none_with_us"]),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_the_list_has_its_row() {
        let numbers: Vec<_> = CASES.iter().map(|case| case.number).filter(|it| *it != 0).collect();
        assert_eq!(numbers, (1..=148).collect::<Vec<_>>());
    }
}
