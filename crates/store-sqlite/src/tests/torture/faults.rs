//! The store on a disk that refuses.

use std::time::Duration;

use talaria_faultdisk::{Errno, Fault, Image, Lie, Op, Span, Trouble};

use super::check::look_at;
use super::record::{Expected, play};
use super::script::Script;
use super::{block_on, cuts, images};

/// Plays a script three times with a disk that breaks down in every third scene, and looks at power
/// cuts at any moment of that.
///
/// Whatever is refused is refused as something that passes, and accepted when the disk is mended,
/// without a restart. Nothing that was acknowledged is lost, and what was refused is not there beside
/// what was asked for again. Says how often the store refused.
fn survived(faults: &[Fault]) -> usize {
    let script = Script::of(10, 3);
    let nothing_gets_there =
        |fault: &Fault| fault.op == Op::Write && fault.span == Span::UntilMended;
    // Of what is asked for at once and refused, a power cut may leave the second and not the first:
    // they are of two conversations, and neither was acknowledged.
    let script = if faults.iter().all(nothing_gets_there) { script } else { script.one_by_one() };
    let expected = block_on(Expected::of(&script));
    let (mut refused, mut hits, mut looked_at) = (0, 0, 0);
    for first in 0..3 {
        let broken = |scene| if scene % 3 == first { faults.to_vec() } else { Vec::new() };
        let recording = block_on(play(&script, &expected, &Image::default(), broken));
        refused += recording.refused;
        hits += recording.hits;
        let step = if images().is_some() { 1 } else { 13 };
        let cuts: Vec<_> =
            cuts(&recording, 1, 16, first as u64).into_iter().step_by(step).collect();
        let findings = look_at(&recording, &expected, &cuts, Lie::None);
        findings.expect_none();
        looked_at += findings.images;
    }
    assert!(hits > 0, "the disk was asked");
    println!("{refused} refused, {looked_at} images: {faults:?}");
    refused
}

fn short() -> Fault {
    Fault { trouble: Trouble::Short, ..Fault::refusing(Op::Write, Errno::NoSpace) }
}

#[test]
fn a_disk_that_takes_no_writes() {
    for errno in [Errno::Io, Errno::NoSpace, Errno::Quota, Errno::ReadOnly] {
        assert!(survived(&[Fault::refusing(Op::Write, errno)]) > 50);
    }
}

#[test]
fn one_file_that_takes_no_writes() {
    assert!(survived(&[Fault::refusing(Op::Write, Errno::NoSpace).on("-wal")]) > 50);
    survived(&[Fault::refusing(Op::Write, Errno::NoSpace).on(".db")]);
}

#[test]
fn a_write_that_is_done_in_part() {
    assert!(survived(&[short()]) > 50);
    assert!(survived(&[short().once_after(0)]) > 50);
    assert!(survived(&[short().once_after(3)]) > 5);
}

/// After a sync that failed, the kernel takes what was not written for written. The next sync that
/// succeeds says nothing about it.
#[test]
fn a_sync_that_fails_once_and_succeeds_the_next_time() {
    assert!(survived(&[Fault::refusing(Op::Sync, Errno::Io).once_after(0)]) > 50);
    survived(&[Fault::refusing(Op::Sync, Errno::Io).once_after(1)]);
}

#[test]
fn a_sync_that_fails() {
    assert!(survived(&[Fault::refusing(Op::Sync, Errno::Io)]) > 50);
    survived(&[Fault::refusing(Op::Sync, Errno::NoSpace).on(".db")]);
}

#[test]
fn a_read_that_fails() {
    survived(&[Fault::refusing(Op::Read, Errno::Io)]);
    survived(&[Fault::refusing(Op::Read, Errno::Io).on("-wal").once_after(0)]);
}

#[test]
fn files_that_cannot_be_opened_cut_deleted_or_shared() {
    survived(&[Fault::refusing(Op::Open, Errno::Io)]);
    survived(&[Fault::refusing(Op::Open, Errno::ReadOnly)]);
    survived(&[Fault::refusing(Op::Truncate, Errno::Io)]);
    survived(&[Fault::refusing(Op::Delete, Errno::Io)]);
    survived(&[Fault::refusing(Op::Share, Errno::Io)]);
}

#[test]
fn a_disk_that_is_gone_for_a_while() {
    let every = [Op::Open, Op::Read, Op::Write, Op::Truncate, Op::Sync, Op::Delete, Op::Share];
    assert!(survived(&every.map(|op| Fault::refusing(op, Errno::Io))) > 50);
}

#[test]
fn a_disk_that_turns_read_only() {
    let every = [Op::Open, Op::Write, Op::Truncate, Op::Delete];
    assert!(survived(&every.map(|op| Fault::refusing(op, Errno::ReadOnly))) > 50);
}

#[test]
fn a_sync_that_is_slow() {
    let trouble = Trouble::Slow(Duration::from_millis(2));
    let slow = Fault { trouble, ..Fault::refusing(Op::Sync, Errno::Io) };
    assert_eq!(survived(&[slow]), 0);
}
