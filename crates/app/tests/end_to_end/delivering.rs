//! A vendor that misbehaves while the gateway lives: what may have arrived is sent again and says so,
//! what has certainly not arrived is sent again and says nothing.

use talaria_testkit::{Conduct, Refusal, Truth, VendorSettings};

use crate::rig::Rig;

/// Answers one message; the first try of the answer is treated like this.
async fn answer(rig: &mut Rig, conduct: Conduct) {
    let mut first = Some(conduct);
    rig.vendor.script(move |_| first.take().unwrap_or(Conduct::Does));
    let acts = rig.vendor.read(|truth| truth.acts().len());
    rig.vendor.say("ann", "hello");
    rig.until("the second try", |truth| truth.acts().len() == acts + 2).await;
    rig.until_everything_is_answered().await;
}

#[tokio::test]
async fn an_answer_that_may_have_arrived_is_sent_again_and_says_so() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    answer(&mut rig, Conduct::LosesAndHangsUp).await;
    assert_eq!(rig.vendor.read(|truth| (truth.shown().len(), truth.marked())), (1, 1));
    answer(&mut rig, Conduct::DoesAndHangsUp).await;
    assert_eq!(rig.vendor.read(|truth| (truth.shown().len(), truth.marked())), (3, 2));
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn an_answer_that_has_not_arrived_is_sent_again_and_says_nothing() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    answer(&mut rig, Conduct::Refuses(Refusal::Throttled { seconds: 1 })).await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0);
}

#[tokio::test]
async fn an_answer_waits_for_a_vendor_that_is_away() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.hold(talaria_testkit::Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    let connections = rig.vendor.read(Truth::connections);
    rig.vendor.hang_up();
    rig.llm.hold(talaria_testkit::Hold::Never);
    rig.until("another connection", |truth| truth.connections() > connections).await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0);
}
