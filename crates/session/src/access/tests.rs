use super::*;
use crate::budget::{Need, Spent};
use crate::people::Role;
use crate::tests::said;
use proptest::prelude::*;

fn ids(names: &[&str]) -> BTreeSet<SenderId> {
    names.iter().map(|name| SenderId::new(*name).expect("an id")).collect()
}

fn roles(names: &[&str]) -> BTreeSet<RoleId> {
    names.iter().map(|name| RoleId::new(*name).expect("an id")).collect()
}

fn caller(sender: &Sender, room: Room) -> Caller<'_> {
    Caller { sender, roles: &[], room, grant: None }
}

fn stands(access: &Access, name: &str, room: Room) -> (Footing, Rule) {
    access.footing(caller(&Sender::new(SenderId::new(name).expect("an id")), room))
}

fn gated(admins: &[&str]) -> RoomRules {
    let tiers = Arc::new(Tiers { admins: ids(admins), ..Tiers::default() });
    RoomRules { tiers, ..RoomRules::default() }
}

#[test]
fn the_first_rule_that_decides_decides() {
    use Footing::{Admin, Guest, Listed, Nobody, Operator, Stranger};
    use Room::{Direct, Group};
    let with_room = |direct: &[&str], group: &[&str]| Access {
        direct: RoomRules { listed: ids(direct), ..gated(&["root"]) },
        group: RoomRules { listed: ids(group), ..gated(&["root"]) },
        ..Access::closed()
    };
    let general = Access { general: ids(&["ann"]), ..with_room(&[], &[]) };
    let open = Access { listed: ids(&["ann"]), ..Access::everyone() };
    let shut = RoomRules { policy: Policy::Disabled, ..RoomRules::default() };
    let no_groups = Access { group: shut.clone(), ..Access::only(ids(&["ann"])) };
    let own_but_shut = Access { direct: shut, ..Access::own() };
    for (access, who, room, expected) in [
        (&Access::closed(), "ann", Direct, (Stranger, Rule::None)),
        (&Access::closed(), "ann", Group, (Stranger, Rule::None)),
        (&Access::own(), "ann", Direct, (Operator, Rule::Authenticated)),
        (&own_but_shut, "ann", Direct, (Nobody, Rule::Disabled)),
        (&Access::only(ids(&["ann"])), "ann", Direct, (Admin, Rule::List)),
        (&Access::only(ids(&["ann"])), "ann", Group, (Admin, Rule::List)),
        (&Access::only(ids(&["ann"])), "Ann", Direct, (Stranger, Rule::None)),
        (&Access::only(ids(&["ann"])), "annabel", Direct, (Stranger, Rule::None)),
        (&Access::only(ids(&["*"])), "ann", Direct, (Stranger, Rule::None)),
        (&with_room(&["ann"], &[]), "ann", Direct, (Listed, Rule::RoomList)),
        (&with_room(&["ann"], &[]), "ann", Group, (Stranger, Rule::None)),
        (&with_room(&[], &["ann"]), "ann", Group, (Listed, Rule::RoomList)),
        (&with_room(&[], &["ann"]), "ann", Direct, (Stranger, Rule::None)),
        (&general, "ann", Group, (Listed, Rule::General)),
        (&general, "root", Group, (Stranger, Rule::None)),
        (&open, "ann", Direct, (Admin, Rule::List)),
        (&open, "ben", Direct, (Guest, Rule::Everyone)),
        (&no_groups, "ann", Group, (Nobody, Rule::Disabled)),
        (&no_groups, "ann", Direct, (Admin, Rule::List)),
    ] {
        assert_eq!(stands(access, who, room), expected, "{who} {room:?} {access:?}");
    }
}

#[test]
fn a_pairing_reaches_as_far_as_it_was_granted_and_makes_no_administrator() {
    let ann = Sender::new(SenderId::literal("ann"));
    for (grant, room, expected) in [
        (Some(Reach::Direct), Room::Direct, Footing::Paired),
        (Some(Reach::Direct), Room::Group, Footing::Stranger),
        (Some(Reach::Everywhere), Room::Direct, Footing::Paired),
        (Some(Reach::Everywhere), Room::Group, Footing::Paired),
        (None, Room::Direct, Footing::Stranger),
    ] {
        let caller = Caller { grant, ..caller(&ann, room) };
        assert_eq!(Access::closed().footing(caller).0, expected, "{grant:?} {room:?}");
    }
    let named = Access { direct: gated(&["ann"]), ..Access::closed() };
    let caller = Caller { grant: Some(Reach::Direct), ..caller(&ann, Room::Direct) };
    assert_eq!(named.footing(caller), (Footing::Admin, Rule::Pairing), "who is named is");
}

#[test]
fn a_pairing_takes_nothing_away_from_somebody_who_is_on_a_list() {
    let ann = Sender::new(SenderId::literal("ann"));
    let access = Access { general: ids(&["ann"]), ..Access::closed() };
    let paired = Caller { grant: Some(Reach::Everywhere), ..caller(&ann, Room::Direct) };
    assert_eq!(access.footing(paired), access.footing(caller(&ann, Room::Direct)));
}

#[test]
fn atk_047_whoever_speaks_in_the_name_of_a_chat_is_a_guest_at_most() {
    let group = Sender { kind: SenderKind::Chat, ..Sender::new(SenderId::literal("-100300")) };
    let listed = Access { direct: gated(&["-100300"]), ..Access::only(ids(&["-100300"])) };
    for room in [Room::Direct, Room::Group] {
        let authority = listed.authority(caller(&group, room));
        assert_eq!((authority.footing, authority.rule), (Footing::Guest, Rule::List));
        for by in [Approvers::Requester, Approvers::Admins, Approvers::Both] {
            assert!(!authority.may(Deed::Approve(Whose::Own, by)), "{by:?}");
        }
    }
    assert_eq!(Access::closed().footing(caller(&group, Room::Group)).0, Footing::Stranger);
}

#[test]
fn atk_047_a_program_is_a_guest_at_most_however_it_was_let_in() {
    let robot = Sender { kind: SenderKind::Bot, ..Sender::new(SenderId::literal("B5")) };
    let named = Access { direct: gated(&["B5"]), ..Access::only(ids(&["B5"])) };
    let by_role = RoomRules { roles: roles(&["bots"]), ..RoomRules::default() };
    let everyone = Arc::new(Tiers { unnamed: Unnamed::Everyone, ..Tiers::default() });
    for (access, rule) in [
        (Access::only(ids(&["U1", "B5"])), Rule::List),
        (named, Rule::List),
        (Access { direct: by_role, ..Access::closed() }, Rule::Role),
        (Access { general: ids(&["B5"]), ..Access::closed() }, Rule::General),
        (Access::closed(), Rule::Pairing),
        (
            Access {
                direct: RoomRules { tiers: everyone, ..Access::everyone().direct },
                ..Access::closed()
            },
            Rule::Everyone,
        ),
    ] {
        let theirs = [RoleId::literal("bots")];
        let grant = Some(Reach::Everywhere).filter(|_| rule == Rule::Pairing);
        let authority =
            access.authority(Caller { sender: &robot, roles: &theirs, room: Room::Direct, grant });
        assert_eq!((authority.footing, authority.rule), (Footing::Guest, rule));
        assert!(authority.may(Deed::Speak), "{rule:?}");
        for by in [Approvers::Requester, Approvers::Admins, Approvers::Both] {
            assert!(!authority.may(Deed::Approve(Whose::Own, by)), "{rule:?} {by:?}");
            assert!(!authority.may(Deed::Approve(Whose::Anothers, by)), "{rule:?} {by:?}");
        }
        assert!(!authority.may_give("restart", Who::Admin), "{rule:?}");
        assert!(!authority.may(Deed::LetIn) && !authority.may(Deed::SendElsewhere), "{rule:?}");
    }
    assert_eq!(Access::closed().footing(caller(&robot, Room::Group)).0, Footing::Stranger);
}

#[test]
fn whoever_is_heard_stops_their_own_turn_and_another_s_only_by_the_command() {
    let ann = Sender::new(SenderId::literal("ann"));
    let of = |rules: RoomRules| {
        let access = Access { direct: rules, ..Access::only(ids(&["ann"])) };
        let by = access.authority(caller(&ann, Room::Direct));
        let given = |name| by.may_give(name, Who::Anyone);
        (by.may_stop(Whose::Own), by.may_stop(Whose::Anothers), given("deny"), given("new"))
    };
    assert_eq!(of(RoomRules::default()), (true, true, true, true));
    assert_eq!(of(gated(&["root"])), (true, false, true, false));
    let stranger = Access::closed().authority(caller(&ann, Room::Direct));
    assert!(!stranger.may_give("stop", Who::Anyone) && !stranger.may_stop(Whose::Own));
}

#[test]
fn a_role_is_what_the_platform_says_and_not_a_name() {
    let mut hello = said("mallory", "hello");
    hello.from.name = Some("ann".into());
    let mut access = Access::only(ids(&["ann"]));
    access.direct.roles = roles(&["cooks"]);
    assert_eq!(access.footing(Caller::of(&hello, None)).0, Footing::Stranger);
    hello.source.roles = ["waiters", "cooks"].map(RoleId::literal).to_vec();
    assert_eq!(access.footing(Caller::of(&hello, None)), (Footing::Admin, Rule::Role));
    // It counts as long as the account names it, and where it does.
    hello.to.chat.kind = ChatKind::Group;
    assert_eq!(access.footing(Caller::of(&hello, None)).0, Footing::Stranger);
    hello.to.chat.kind = ChatKind::Dm;
    access.direct.roles = roles(&["guards"]);
    assert_eq!(access.footing(Caller::of(&hello, None)).0, Footing::Stranger);
}

#[test]
fn everybody_is_heard_everywhere_where_everybody_is_heard() {
    for room in [Room::Direct, Room::Group] {
        assert_eq!(stands(&Access::everyone(), "ann", room), (Footing::Guest, Rule::Everyone));
    }
}

#[test]
fn everybody_is_an_administrator_only_where_that_is_said_and_nobody_is_named() {
    let rules = |admins: &[&str], unnamed| RoomRules {
        tiers: Arc::new(Tiers { admins: ids(admins), unnamed, ..Tiers::default() }),
        ..RoomRules::default()
    };
    let ann = Sender::new(SenderId::literal("ann"));
    let channel = Sender { kind: SenderKind::Chat, ..ann.clone() };
    for (admins, unnamed, paired, guest) in [
        (&[][..], Unnamed::Listed, Footing::Paired, Footing::Guest),
        (&[], Unnamed::Everyone, Footing::Admin, Footing::Admin),
        (&["root"], Unnamed::Everyone, Footing::Paired, Footing::Guest),
    ] {
        let direct = rules(admins, unnamed);
        let closed = Access { direct: direct.clone(), ..Access::closed() };
        let by_code = Caller { grant: Some(Reach::Direct), ..caller(&ann, Room::Direct) };
        assert_eq!(closed.footing(by_code), (paired, Rule::Pairing));
        assert_eq!(stands(&closed, "ann", Room::Direct), (Footing::Stranger, Rule::None));
        let open = RoomRules { policy: Policy::Open, ..direct };
        let open = Access { direct: open, ..Access::closed() };
        assert_eq!(stands(&open, "ann", Room::Direct), (guest, Rule::Everyone));
        let of_channel = open.footing(caller(&channel, Room::Direct));
        assert_eq!(of_channel, (Footing::Guest, Rule::Everyone), "it may be several people");
    }
}

#[test]
fn each_footing_each_rule_and_each_deed_has_words_of_its_own() {
    fn are_their_own(words: impl IntoIterator<Item = &'static str>) {
        let words: Vec<_> = words.into_iter().collect();
        let distinct: BTreeSet<_> = words.iter().filter(|words| words.len() > 3).collect();
        assert_eq!(distinct.len(), words.len(), "{words:?}");
    }
    are_their_own(Footing::ALL.map(Footing::title));
    are_their_own(Deed::ALL.map(Deed::title));
    use Rule::{Authenticated, Disabled, Everyone, General, List, None, Pairing, Role, RoomList};
    let rules = [Disabled, Authenticated, List, RoomList, Role, General, Pairing, Everyone, None];
    are_their_own(rules.map(Rule::reason));
}

#[test]
fn only_lists_and_roles_name_whom_they_let_in() {
    let naming = [Rule::List, Rule::RoomList, Rule::Role, Rule::General];
    let others = [Rule::Disabled, Rule::Authenticated, Rule::Pairing, Rule::Everyone, Rule::None];
    assert!(naming.into_iter().all(Rule::names));
    assert!(!others.into_iter().any(Rule::names));
}

#[test]
fn only_on_the_operators_own_surface_others_are_read() {
    let on = |surface| Access { surface, ..Access::closed() }.reads_others();
    assert!(on(Surface::Own));
    assert!(!on(Surface::Platform));
}

#[test]
fn only_what_is_surely_direct_is_direct() {
    for kind in ChatKind::ALL {
        let expected = if kind == ChatKind::Dm { Room::Direct } else { Room::Group };
        assert_eq!(Room::of(kind), expected);
    }
}

/// Who may do it in a direct chat and in a group: a letter per footing, lowest first. `y` may, `n`
/// may if named, `r` if their role grants it, `b` in both cases, `-` may not.
fn row(surface: Surface, deed: Deed, room: Room) -> String {
    let letter = |footing| match permitted(surface, deed, footing, room) {
        Permission::Granted => 'y',
        Permission::IfNamed => 'n',
        Permission::ByRole => 'r',
        Permission::IfNamedOrByRole => 'b',
        Permission::Refused => '-',
    };
    Footing::ALL.into_iter().map(letter).collect()
}

#[test]
fn the_whole_table() {
    use Approvers::{Admins, Both, Requester};
    use Room::{Direct, Group};
    use Whose::{Anothers, Own};
    // nobody, stranger, guest, paired, listed, admin, operator
    let everybody_heard = "--yyyyy";
    for (deed, platform, own) in [
        (Deed::Speak, [everybody_heard; 2], [everybody_heard; 2]),
        (Deed::Stop, [everybody_heard; 2], [everybody_heard; 2]),
        (Deed::TakeBack(Own), [everybody_heard; 2], [everybody_heard; 2]),
        (Deed::TakeBack(Anothers), ["-----yy"; 2], ["-----yy"; 2]),
        (Deed::Answer(Whose::Own), [everybody_heard; 2], [everybody_heard; 2]),
        (Deed::Answer(Whose::Anothers), ["-------"; 2], ["-------"; 2]),
        (Deed::Approve(Own, Requester), ["---yyyy"; 2], ["---yyyy"; 2]),
        (Deed::Approve(Own, Admins), ["-----yy"; 2], ["-----yy"; 2]),
        (Deed::Approve(Own, Both), ["---yyyy"; 2], ["---yyyy"; 2]),
        (Deed::Approve(Anothers, Requester), ["-------"; 2], ["-------"; 2]),
        (Deed::Approve(Anothers, Admins), ["-----yy"; 2], ["-----yy"; 2]),
        (Deed::Approve(Anothers, Both), ["-----yy"; 2], ["-----yy"; 2]),
        (Deed::Deny(Own, Requester), [everybody_heard; 2], [everybody_heard; 2]),
        (Deed::Deny(Own, Admins), [everybody_heard; 2], [everybody_heard; 2]),
        (Deed::Deny(Own, Both), [everybody_heard; 2], [everybody_heard; 2]),
        (Deed::Deny(Anothers, Requester), ["-------"; 2], ["-------"; 2]),
        (Deed::Deny(Anothers, Admins), ["-----yy"; 2], ["-----yy"; 2]),
        (Deed::Deny(Anothers, Both), ["-----yy"; 2], ["-----yy"; 2]),
        (Deed::Command(Who::Anyone, Gating::Off), [everybody_heard; 2], [everybody_heard; 2]),
        (Deed::Command(Who::Anyone, Gating::On), ["--nbbyy"; 2], ["--nbbyy"; 2]),
        (Deed::Command(Who::Admin, Gating::Off), ["---ryyy"; 2], ["---ryyy"; 2]),
        (Deed::Command(Who::Admin, Gating::On), ["--nbbyy"; 2], ["--nbbyy"; 2]),
        (Deed::LetIn, ["-----yy", "-------"], ["-----yy", "-------"]),
        (Deed::LetInto, ["-----yy"; 2], ["-----yy"; 2]),
        (Deed::AskToPair, ["-y-----", "-------"], ["-------"; 2]),
        (Deed::Redeem, ["-y-----", "-------"], ["-------"; 2]),
        (Deed::ReadOthers, ["-------"; 2], ["------y"; 2]),
        (Deed::PauseAny, ["-------"; 2], ["------y"; 2]),
        (Deed::SendElsewhere, ["---rryy"; 2], ["---rryy"; 2]),
    ] {
        let of = |surface| [Direct, Group].map(|room| row(surface, deed, room));
        assert_eq!(of(Surface::Platform), platform, "{deed:?}");
        assert_eq!(of(Surface::Own), own, "{deed:?}");
    }
}

#[test]
fn who_may_give_which_command() {
    let named = |others: &[&str]| {
        let tiers = Tiers {
            admins: ids(&["ann"]),
            others: others.iter().map(|&name| name.to_owned()).collect(),
            ..Tiers::default()
        };
        let room = RoomRules { tiers: Arc::new(tiers), ..RoomRules::default() };
        Access { direct: room, ..Access::only(ids(&["ann", "ben"])) }
    };
    let listed = Access::only(ids(&["ann", "ben"]));
    for (access, sender, name, who, expected) in [
        (&Access::own(), "ben", "restart", Who::Admin, true),
        (&Access::everyone(), "ben", "restart", Who::Admin, false),
        (&Access::everyone(), "ben", "new", Who::Anyone, true),
        (&Access::closed(), "ben", "help", Who::Anyone, false),
        (&listed, "ben", "restart", Who::Admin, true),
        (&named(&[]), "ann", "restart", Who::Admin, true),
        (&named(&[]), "ben", "restart", Who::Admin, false),
        (&named(&[]), "ben", "new", Who::Anyone, false),
        (&named(&[]), "ben", "help", Who::Anyone, true),
        (&named(&[]), "ben", "whoami", Who::Anyone, true),
        (&named(&["new"]), "ben", "new", Who::Anyone, true),
        (&named(&["reload"]), "ben", "reload", Who::Admin, true),
    ] {
        let sender = Sender::new(SenderId::literal(sender));
        let authority = access.authority(caller(&sender, Room::Direct));
        assert_eq!(authority.may_give(name, who), expected, "{sender:?} {name} {access:?}");
    }
    let quick = |who| QuickCommand {
        name: "disk".into(),
        help: String::new(),
        who,
        does: crate::Quick::Run,
    };
    let may_run = |access: &Access, sender: &'static str, who| {
        let sender = Sender::new(SenderId::literal(sender));
        access.authority(caller(&sender, Room::Direct)).may_run(&quick(who))
    };
    assert!(may_run(&named(&[]), "ben", Who::Anyone), "anybody is anybody");
    assert!(!may_run(&named(&[]), "ben", Who::Admin));
    assert!(may_run(&named(&["disk"]), "ben", Who::Admin));
    assert!(may_run(&named(&[]), "ann", Who::Admin));
    assert!(!may_run(&named(&[]), "mallory", Who::Anyone), "who is heard");
}

fn person(name: &str, commands: &[&str], budget: Option<Budget>) -> Arc<Person> {
    let role = Role {
        name: "family".into(),
        commands: commands.iter().map(|&name| name.to_owned()).collect(),
        budget,
        ..Role::default()
    };
    Arc::new(Person { name: name.into(), role: Some(Arc::new(role)) })
}

#[test]
fn who_commands_from_elsewhere_is_known_by_what_the_operator_wrote_about_them_here() {
    let [ann, ben] = ["Ann", "Ben"].map(|name| person(name, &[], None));
    let with_ann = |access: Access| {
        let known = [("a1", &ann), ("a2", &ann), ("b1", &ben)];
        let people = known.map(|(id, who)| (SenderId::literal(id), who.clone()));
        Access { people: people.into(), ..access }
    };
    let admins =
        |names: &[&str]| with_ann(Access { direct: gated(names), ..Access::only(ids(names)) });
    let own = with_ann(Access::own());
    for (access, who, expected) in [
        (admins(&["a1"]), &ann, true),
        (admins(&["a2"]), &ann, true),
        (admins(&["a1"]), &ben, false),
        (with_ann(Access::closed()), &ann, false),
        (with_ann(Access::everyone()), &ann, false),
        // Only who is there is the operator.
        (own, &ann, false),
    ] {
        let lets = access.lets_give(who, Room::Direct, "platforms", Who::Admin);
        assert_eq!(lets, expected, "{} {access:?}", who.name);
    }
}

#[test]
fn a_role_grants_commands_to_whoever_was_let_in_by_name_or_by_pairing() {
    let people = BTreeMap::from([(SenderId::literal("ben"), person("Ben", &["reload"], None))]);
    let gated = Access {
        direct: gated(&["ann"]),
        people: people.clone(),
        ..Access::only(ids(&["ann", "ben", "cat"]))
    };
    let closed = Access { people: people.clone(), ..Access::closed() };
    let gated_guests = Access { listed: BTreeSet::new(), ..gated.clone() };
    let open = Access { people: people.clone(), ..Access::everyone() };
    let mut gated_open = Access { people, ..Access::everyone() };
    gated_open.direct.tiers = gated.direct.tiers.clone();
    let paired = Some(Reach::Direct);
    for (access, who, grant, name, expected) in [
        (&gated, "ben", None, "reload", true),
        (&gated, "ben", None, "restart", false),
        (&gated, "ben", None, "help", true),
        (&gated, "cat", None, "reload", false),
        (&gated_guests, "ben", paired, "reload", true),
        (&gated_guests, "ben", None, "reload", false),
        (&closed, "ben", paired, "reload", true),
        (&closed, "ben", paired, "restart", false),
        (&closed, "ben", None, "reload", false),
        (&open, "ben", None, "reload", false),
        (&gated_open, "ben", None, "reload", false),
    ] {
        let sender = Sender::new(SenderId::literal(who));
        let caller = Caller { grant, ..caller(&sender, Room::Direct) };
        let may = access.authority(caller).may_give(name, Who::Admin);
        assert_eq!(may, expected, "{who} {grant:?} /{name} {access:?}");
    }
}

#[test]
fn messages_go_elsewhere_for_administrators_and_where_a_role_says_so() {
    let grants = |names: Option<&[&str]>| {
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let role = Role { destinations: names.map(named), ..Role::default() };
        Arc::new(Person { name: "Ben".into(), role: Some(Arc::new(role)) })
    };
    let with = |person: Arc<Person>, access: Access| Access {
        people: BTreeMap::from([(SenderId::literal("ben"), person)]),
        ..access
    };
    let admins = || Access::only(ids(&["ben"]));
    let gated = || Access { direct: gated(&["ann"]), ..Access::only(ids(&["ben"])) };
    let (family, nothing) = (grants(Some(&["family"])), grants(None));
    let paired = Some(Reach::Direct);
    for (access, grant, to, expected) in [
        (admins(), None, "family", true),
        (with(nothing.clone(), admins()), None, "family", true),
        (with(family.clone(), admins()), None, "family", true),
        // A role that names some means no others, even for an administrator.
        (with(family.clone(), admins()), None, "work", false),
        (with(grants(Some(&[])), admins()), None, "family", false),
        (gated(), None, "family", false),
        (with(nothing, gated()), None, "family", false),
        (with(family.clone(), gated()), None, "family", true),
        (with(family.clone(), gated()), None, "work", false),
        (Access::closed(), paired, "family", false),
        (with(family.clone(), Access::closed()), paired, "family", true),
        (with(family.clone(), Access::closed()), None, "family", false),
        // Who came in with everybody has no role here.
        (with(family, Access::everyone()), None, "family", false),
        (Access::own(), None, "family", true),
    ] {
        let ben = Sender::new(SenderId::literal("ben"));
        let caller = Caller { grant, ..caller(&ben, Room::Direct) };
        let may = access.authority(caller).may_send_to(to);
        assert_eq!(may, expected, "{grant:?} to {to} {access:?}");
    }
}

#[test]
fn what_may_be_spent_follows_from_who_somebody_is() {
    let messages = |many| Budget { messages: Some(many), ..Budget::NONE };
    let budgets = Budgets { person: messages(1), guest: messages(2), chat: messages(3) };
    let people = BTreeMap::from([
        (SenderId::literal("ben"), person("Ben", &[], Some(messages(4)))),
        (SenderId::literal("cat"), person("Cat", &[], None)),
    ]);
    let limited = |access: Access| Access { budgets, people: people.clone(), ..access };
    let (listed, open) = (limited(Access::only(ids(&["ann", "ben"]))), limited(Access::everyone()));
    let (closed, own) = (limited(Access::closed()), limited(Access::own()));
    let paired = Some(Reach::Direct);
    for (access, who, grant, own, chat) in [
        (&listed, "ann", None, messages(1), messages(3)),
        (&listed, "ben", None, messages(4), messages(3)),
        (&open, "dan", None, messages(2), messages(3)),
        (&open, "cat", None, messages(1), messages(3)),
        (&closed, "dan", paired, messages(2), messages(3)),
        (&closed, "cat", paired, messages(1), messages(3)),
        (&closed, "ben", paired, messages(4), messages(3)),
        (&own, "ann", None, Budget::NONE, Budget::NONE),
        (&own, "ben", None, messages(4), Budget::NONE),
    ] {
        let sender = Sender::new(SenderId::literal(who));
        let caller = Caller { grant, ..caller(&sender, Room::Direct) };
        let expected = Bounds { own, chat };
        assert_eq!(access.authority(caller).bounds, expected, "{who} {grant:?}");
    }
}

const PEOPLE: [&str; 4] = ["ann", "ben", "cat", "*"];

fn some_ids() -> impl Strategy<Value = BTreeSet<SenderId>> {
    prop::collection::btree_set(prop::sample::select(PEOPLE.to_vec()), 0..3)
        .prop_map(|names| names.into_iter().map(SenderId::literal).collect())
}

fn some_rules() -> impl Strategy<Value = RoomRules> {
    let policy = prop::sample::select(vec![Policy::Open, Policy::Named, Policy::Disabled]);
    let unnamed = prop::sample::select(vec![Unnamed::Listed, Unnamed::Everyone]);
    let named = prop::sample::subsequence(vec!["cooks", "waiters"], 0..=2);
    (policy, some_ids(), named, some_ids(), unnamed).prop_map(
        |(policy, listed, named, admins, unnamed)| {
            let tiers = Arc::new(Tiers { admins, unnamed, ..Tiers::default() });
            RoomRules { policy, listed, roles: roles(&named), tiers }
        },
    )
}

fn some_access() -> impl Strategy<Value = Access> {
    let strangers = prop::sample::select(vec![Strangers::Pair, Strangers::Ignore]);
    (some_ids(), some_ids(), some_rules(), some_rules(), strangers).prop_map(
        |(listed, general, direct, group, strangers)| Access {
            surface: Surface::Platform,
            listed,
            general,
            direct,
            group,
            strangers,
            people: BTreeMap::new(),
            budgets: Budgets::default(),
        },
    )
}

fn some_roles() -> impl Strategy<Value = Vec<RoleId>> {
    prop::sample::subsequence(["cooks", "waiters"].map(RoleId::literal).to_vec(), 0..=2)
}

fn some_grant() -> impl Strategy<Value = Option<Reach>> {
    prop::sample::select(vec![None, Some(Reach::Direct), Some(Reach::Everywhere)])
}

proptest! {
    #[test]
    fn nobody_passes_without_an_explicit_grant(
        access in some_access(),
        who in prop::sample::select(PEOPLE[..3].to_vec()),
        theirs in some_roles(),
        room in prop::sample::select(Room::ALL.to_vec()),
        grant in some_grant(),
        bot in any::<bool>(),
    ) {
        let kind = if bot { SenderKind::Bot } else { SenderKind::Person };
        let sender = Sender { kind, ..Sender::new(SenderId::literal(who)) };
        let here = access.of(room);
        let granted = here.policy != Policy::Disabled
            && (here.policy == Policy::Open
                || access.listed.contains(&sender.id)
                || access.general.contains(&sender.id)
                || here.listed.contains(&sender.id)
                || theirs.iter().any(|role| here.roles.contains(role))
                || grant.is_some_and(|reach| room.is_within(reach)));
        let caller = Caller { sender: &sender, roles: &theirs, room, grant };
        let authority = access.authority(caller);
        prop_assert_eq!(authority.may(Deed::Speak), granted);
        // Being an administrator lets nobody in.
        prop_assert!(!authority.is_admin() || granted);
        let named = access.listed.contains(&sender.id)
            || access.general.contains(&sender.id)
            || here.listed.contains(&sender.id)
            || theirs.iter().any(|role| here.roles.contains(role))
            || here.tiers.admins.contains(&sender.id)
            || (here.tiers.admins.is_empty() && here.tiers.unnamed == Unnamed::Everyone);
        prop_assert!(!authority.is_admin() || named, "nobody becomes one by coming in");
    }

    #[test]
    fn a_setting_that_names_others_lets_nobody_else_in(
        access in some_access(),
        room in prop::sample::select(Room::ALL.to_vec()),
        others in some_ids(),
    ) {
        let stranger = Sender::new(SenderId::literal("mallory"));
        let before = access.authority(caller(&stranger, room));
        let mut more = access;
        more.listed.extend(others.iter().cloned());
        more.general.extend(others.iter().cloned());
        more.direct.listed.extend(others.iter().cloned());
        more.group.listed.extend(others);
        prop_assert_eq!(more.authority(caller(&stranger, room)).footing, before.footing);
    }

    #[test]
    fn who_is_a_person_of_the_configuration_is_let_in_by_nothing_but_a_list(
        access in some_access(),
        who in prop::sample::select(PEOPLE[..3].to_vec()),
        theirs in some_roles(),
        room in prop::sample::select(Room::ALL.to_vec()),
        grant in some_grant(),
        named in some_ids(),
        limit in prop::option::of(0_u64..3),
    ) {
        let sender = Sender::new(SenderId::literal(who));
        let caller = Caller { sender: &sender, roles: &theirs, room, grant };
        let before = access.authority(caller);
        let budget = Budget { messages: limit, ..Budget::NONE };
        let all: Vec<&str> = crate::COMMANDS.iter().map(|spec| spec.name).collect();
        let people = named.iter().map(|id| (id.clone(), person("P", &all, Some(budget))));
        let with_people = Access {
            people: people.collect(),
            budgets: Budgets { person: budget, guest: budget, chat: budget },
            ..access
        };
        let after = with_people.authority(caller);
        prop_assert_eq!((after.footing, after.rule), (before.footing, before.rule));
        for deed in Deed::ALL {
            prop_assert_eq!(after.permits(deed), before.permits(deed));
        }
        for spec in crate::COMMANDS {
            let may = |by: &Authority| by.may_give(spec.name, spec.who);
            // Nothing is taken, and what is given needs a role and being let in.
            prop_assert!(may(&after) || !may(&before));
            let granted = named.contains(&sender.id) && after.may(Deed::Speak);
            prop_assert!(may(&before) || !may(&after) || granted);
        }
    }
}

#[test]
fn nobodys_authority_is_nothing_whatever_is_asked_of_it() {
    let nobody = Authority::none();
    for deed in Deed::ALL {
        assert_eq!(nobody.permits(deed), Permission::Refused, "{deed:?}");
    }
    assert!(!nobody.may_give("help", Who::Anyone) && !nobody.may_send_to("anywhere"));
    for budget in [nobody.bounds.own, nobody.bounds.chat] {
        for need in [Need::Begin, Need::GoOn] {
            assert!(budget.used_up(&Spent::default(), need).is_some(), "{need:?}");
        }
    }
}
