//! Accounts that are added, taken out, put back and set up in another way while the gateway runs.

use super::*;

#[test]
fn an_account_that_is_set_up_anew_has_never_two_connections() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    world.live(async |life| {
        for n in 0..20 {
            other.say("alice", "home", &format!("{n}"));
            life.gateway.put_account(plan.clone());
            life.pass(Duration::from_millis(7 * n)).await;
        }
        life.quiet().await;
        assert_eq!(other.truth(|truth| truth.most_listening), 1);
        let texts = other.texts("home");
        let mut said: Vec<&str> =
            texts.iter().flat_map(|text| text["echo: ".len()..].split(" / ")).collect();
        said.sort_by_key(|number| number.parse::<u32>().unwrap());
        let all: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        assert_eq!(said, all, "each once");
    });
}

#[test]
fn an_account_can_be_added_taken_out_and_put_back_while_the_gateway_runs() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    world.accounts.truncate(1);
    world.live(async |life| {
        other.say("alice", "home", "first");
        life.pass_seconds(5).await;
        assert_eq!((other.texts("home").len(), life.gateway.accounts().len()), (0, 1));
        life.gateway.put_account(plan.clone());
        let state = life.gateway.tried(&other.account(), Duration::from_secs(60)).await;
        assert_eq!(state, Some(AccountState::Connected));
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home"), ["echo: first"]);
        life.gateway.drop_account(&other.account());
        life.pass_seconds(1).await;
        assert_eq!(life.gateway.accounts().len(), 1);
        other.say("alice", "home", "second");
        life.pass_seconds(60).await;
        assert_eq!(other.texts("home").len(), 1, "nobody listens");
        life.gateway.put_account(plan);
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home")[1], "echo: second");
    });
}

#[test]
fn an_account_that_is_added_later_does_not_begin_another_start() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    world.accounts.truncate(1);
    other.hangs_while_connecting();
    world.live(async |life| {
        assert!(life.gateway.is_starting());
        life.gateway.every_connection().await;
        assert!(!life.gateway.is_starting());
        life.gateway.put_account(plan);
        life.pass_seconds(5).await;
        assert!(!status(life, "other").tried);
        assert!(!life.gateway.is_starting());
    });
}

/// Answers each turn with what was said, one for each permit.
fn one_by_one() -> (Arc<dyn talaria_agent::Agent>, Arc<Semaphore>, Arc<Semaphore>) {
    let (begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begins, ends) = (begun.clone(), may_end.clone());
    let agent = agent(move |stage| {
        let (begins, ends) = (begins.clone(), ends.clone());
        async move {
            begins.add_permits(1);
            ends.acquire().await.unwrap().forget();
            stage.finish(&stage.echo()).await;
        }
    });
    (agent, begun, may_end)
}

#[test]
fn what_is_decided_while_an_account_is_out_is_delivered_when_it_is_back() {
    let (mut world, other) = watched();
    let (agent, _, may_end) = one_by_one();
    world.agent = agent;
    let plan = world.plan(&other);
    world.live(async |life| {
        other.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        life.gateway.drop_account(&other.account());
        life.pass_seconds(1).await;
        may_end.add_permits(1);
        life.pass_seconds(60 * 60).await;
        let counts = life.disk.counts().await.unwrap();
        assert_eq!((counts.undelivered, other.texts("home").len()), (1, 0));
        life.gateway.put_account(plan);
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home"), ["echo: hello"]);
        life.quiet().await;
    });
}

#[test]
fn what_the_last_run_left_for_an_account_is_delivered_when_the_account_is_added_later() {
    let (mut world, other) = watched();
    let away = || Conduct::Refuses(SendError::Unreachable { reason: "no route".into() });
    other.behaves(move |_| away());
    world.live(async |life| {
        other.say("alice", "home", "hello");
        life.pass_seconds(5).await;
        assert_eq!(life.disk.counts().await.unwrap().undelivered, 1);
    });
    other.behaves(|_| Conduct::Shows);
    let plan = world.plan(&other);
    world.accounts.truncate(1);
    world.live(async |life| {
        life.pass_seconds(60 * 60).await;
        assert_eq!(other.texts("home").len(), 0);
        life.gateway.put_account(plan);
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home"), ["echo: hello"]);
        other.say("alice", "home", "and now?");
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home")[1], "echo: and now?");
    });
}

#[test]
fn an_answer_that_grows_goes_by_how_the_account_is_set_up_at_the_moment() {
    let mut world = World::new(EDITING).with_agent(agent(|stage| async move {
        let mut text = String::new();
        for n in 0..30 {
            text.push_str(&format!("This is the sentence number {n}. "));
            stage.show(&text);
            SystemClock.sleep(Duration::from_millis(250)).await;
        }
        std::future::pending().await
    }));
    let text = TextLimit { max: 200, ..EDITING.text };
    let narrow = Capabilities { text, ..EDITING };
    let plan = world.plan(&world.vendor());
    let plan = AccountPlan { account: plan.account.clone().able(|_| narrow), ..plan };
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(2).await;
        assert_eq!(life.vendor.texts("home").len(), 1);
        life.gateway.put_account(plan);
        life.pass_seconds(20).await;
        let texts = life.vendor.texts("home");
        assert!(texts.len() > 4, "{texts:?}");
        assert!(texts.iter().all(|text| text.chars().count() <= 200), "{texts:?}");
    });
}

/// A gateway whose first account is taken out while a turn works there, one message waits behind it and
/// another has not been heard.
async fn taken_out_at_work(life: &Life, begun: &Semaphore, may_end: &Semaphore) {
    life.vendor.say("alice", "home", "first");
    life.pass_seconds(1).await;
    for text in ["second", "third"] {
        life.vendor.say("alice", "home", text);
        life.pass_seconds(1).await;
    }
    life.gateway.drop_account(&life.vendor.account());
    life.pass_seconds(1).await;
    may_end.add_permits(3);
    life.pass_seconds(60 * 60).await;
    let counts = life.disk.counts().await.unwrap();
    assert_eq!((counts.denied, counts.unread, counts.undelivered), (0, 1, 1), "{counts:?}");
    assert_eq!(begun.available_permits(), 1, "no turn begins for an account that is out");
    let session = life.disk.load(&key(&life.vendor.dm("home"))).await.unwrap().unwrap();
    let turn = &session.hand().expect("it waits").turn;
    let standing = life.gateway.standing(turn, &life.vendor.account());
    assert_eq!(standing, Standing::WaitsForAccount);
    let clue = Clue::Chat { account: life.vendor.account(), chat: life.vendor.dm("home").chat.id };
    let traced = life.disk.trace(&clue, 10).await.unwrap();
    let unread = traced.iter().find(|event| event.state == JournalState::Unread).unwrap();
    let hindrance = life.gateway.hindrance(&unread.inbound, &unread.state);
    assert_eq!(hindrance, Some(Hindrance::Account), "nor is the one read that was not heard");
    assert!(life.vendor.texts("home").is_empty());
}

fn queueing() -> (World, Arc<Semaphore>, Arc<Semaphore>) {
    let (mut world, _) = watched();
    let (agent, begun, may_end) = one_by_one();
    world.agent = agent;
    world.rules.busy = Busy::Queue;
    world.rules.room = 1;
    (world, begun, may_end)
}

#[test]
fn what_was_said_before_an_account_was_taken_out_is_answered_when_it_is_back() {
    let (mut world, begun, may_end) = queueing();
    let plan = world.plan(&world.vendor());
    world.live(async |life| {
        taken_out_at_work(life, &begun, &may_end).await;
        life.gateway.put_account(plan);
        life.pass_seconds(2).await;
        assert_eq!(life.vendor.texts("home"), ["echo: first", "echo: second", "echo: third"]);
        life.quiet().await;
        assert_eq!(life.disk.counts().await.unwrap().denied, 0);
    });
}

#[test]
fn what_waits_for_an_account_is_denied_by_a_start_without_it() {
    let (mut world, begun, may_end) = queueing();
    world.live(async |life| taken_out_at_work(life, &begun, &may_end).await);
    world.accounts.remove(0);
    world.live(async |life| {
        life.pass_seconds(60).await;
        let counts = life.disk.counts().await.unwrap();
        assert_eq!((counts.denied, counts.unread), (2, 0), "{counts:?}");
        assert_eq!(begun.available_permits(), 1, "nor does a turn that was in hand begin");
    });
}

#[test]
fn a_session_that_waits_for_its_account_takes_no_place_from_others() {
    let (mut world, other) = watched();
    let (agent, _, may_end) = one_by_one();
    world.agent = agent;
    world.rules.busy = Busy::Queue;
    world.live(async |life| {
        for text in ["first", "second"] {
            life.vendor.say("alice", "home", text);
            life.pass_seconds(1).await;
        }
        other.say("bob", "den", "hello");
        life.pass_seconds(1).await;
    });
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        life.pass_seconds(1).await;
        life.gateway.drop_account(&life.vendor.account());
        may_end.add_permits(3);
        life.pass_seconds(60).await;
        assert!(life.vendor.texts("home").is_empty(), "it is out");
        assert_eq!(other.texts("den"), ["echo: hello"]);
    });
}

#[test]
fn an_account_that_is_taken_out_lets_go_of_what_it_was_connected_with() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    let claim = Arc::new(());
    let claimed = Arc::downgrade(&claim);
    let account = plan.account.clone().claiming(move || {
        let _ = &claim;
        Ok(())
    });
    let plan = AccountPlan { account, ..plan };
    world.accounts.truncate(1);
    world.live(async |life| {
        life.gateway.put_account(plan);
        let id = other.account();
        let state = life.gateway.tried(&id, Duration::from_secs(60)).await;
        assert_eq!((state, claimed.strong_count()), (Some(AccountState::Connected), 1));
        life.gateway.drop_account(&id);
        life.gateway.tried(&id, Duration::from_secs(60)).await;
        assert_eq!(claimed.strong_count(), 0);
    });
}

#[test]
fn a_paused_account_that_is_taken_out_and_put_back_stays_paused() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    world.live(async |life| {
        life.gateway.pause(&other.account(), Pause::Pause, "operator").await.unwrap();
        life.gateway.drop_account(&other.account());
        life.pass_seconds(1).await;
        life.gateway.put_account(plan.clone());
        life.pass_seconds(60).await;
        assert_eq!(status(life, "other").state, AccountState::Paused);
        life.gateway.pause(&other.account(), Pause::Resume, "operator").await.unwrap();
        life.pass_seconds(1).await;
        assert_eq!(status(life, "other").state, AccountState::Connected);
        life.gateway.pause(&other.account(), Pause::Pause, "operator").await.unwrap();
    });
    world.accounts.truncate(1);
    world.live(async |life| {
        life.gateway.put_account(plan);
        life.pass_seconds(60).await;
        assert_eq!(
            status(life, "other").state,
            AccountState::Paused,
            "nor after a start without it"
        );
    });
}

#[test]
fn an_account_is_not_connected_before_it_is_known_whom_it_lets_in() {
    let (mut world, other) = watched();
    let access =
        Access { strangers: Strangers::Pair, ..Access::only([SenderId::literal("alice")]) };
    world.accounts[1].1 = access.clone();
    let plan = AccountPlan { access, ..world.plan(&other) };
    world.live(async |life| {
        other.say("ann", "home", "hello");
        life.pass_seconds(1).await;
        let told = other.texts("home").remove(0);
        let code = told.split('`').nth(1).unwrap().to_owned();
        let typed = talaria_session::pairing::TypedCode::new(code);
        let wish = talaria_session::PairWish::Approve(typed, talaria_session::Reach::Direct);
        life.gateway.pair(&other.account(), &wish, "operator").await.unwrap();
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home").len(), 2);
    });
    world.accounts.truncate(1);
    world.live(async |life| {
        other.say("ann", "home", "it is me");
        life.disk.fails(Verb::Guests, 4);
        let before = connections(&other);
        life.gateway.put_account(plan);
        life.pass_seconds(2).await;
        let AccountStatus { state, .. } = status(life, "other");
        assert!(matches!(state, AccountState::Waiting { .. }), "{state:?}");
        assert_eq!(connections(&other), before);
        life.pass_seconds(30).await;
        assert_eq!(status(life, "other").state, AccountState::Connected);
        assert_eq!(other.texts("home")[2], "echo: it is me", "they are known");
    });
}

#[test]
fn new_settings_with_which_an_account_goes_deaf_are_taken_back_and_the_operator_is_told() {
    let (mut world, other) = watched();
    let plan = world.plan(&world.vendor());
    let (old, new) = (plan.clone(), plan);
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        let mut probation = Probation::default();
        let id = life.vendor.account();
        life.gateway.put_account(new);
        let state = life.gateway.tried(&id, Duration::from_secs(40)).await;
        assert_eq!(state, Some(AccountState::Connected));
        probation.begin(&life.gateway, old);
        // The vendor takes the connection and says nothing on it; the next one is as good as ever.
        life.vendor.forgets_listeners();
        life.pass_seconds(50).await;
        assert!(probation.failed(&life.gateway).is_none(), "nobody knows yet");
        life.pass_seconds(3 * 60).await;
        assert_eq!(life.account().state, AccountState::Connected, "nobody has looked meanwhile");
        let before = connections(&life.vendor);
        let (back, state) = probation.failed(&life.gateway).expect("it was deaf");
        let AccountState::Deaf { reason } = state else { panic!("{state:?}") };
        life.gateway.take_back(back, &reason).await;
        life.pass_seconds(5).await;
        assert_eq!(connections(&life.vendor), before + 1);
        assert!(probation.is_empty());
        let told = other.texts("operator");
        let told = told.last().expect("they are told");
        assert!(told.contains("`main` does not work with its new settings"), "{told}");
        assert!(told.contains("connected and not heard"), "{told}");
    });
}

#[test]
fn new_settings_that_work_for_a_while_have_proved_themselves_whatever_the_clock_says() {
    let (mut world, _) = watched();
    let plan = world.plan(&world.vendor());
    world.live(async |life| {
        let mut probation = Probation::default();
        life.gateway.put_account(plan.clone());
        life.pass_seconds(1).await;
        probation.begin(&life.gateway, plan);
        life.clock.jump(AN_HOUR_BACK);
        life.pass_seconds(149).await;
        assert!(probation.failed(&life.gateway).is_none() && !probation.is_empty());
        life.pass_seconds(1).await;
        assert!(probation.failed(&life.gateway).is_none() && probation.is_empty());
    });
}
