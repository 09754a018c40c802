use super::*;
use crate::tests::said;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Timestamp {
    Timestamp::default() + SECOND * u32::try_from(1_000_000 + seconds).expect("small")
}

fn chance(seed: u8) -> Chance {
    Chance(std::array::from_fn(|place| seed.wrapping_mul(31).wrapping_add(place as u8)))
}

fn who(name: &str) -> Sender {
    Sender::named(SenderId::new(name).expect("an id"), name)
}

fn here() -> Address {
    said("x", "").to
}

fn hello(book: &mut GuestBook, name: &str, seed: u8, now: Timestamp) -> Answer {
    book.said((&who(name), &here()), "hello", Strangers::Pair, chance(seed), now)
}

fn code(answer: Answer) -> Code {
    match answer {
        Answer::Code(code) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_numbers_are_those_that_were_promised() {
    assert_eq!(std::str::from_utf8(ALPHABET), Ok("ABCDEFGHJKLMNPQRSTUVWXYZ23456789"));
    assert_eq!(ALPHABET.iter().collect::<BTreeSet<_>>().len(), 32);
    assert_eq!((LENGTH, LIFETIME.as_secs(), ASK_EVERY.as_secs()), (8, 3600, 600));
    assert_eq!((MOST_REQUESTS, MOST_FAILURES, LOCKOUT.as_secs()), (3, 5, 3600));
    assert_eq!((MOST_GUESSES, MOST_GUESSES_OF_ALL), (5, 100));
}

#[test]
fn a_stranger_gets_a_code_and_the_operator_lets_them_in_once() {
    let mut book = GuestBook::default();
    let code = code(hello(&mut book, "ann", 1, at(0)));
    assert_eq!(book.reach(&who("ann").id), None, "asking is not being let in");
    let typed = format!(" {}-{} ", code.0[..4].to_lowercase(), &code.0[4..]);
    let request = book.approve(&typed, Reach::Direct, "op", at(9)).expect("is right");
    assert_eq!((request.sender, request.at), (who("ann").id, here()));
    assert_eq!(book.reach(&who("ann").id), Some(Reach::Direct));
    let (_, grant) = book.guests().next().expect("is let in");
    assert_eq!((grant.by.as_str(), grant.since), ("op", at(9)));
    let again = book.approve(&typed, Reach::Everywhere, "op", at(9));
    assert_eq!(again, Err(Refusal::NoSuchCode { left: 4 }), "a code is good for one use");
    assert_eq!(book.reach(&who("ann").id), Some(Reach::Direct), "and widens nothing");
    assert!(book.revoke(&who("ann").id).is_some());
    assert_eq!(book.reach(&who("ann").id), None);
    assert_eq!(book.revoke(&who("ann").id), None);
}

#[test]
fn a_code_is_good_for_an_hour() {
    for (later, expected) in [(3599, true), (3600, false)] {
        let mut book = GuestBook::default();
        let code = code(hello(&mut book, "ann", 1, at(0))).0;
        assert_eq!(book.requests(at(later)).count(), usize::from(expected));
        assert_eq!(book.approve(&code, Reach::Direct, "op", at(later)).is_ok(), expected);
        let mut book = GuestBook::default();
        let code = book.issue(Reach::Direct, "op", chance(2), at(0)).expect("issues");
        assert_eq!(book.issued(at(later)).count(), usize::from(expected));
        let answer =
            book.said((&who("ann"), &here()), &code.0, Strangers::Pair, chance(1), at(later));
        assert_eq!(matches!(answer, Answer::LetIn(_)), expected, "{answer:?}");
    }
}

#[test]
fn a_code_is_neither_printed_nor_written_down() {
    let mut book = GuestBook::default();
    let given = code(hello(&mut book, "ann", 1, at(0)));
    let handed_on = book.issue(Reach::Direct, "op", chance(2), at(0)).expect("issues");
    let wish = crate::PairWish::Approve(TypedCode::new(given.expose()), Reach::Direct);
    let told = crate::Told::Code { text: format!("`{WITHHELD}`"), code: handed_on.clone() };
    let asked = crate::Request::Pair { account: None, wish: wish.clone() };
    let written = serde_json::to_string(&(&book, &asked)).expect("writes");
    for text in [format!("{book:?} {wish:?} {told:?} {asked:?} {given:?}"), written.clone()] {
        for code in [&given, &handed_on] {
            assert!(!text.contains(code.expose()), "{text}");
        }
    }
    // Who was at it before the process ended is told so; the wish is read for what it was about.
    let (_, read): (GuestBook, crate::Request) = serde_json::from_str(&written).expect("reads");
    assert!(matches!(read, crate::Request::Pair { .. }), "{read:?}");
    assert_eq!(handed_on.told_in(&format!("`{WITHHELD}`")), format!("`{}`", handed_on.expose()));
}

#[test]
fn nobody_is_answered_more_often_than_every_ten_minutes() {
    let mut book = GuestBook::default();
    let first = code(hello(&mut book, "ann", 1, at(0)));
    for later in [0, 1, 599] {
        let answer = hello(&mut book, "ann", 2, at(later));
        assert_eq!(answer, Answer::Silence(Silence::Lately));
    }
    let second = code(hello(&mut book, "ann", 3, at(600)));
    assert_eq!(book.requests(at(600)).count(), 1, "who asks again has one code");
    assert!(book.approve(&first.0, Reach::Direct, "op", at(601)).is_err());
    assert!(book.approve(&second.0, Reach::Direct, "op", at(601)).is_ok());
}

#[test]
fn three_may_ask_and_the_fourth_pushes_nobody_out() {
    let mut book = GuestBook::default();
    for (seed, name) in (0..).zip(["ann", "ben", "cat"]) {
        code(hello(&mut book, name, seed, at(0)));
    }
    assert_eq!(hello(&mut book, "dan", 9, at(1)), Answer::Full);
    assert_eq!(hello(&mut book, "dan", 9, at(2)), Answer::Silence(Silence::Lately));
    let asking: Vec<_> = book.requests(at(2)).map(|request| request.sender.clone()).collect();
    assert_eq!(asking, ["ann", "ben", "cat"].map(SenderId::literal));
    assert_eq!(book.clear(at(3)), 3);
    code(hello(&mut book, "eve", 9, at(3)));
}

#[test]
fn five_mistyped_codes_lock_the_account_for_an_hour() {
    let mut book = GuestBook::default();
    let right = code(hello(&mut book, "ann", 1, at(0)));
    for left in [4, 3, 2, 1] {
        let refused = book.approve("AAAAAAAA", Reach::Direct, "op", at(1));
        assert_eq!(refused, Err(Refusal::NoSuchCode { left }));
        assert_eq!(book.approve("AAAAAAA", Reach::Direct, "op", at(1)), Err(Refusal::NotACode));
    }
    let locked = Err(Refusal::Locked { until: at(3601) });
    assert_eq!(book.approve("AAAAAAAA", Reach::Direct, "op", at(1)), locked);
    assert_eq!(book.approve(&right.0, Reach::Direct, "op", at(2)), locked);
    assert_eq!(hello(&mut book, "ben", 2, at(3)), Answer::Silence(Silence::Locked));
    assert_eq!(book.locked_until(at(3600)), Some(at(3601)));
    assert_eq!(book.locked_until(at(3601)), None);
    let fresh = code(hello(&mut book, "ben", 2, at(3601)));
    assert!(book.approve(&fresh.0, Reach::Direct, "op", at(3602)).is_ok());
}

#[test]
fn clearing_ends_a_lockout_and_nobody_gets_more_guesses_at_a_code_by_it() {
    let mut book = GuestBook::default();
    let given = code(hello(&mut book, "ann", 1, at(0)));
    for _ in 0..MOST_FAILURES {
        assert!(book.approve("AAAAAAAA", Reach::Direct, "op", at(1)).is_err());
    }
    assert_eq!(book.clear(at(2)), 1);
    assert_eq!(book.locked_until(at(2)), None);
    let left = MOST_FAILURES - 1;
    let void = book.approve(&given.0, Reach::Direct, "op", at(2));
    assert_eq!(void, Err(Refusal::NoSuchCode { left }), "the code went with the lockout");
    let fresh = code(hello(&mut book, "ben", 2, at(3)));
    assert!(book.approve(&fresh.0, Reach::Direct, "op", at(4)).is_ok());
}

#[test]
fn what_is_refused_names_a_way_on() {
    let told = |refusal: Refusal| refusal.to_string();
    assert_eq!(
        told(Refusal::NoSuchCode { left: 4 }),
        "no open request has that code; 4 more wrong ones and the account is locked for an hour"
    );
    assert_eq!(
        told(Refusal::NoSuchCode { left: 1 }),
        "no open request has that code; one more wrong one and the account is locked for an hour"
    );
    let locked = told(Refusal::Locked { until: at(0) });
    assert!(locked.contains("`talaria pair clear ACCOUNT`"), "{locked}");
    assert!(locked.contains("`/pair clear`") && locked.contains("hand on"), "{locked}");
}

#[test]
fn a_right_code_forgives_what_was_mistyped_before() {
    let mut book = GuestBook::default();
    for round in 0..3 {
        let later = at(round * 700);
        let right = code(hello(&mut book, &format!("p{round}"), round as u8, later));
        for _ in 0..4 {
            assert!(book.approve("AAAAAAAA", Reach::Direct, "op", later).is_err());
        }
        assert!(book.approve(&right.0, Reach::Direct, "op", later).is_ok());
    }
}

#[test]
fn a_code_that_was_handed_on_lets_in_who_says_it_first() {
    let mut book = GuestBook::default();
    let code = book.issue(Reach::Everywhere, "op", chance(7), at(0)).expect("issues").0;
    let answer =
        book.said((&who("ann"), &here()), &code.to_lowercase(), Strangers::Pair, chance(1), at(1));
    let Answer::LetIn(grant) = answer else { panic!("{answer:?}") };
    assert_eq!((grant.reach, grant.by.as_str()), (Reach::Everywhere, "op"));
    assert_eq!(book.reach(&who("ann").id), Some(Reach::Everywhere));
    let late = book.said((&who("ben"), &here()), &code, Strangers::Pair, chance(2), at(1));
    assert!(matches!(late, Answer::Code(_)), "one winner, and words are words: {late:?}");
    assert_eq!(book.reach(&who("ben").id), None);
}

#[test]
fn who_guesses_five_times_is_not_listened_to_for_an_hour() {
    let mut book = GuestBook::default();
    let right = book.issue(Reach::Direct, "op", chance(7), at(0)).expect("issues").0;
    let say = |book: &mut GuestBook, text: &str, later| {
        book.said((&who("eve"), &here()), text, Strangers::Pair, chance(1), at(later))
    };
    for _ in 0..5 {
        assert_eq!(say(&mut book, "AAAAAAAA", 1), Answer::Silence(Silence::Wrong));
    }
    assert_eq!(say(&mut book, &right, 2), Answer::Silence(Silence::Barred));
    assert_eq!(book.reach(&who("eve").id), None);
    let next = book.issue(Reach::Direct, "op", chance(8), at(3601)).expect("issues").0;
    assert!(matches!(say(&mut book, &next, 3602), Answer::LetIn(_)), "an hour is an hour");
}

/// What is not even looked at is exactly what would change nothing.
#[test]
fn who_has_guessed_too_often_is_deaf_ground_for_an_hour_and_nobody_else_is() {
    let mut book = GuestBook::default();
    book.issue(Reach::Direct, "op", chance(9), at(0)).expect("there is room");
    let deaf = |book: &GuestBook, name: &str, now| {
        book.is_deaf_to(&who(name).id, "AAAAAAAA", Strangers::Pair, now)
    };
    let guess = |book: &mut GuestBook, now| {
        book.said((&who("eve"), &here()), "AAAAAAAA", Strangers::Pair, chance(1), now);
    };
    for second in 1..u64::from(MOST_GUESSES) {
        guess(&mut book, at(second));
    }
    assert!(!deaf(&book, "eve", at(9)), "one guess is left");
    guess(&mut book, at(10));
    for (now, expected) in [(9, false), (10, true), (11, true), (3599, true)] {
        assert_eq!(deaf(&book, "eve", at(now)), expected, "after {now} s");
        assert!(!deaf(&book, "ann", at(now)));
    }
    // The code is good for an hour as well; another one is out by then.
    book.issue(Reach::Direct, "op", chance(8), at(3599)).expect("there is room");
    for (now, expected) in [(3609, true), (3610, false), (3611, false)] {
        assert_eq!(deaf(&book, "eve", at(now)), expected, "after {now} s");
    }
}

#[test]
fn what_is_not_even_looked_at_is_looked_at_again_on_the_second() {
    let deaf = |book: &GuestBook, name: &str, now| {
        book.is_deaf_to(&who(name).id, "hello", Strangers::Pair, now)
    };
    let mut book = GuestBook::default();
    code(hello(&mut book, "ann", 1, at(0)));
    assert!(deaf(&book, "ann", at(599)) && !deaf(&book, "ben", at(599)));
    assert!(!deaf(&book, "ann", at(600)));
    for _ in 0..MOST_FAILURES {
        book.approve("AAAAAAAA", Reach::Direct, "op", at(1)).expect_err("no such code");
    }
    assert!(deaf(&book, "ben", at(3600)));
    assert!(!deaf(&book, "ben", at(3601)));
}

#[test]
fn who_says_a_right_code_is_forgiven_and_nobody_else_is() {
    let mut book = GuestBook::default();
    let right = book.issue(Reach::Direct, "op", chance(7), at(0)).expect("issues").0;
    let next = book.issue(Reach::Direct, "op", chance(8), at(0)).expect("issues").0;
    let mut says = |name: &str, text: &str| {
        book.said((&who(name), &here()), text, Strangers::Pair, chance(1), at(1))
    };
    for _ in 0..MOST_GUESSES {
        assert_eq!(says("eve", "AAAAAAAA"), Answer::Silence(Silence::Wrong));
    }
    for _ in 1..MOST_GUESSES {
        assert_eq!(says("ann", "AAAAAAAA"), Answer::Silence(Silence::Wrong));
    }
    assert!(matches!(says("ann", &right), Answer::LetIn(_)));
    assert_eq!(says("eve", &next), Answer::Silence(Silence::Barred));
    book.revoke(&SenderId::literal("ann"));
    let again = book.said((&who("ann"), &here()), "AAAAAAAA", Strangers::Pair, chance(1), at(2));
    assert_eq!(again, Answer::Silence(Silence::Wrong));
    let again = book.said((&who("ann"), &here()), &next, Strangers::Pair, chance(1), at(2));
    assert!(matches!(again, Answer::LetIn(_)), "they have five guesses again: {again:?}");
}

#[test]
fn no_more_guessers_are_remembered_than_there_is_room_for() {
    let mut book = GuestBook::default();
    for guess in 0..MOST_GUESSERS * 2 {
        if book.issued.is_empty() {
            book.issue(Reach::Direct, "op", chance(7), at(1)).expect("issues");
        }
        let eve = who(&format!("eve {guess}"));
        book.said((&eve, &here()), "AAAAAAAA", Strangers::Pair, chance(1), at(1));
        assert!(book.guessers.len() <= MOST_GUESSERS, "{guess}");
    }
    assert_eq!(book.guessers.len(), MOST_GUESSERS);
}

#[test]
fn who_is_let_in_asks_no_more_and_others_go_on_asking() {
    let mut book = GuestBook::default();
    code(hello(&mut book, "ann", 1, at(0)));
    code(hello(&mut book, "ben", 2, at(0)));
    let handed_on = book.issue(Reach::Direct, "op", chance(7), at(0)).expect("issues").0;
    book.said((&who("ann"), &here()), &handed_on, Strangers::Pair, chance(3), at(1));
    let asking: Vec<_> = book.requests(at(1)).map(|request| request.sender.as_str()).collect();
    assert_eq!(asking, ["ben"]);
}

#[test]
fn a_hundred_guesses_by_whomever_void_every_code() {
    let mut book = GuestBook::default();
    let right = book.issue(Reach::Direct, "op", chance(7), at(0)).expect("issues").0;
    for guess in 0..100 {
        let sender = who(&format!("eve {guess}"));
        let answer = book.said((&sender, &here()), "AAAAAAAA", Strangers::Pair, chance(1), at(1));
        let expected = if guess < 99 { Silence::Wrong } else { Silence::Void };
        assert_eq!(answer, Answer::Silence(expected), "{guess}");
    }
    let answer = book.said((&who("ann"), &here()), &right, Strangers::Pair, chance(2), at(2));
    assert!(matches!(answer, Answer::Code(_)), "the code is void: {answer:?}");
    let next = book.issue(Reach::Direct, "op", chance(8), at(3)).expect("issues").0;
    let answer = book.said((&who("ben"), &here()), &next, Strangers::Pair, chance(3), at(3));
    assert!(matches!(answer, Answer::LetIn(_)), "the next has a hundred of its own");
}

/// Chance that a test can repeat: the state of a generator that is not the one of the guesses.
fn drawn(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

#[test]
fn a_million_guesses_let_nobody_in() {
    const GUESSES: u32 = 1_000_000;
    const NAMES: u64 = 50_000;
    let (mut codes, mut guesses) = (7, 11);
    let mut book = GuestBook::default();
    let (mut looked_at, mut answered, mut largest) = (0, 0, 0);
    let mut last = None;
    for number in 0..GUESSES {
        // A thousand guesses a second, and every second somebody hands out a code.
        let now = at(u64::from(number / 1_000));
        if number % 1_000 == 0 {
            let chance = Chance(std::array::from_fn(|_| drawn(&mut codes).to_le_bytes()[3]));
            last = Some(book.issue(Reach::Everywhere, "operator", chance, now).unwrap());
        }
        let drawn = drawn(&mut guesses);
        let typed = Code::of(&drawn.to_le_bytes()).0;
        let eve = Sender::new(SenderId::new(format!("eve-{}", drawn % NAMES)).unwrap());
        if book.is_deaf_to(&eve.id, &typed, Strangers::Pair, now) {
            continue;
        }
        looked_at += 1;
        match book.said((&eve, &here()), &typed, Strangers::Pair, chance(1), now) {
            Answer::LetIn(_) => panic!("guess {number} was right"),
            Answer::Code(_) | Answer::Full => answered += 1,
            Answer::Silence(_) => {}
        }
        if number % 10_000 == 0 {
            largest = largest.max(serde_json::to_string(&book).unwrap().len());
        }
    }
    assert_eq!(book.guests().count(), 0);
    assert_eq!(book.issued(at(999)).count(), 0, "a hundred guesses void a code");
    assert!(looked_at < 120_000, "most cost next to nothing: {looked_at}");
    assert!(answered < 4 * MOST_REMEMBERED, "few are answered: {answered}");
    assert!(largest < 200 << 10, "the book stays small: {largest} bytes");
    let (late, text) = (who("late"), last.expect("codes were made").0);
    let answer = book.said((&late, &here()), &text, Strangers::Ignore, chance(2), at(999));
    assert_eq!(answer, Answer::Silence(Silence::Unwelcome), "a void code lets nobody in");
    let code = book.issue(Reach::Direct, "operator", chance(3), at(999)).unwrap().0;
    let answer = book.said((&late, &here()), &code, Strangers::Ignore, chance(4), at(999));
    assert!(matches!(answer, Answer::LetIn(_)), "and the right one does: {answer:?}");
}

#[test]
fn no_more_codes_are_out_than_there_is_room_for() {
    let mut book = GuestBook::default();
    for seed in 0..16 {
        book.issue(Reach::Direct, "op", chance(seed), at(0)).expect("there is room");
    }
    let one_more = book.issue(Reach::Direct, "op", chance(99), at(0));
    assert_eq!(one_more, Err(Refusal::TooManyCodes));
    assert_eq!(book.clear(at(1)), 16);
}

#[test]
fn no_more_people_are_let_in_than_there_is_room_for() {
    let grant = Grant { name: None, since: at(0), by: "op".into(), reach: Reach::Direct };
    let guest = |n: usize| (SenderId::new(format!("p{n}")).expect("an id"), grant.clone());
    let mut book =
        GuestBook { guests: (0..MOST_GUESTS).map(guest).collect(), ..GuestBook::default() };
    let asked = code(hello(&mut book, "ann", 1, at(0)));
    let refused = book.approve(&asked.0, Reach::Direct, "op", at(1));
    assert_eq!(refused, Err(Refusal::TooManyGuests));
    let issued = book.issue(Reach::Direct, "op", chance(5), at(1)).expect("issues");
    let answer = book.said((&who("ben"), &here()), &issued.0, Strangers::Pair, chance(2), at(2));
    assert_eq!(answer, Answer::Silence(Silence::Wrong));
    book.revoke(&SenderId::literal("p7"));
    assert!(book.approve(&asked.0, Reach::Direct, "op", at(3)).is_ok());
}

#[test]
fn who_a_list_lets_in_is_news_once_and_as_long_as_there_is_room_to_remember() {
    let mut book = GuestBook::default();
    let ann = SenderId::literal("ann");
    assert!(book.is_news(&ann));
    assert!(book.meet(&ann));
    assert!(!book.is_news(&ann));
    assert!(!book.meet(&ann));
    for number in 1..MOST_MET {
        assert!(book.meet(&SenderId::new(format!("guest {number}")).expect("an id")), "{number}");
    }
    let late = SenderId::literal("late");
    assert!(!book.is_news(&late), "there is no room to remember that it was recorded");
    assert!(!book.meet(&late));
}

#[test]
fn a_clock_that_was_set_back_locks_nobody_out() {
    let mut book = GuestBook::default();
    code(hello(&mut book, "ann", 1, at(100_000)));
    for _ in 0..5 {
        let _ = book.approve("AAAAAAAA", Reach::Direct, "op", at(100_000));
    }
    code(hello(&mut book, "ann", 2, at(0)));
}

#[test]
fn where_strangers_are_ignored_only_a_code_that_was_handed_on_counts() {
    let mut book = GuestBook::default();
    let say = |book: &mut GuestBook, text: &str| {
        book.said((&who("ann"), &here()), text, Strangers::Ignore, chance(1), at(1))
    };
    for text in ["hello", "ABCDEFGH"] {
        assert_eq!(say(&mut book, text), Answer::Silence(Silence::Unwelcome));
        assert!(book.is_deaf_to(&who("ann").id, text, Strangers::Ignore, at(1)));
    }
    assert_eq!(book, GuestBook::default());
    let code = book.issue(Reach::Direct, "op", chance(7), at(0)).expect("issues").0;
    assert!(!book.is_deaf_to(&who("ann").id, &code, Strangers::Ignore, at(1)));
    assert!(matches!(say(&mut book, &code), Answer::LetIn(_)));
}

#[test]
fn codes_are_kept_as_digests_and_never_printed() {
    let mut book = GuestBook::default();
    let asked = code(hello(&mut book, "ann", 1, at(0)));
    let issued = book.issue(Reach::Direct, "op", chance(2), at(0)).expect("issues");
    let kept = serde_json::to_string(&book).expect("serialises");
    let printed = format!("{book:?} {asked:?}");
    for code in [asked.0, issued.0] {
        assert!(!kept.contains(&code) && !printed.contains(&code), "{kept} {printed}");
    }
    let salts: BTreeSet<_> = book
        .requests
        .iter()
        .map(|request| request.code.salt.clone())
        .chain(book.issued.iter().map(|issued| issued.code.salt.clone()))
        .collect();
    assert_eq!(salts.len(), 2, "each has a salt of its own");
    assert_eq!(serde_json::from_str::<GuestBook>(&kept).expect("deserialises"), book);
}

#[test]
fn what_can_be_a_code_and_what_cannot() {
    for (typed, expected) in [
        ("ABCDEFGH", Some("ABCDEFGH")),
        ("abcd-efgh", Some("ABCDEFGH")),
        (" a b c d e f g h ", Some("ABCDEFGH")),
        ("ABCDEFG", None),
        ("ABCDEFGHJ", None),
        ("ABCDEFG0", None),
        ("ABCDEFG1", None),
        ("ABCDEFGI", None),
        ("ABCDEFGO", None),
        ("ABCDEFGé", None),
        ("", None),
    ] {
        assert_eq!(Code::read(typed).map(|code| code.0).as_deref(), expected, "{typed}");
    }
}

#[test]
fn what_a_stranger_says_is_a_code_only_as_codes_are_told() {
    for (said, expected) in [
        ("ABCDEFGH", Some("ABCDEFGH")),
        (" abcdefgh\n", Some("ABCDEFGH")),
        ("abcd-efgh", Some("ABCDEFGH")),
        ("hey there", None),
        ("heyt here", None),
        ("a b c d e f g h", None),
        ("hey-there", None),
        ("ab-cd-ef-gh", None),
        ("-abcdefgh", None),
        ("ABCDEFG", None),
        ("ABCDEFGHJ", None),
        ("ABCDEF-", None),
        ("ABCDEFG0", None),
        ("ABCDEFé", None),
        ("", None),
    ] {
        assert_eq!(Code::said(said).map(|code| code.0).as_deref(), expected, "{said:?}");
    }
}

#[test]
fn a_greeting_is_no_guess_and_gets_a_code_while_another_is_out() {
    let mut book = GuestBook::default();
    book.issue(Reach::Direct, "op", chance(1), at(0)).expect("issues");
    let said = (&who("ann"), &here());
    let answer = book.said(said, "hey there", Strangers::Pair, chance(2), at(1));
    assert!(matches!(answer, Answer::Code(_)), "{answer:?}");
    assert_eq!(book.guesses, 0);
    assert!(book.guessers.is_empty());
}

#[test]
fn a_name_hides_and_turns_nothing() {
    assert_eq!(shown("Ann\u{202e}nimda\u{200b}\n  B\u{7}."), "Annnimda B.");
    assert_eq!(shown(&"x".repeat(1000)).len(), LONGEST_NAME);
}

#[derive(Debug, Clone)]
enum Op {
    Say(u8, String),
    Approve(String),
    Issue(u8),
    Revoke(u8),
    Clear,
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any::<u8>(), "[A-H2-9]{8}|hello").prop_map(|(who, text)| Op::Say(who, text)),
        2 => "[A-H2-9]{8}".prop_map(Op::Approve),
        1 => any::<u8>().prop_map(Op::Issue),
        1 => any::<u8>().prop_map(Op::Revoke),
        1 => Just(Op::Clear),
        1 => (0_u64..5000).prop_map(Op::Pass),
    ]
}

proptest! {
    #[test]
    fn without_the_code_nobody_is_let_in_and_the_book_stays_small(
        ops in prop::collection::vec(op(), 1..200),
    ) {
        let mut book = GuestBook::default();
        let mut now = at(0);
        for op in ops {
            match op {
                // No code that comes of this chance has only those letters.
                Op::Say(name, text) => {
                    let sender = who(&format!("p{name}"));
                    let silence = book.silence_for(&sender.id, &text, Strangers::Pair, now);
                    let answer = book.said((&sender, &here()), &text, Strangers::Pair, Chance([13; 32]), now);
                    let quiet = [Silence::Lately, Silence::Crowded, Silence::Locked, Silence::Barred];
                    let answered = match answer {
                        Answer::Silence(silence) if quiet.contains(&silence) => Some(silence),
                        _ => None,
                    };
                    prop_assert_eq!(silence, answered, "{:?}", answer);
                }
                Op::Approve(text) => drop(book.approve(&text, Reach::Direct, "op", now)),
                Op::Issue(seed) => {
                    let mut chance = Chance([13; 32]);
                    chance.0[0] = seed;
                    drop(book.issue(Reach::Direct, "op", chance, now));
                }
                Op::Revoke(name) => drop(book.revoke(&who(&format!("p{name}")).id)),
                Op::Clear => drop(book.clear(now)),
                Op::Pass(seconds) => {
                    now = now + Duration::from_secs(seconds);
                }
            }
            prop_assert_eq!(book.guests().count(), 0);
            prop_assert!(book.requests.len() <= MOST_REQUESTS);
            prop_assert!(book.issued.len() <= MOST_ISSUED);
            prop_assert!(book.answered.len() <= MOST_REMEMBERED);
            prop_assert!(book.guessers.len() <= MOST_GUESSERS);
        }
    }
}

#[test]
fn a_code_is_not_printed_by_accident() {
    let code = Code::of(&[7; LENGTH]);
    assert_eq!(format!("{code:?}"), "Code(…)");
}

/// A book in which these were let in, a request is open and a code is out.
fn of_old(guests: &[(&str, Reach)]) -> GuestBook {
    let mut book = GuestBook::default();
    for (name, reach) in guests {
        let code = book.issue(*reach, "op", chance(9), at(0)).expect("issues").0;
        let answer = book.said((&who(name), &here()), &code, Strangers::Pair, chance(1), at(0));
        assert!(matches!(answer, Answer::LetIn(_)), "{answer:?}");
    }
    code(hello(&mut book, "stranger", 7, at(1)));
    book.issue(Reach::Everywhere, "op", chance(8), at(1)).expect("issues");
    book
}

#[test]
fn no_code_of_a_book_that_is_gone_back_to_is_good() {
    let mut book = GuestBook::default();
    let asked = code(hello(&mut book, "ann", 1, at(0)));
    let issued = book.issue(Reach::Direct, "op", chance(2), at(0)).expect("issues");
    assert_eq!(book.go_back(None, at(9)), Lapsed { codes: 2, put_out: Vec::new() });
    let refused = book.approve(&asked.0, Reach::Direct, "op", at(10));
    assert_eq!(refused, Err(Refusal::NoSuchCode { left: 4 }));
    let said = (&who("ben"), &here());
    let answer = book.said(said, &issued.0, Strangers::Ignore, chance(3), at(10));
    assert_eq!(answer, Answer::Silence(Silence::Unwelcome));
    assert_eq!(book.guests().count(), 0);
}

#[test]
fn who_is_not_let_in_by_now_is_not_let_in_by_an_old_book() {
    use Reach::{Direct, Everywhere};
    let old = [("ann", Direct), ("ben", Everywhere), ("cleo", Everywhere), ("dora", Direct)];
    let mut book = of_old(&old);
    let mut present = of_old(&[("ben", Direct), ("cleo", Everywhere), ("dora", Everywhere)]);
    let lapsed = book.go_back(Some(&present), at(9));
    assert_eq!(lapsed, Lapsed { codes: 2, put_out: vec![who("ann").id] });
    let reach = |book: &GuestBook, name| book.reach(&who(name).id);
    let now = ["ann", "ben", "cleo", "dora"].map(|name| reach(&book, name));
    assert_eq!(now, [None, Some(Direct), Some(Everywhere), Some(Direct)]);
    // Who was let in since is not let in by the book of before.
    present = of_old(&[("ann", Direct), ("eve", Direct)]);
    let mut book = of_old(&[("ann", Direct)]);
    book.go_back(Some(&present), at(9));
    assert_eq!(book.guests().map(|(sender, _)| sender.as_str()).collect::<Vec<_>>(), ["ann"]);
}

#[test]
fn without_a_present_book_the_old_one_says_who_is_let_in() {
    let mut book = of_old(&[("ann", Reach::Everywhere)]);
    let lapsed = book.go_back(None, at(9));
    assert_eq!(lapsed, Lapsed { codes: 2, put_out: Vec::new() });
    assert_eq!(book.reach(&who("ann").id), Some(Reach::Everywhere));
}

#[test]
fn who_may_not_try_now_may_not_after_going_back_and_the_later_lock_holds() {
    let locked = |since: u64| {
        let mut book = GuestBook::default();
        for _ in 0..MOST_FAILURES {
            let _ = book.approve("AAAAAAAA", Reach::Direct, "op", at(since));
        }
        book
    };
    let until = |since: u64| Some(at(since) + LOCKOUT);
    for (old, present, expected) in [
        (GuestBook::default(), locked(100), until(100)),
        (locked(100), GuestBook::default(), until(100)),
        (locked(100), locked(200), until(200)),
        (locked(200), locked(100), until(200)),
    ] {
        let mut book = old;
        book.go_back(Some(&present), at(300));
        assert_eq!(book.locked_until(at(300)), expected);
    }
    let mut book = GuestBook::default();
    book.go_back(Some(&locked(0)), at(1) + LOCKOUT);
    assert_eq!(book, GuestBook::default(), "what is over is over");

    let mut present = of_old(&[]);
    for _ in 0..MOST_GUESSES {
        present.said((&who("eve"), &here()), "AAAAAAAA", Strangers::Pair, chance(4), at(2));
    }
    let mut book = GuestBook::default();
    book.go_back(Some(&present), at(3));
    let code = book.issue(Reach::Direct, "op", chance(5), at(3)).expect("issues");
    let answer = book.said((&who("eve"), &here()), &code.0, Strangers::Pair, chance(6), at(4));
    assert_eq!(answer, Answer::Silence(Silence::Barred));
}

#[test]
fn what_was_typed_is_compared_and_neither_printed_nor_written() {
    let typed = TypedCode::new("ABCD-EFGH");
    assert_eq!(typed.expose(), "ABCD-EFGH");
    assert_eq!(format!("{typed:?}"), "TypedCode(…)");
    assert_eq!(serde_json::to_string(&typed).unwrap(), "\"\"");
    assert_eq!(serde_json::from_str::<TypedCode>("\"x\"").unwrap().expose(), "x");
}

#[test]
fn a_code_goes_with_the_right_of_its_administrator_and_the_operators_stay() {
    let issuer = |name| Issuer { sender: SenderId::literal(name), roles: Vec::new() };
    let mut book = GuestBook::default();
    book.issue(Reach::Direct, "operator", chance(1), at(0)).expect("issues");
    let made =
        [(2, "alice", Reach::Direct), (3, "bob", Reach::Direct), (4, "bob", Reach::Everywhere)];
    for (seed, name, reach) in made {
        book.issue_for(Some(issuer(name)), reach, name, chance(seed), at(0)).expect("issues");
    }
    book.void(|admin, reach| admin.sender.as_str() == "bob" && reach == Reach::Direct);
    let left: Vec<_> = book.issued(at(1)).map(|code| (code.by.as_str(), code.reach)).collect();
    assert_eq!(left, [("operator", Reach::Direct), ("bob", Reach::Direct)]);
    let stored = serde_json::to_string(&book).expect("a book serialises");
    assert_eq!(serde_json::from_str::<GuestBook>(&stored).expect("and deserialises"), book);
}
