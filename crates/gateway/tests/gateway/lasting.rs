//! A yes that outlives its question counts as long as whoever gave it may give it.

use std::collections::BTreeSet;
use std::sync::Arc;

use talaria_model::{AccountId, EventId, Inbound, InboundKind, RoleId, Sender, SenderId, Source};
use talaria_session::{Access, Approvers, GroupSessions, Tiers};
use talaria_store::Store;

use crate::approvals::{BUTTONS, ONCE, choice, paying, says, slow_to_pay, with_admin, world};
use crate::world::{Life, Vendor, World};

/// Alice is one of many guests in a group, where whoever has the role is an administrator.
fn with_role(role: &'static str) -> Access {
    let mut access = Access::everyone();
    access.group.roles = [RoleId::literal(role)].into();
    access
}

fn led_by(role: &'static str) -> World {
    let mut led = world(BUTTONS);
    led.rules.approvals.by = Approvers::Both;
    led.accounts[0].1 = with_role(role);
    led
}

/// Something that Dora does in the group, who is one of the chiefs there.
fn of_a_chief(life: &Life, kind: InboundKind) -> Inbound {
    Inbound {
        id: EventId::literal("of-a-chief"),
        at: life.now(),
        from: Sender::new(SenderId::literal("dora")),
        to: life.vendor.group("all"),
        source: Source { roles: vec![RoleId::literal("chiefs")], ..Source::default() },
        kind,
    }
}

fn asked(vendor: &Vendor) -> usize {
    let texts = vendor.texts_at(&vendor.group("all"));
    texts.iter().filter(|text| *text == "May I pay?").count()
}

fn approved(vendor: &Vendor) -> usize {
    let texts = vendor.texts_at(&vendor.group("all"));
    texts.iter().filter(|text| text.starts_with("Approved")).count()
}

#[test]
fn what_somebody_with_a_role_approved_for_others_counts_as_long_as_the_account_names_the_role() {
    for given in [
        InboundKind::Pressed(choice("session")),
        InboundKind::Pressed(choice("always")),
        says("/approve session"),
        says("/approve always"),
    ] {
        let mut world = led_by("chiefs");
        world.live(async |life| {
            life.vendor.say_in_group("alice", "all", "hello");
            life.until("the question", |vendor| asked(vendor) == 1).await;
            life.vendor.deliver(of_a_chief(life, given.clone()));
            life.until("the answer", |vendor| approved(vendor) == 1).await;
        });
        world.live(async |life| {
            life.vendor.say_in_group("alice", "all", "once more");
            life.until("another, unasked", |vendor| approved(vendor) == 2).await;
            assert_eq!(asked(&life.vendor), 1, "{given:?}");
            life.gateway.set_access(&AccountId::literal("main"), with_role("cooks"));
            life.vendor.say_in_group("alice", "all", "and again");
            life.until("the question again", |vendor| asked(vendor) == 2).await;
            assert_eq!(approved(&life.vendor), 2, "{given:?}");
        });
    }
}

#[test]
fn a_yes_of_somebody_with_a_role_counts_after_a_death_as_long_as_the_account_names_the_role() {
    for (role, comes) in [("chiefs", ONCE), ("cooks", "May I pay?")] {
        let mut world = led_by("chiefs");
        world.agent = slow_to_pay();
        let all = world.vendor().group("all");
        world.live(async |life| {
            life.vendor.say_in_group("alice", "all", "hello");
            life.until("the question", |vendor| asked(vendor) == 1).await;
            life.vendor.deliver(of_a_chief(life, InboundKind::Pressed(choice("once"))));
            life.until("the outcome", |vendor| vendor.texts_at(&all).len() == 2).await;
        });
        world.accounts[0].1 = with_role(role);
        world.agent = paying();
        world.live(async |life| {
            life.until("a word", |vendor| vendor.texts_at(&all).len() == 3).await;
            life.pass_seconds(1).await;
            assert_eq!(life.vendor.texts_at(&all)[2..], [comes], "{role}");
        });
    }
}

#[test]
fn a_yes_for_good_takes_the_place_of_one_that_does_not_count_any_more() {
    let mut world = with_admin(Approvers::Both, GroupSessions::PerMember);
    let mut led_by_carol = world.accounts[0].1.clone();
    let admins = BTreeSet::from([SenderId::literal("carol")]);
    led_by_carol.group.tiers = Arc::new(Tiers { admins, ..Tiers::default() });
    world.live(async |life| {
        let all = life.vendor.group("all");
        life.vendor.say_in_group("alice", "all", "hello");
        life.until("the question", |vendor| asked(vendor) == 1).await;
        life.vendor.does("bob", all.clone(), InboundKind::Pressed(choice("always")));
        life.until("the answer", |vendor| approved(vendor) == 1).await;
        life.gateway.set_access(&AccountId::literal("main"), led_by_carol);
        life.vendor.say_in_group("alice", "all", "once more");
        life.until("the question again", |vendor| asked(vendor) == 2).await;
        life.vendor.does("carol", all.clone(), InboundKind::Pressed(choice("always")));
        life.until("the answer", |vendor| approved(vendor) == 2).await;
        life.vendor.say_in_group("alice", "all", "and again");
        life.until("another, unasked", |vendor| approved(vendor) == 3).await;
        assert_eq!(asked(&life.vendor), 2);
        let granted = life.disk.grants(10).await.unwrap();
        assert_eq!(granted.len(), 1, "{granted:?}");
        assert_eq!(granted[0].by.id, SenderId::literal("carol"));
    });
}
