//! The store on a disk that loses power, breaks down and rots.
//!
//! A script is played on a watched disk. Then, for the moments before and after every sync and for
//! many ways to lose what was not synced, the files are made as they would have been found, and
//! opened. `TORTURE_IMAGES` says how many images to look at; without it, a sample.

mod check;
mod damage;
mod faults;
mod migrating;
mod record;
mod script;

use talaria_faultdisk::{Dice, Image, Lie, Loss, Pattern};

use check::{Complaint, Cut, Findings, Look, look_at};
use record::{Expected, Recording, play, record};
use script::Script;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

/// How many images were asked for.
fn images() -> Option<usize> {
    std::env::var("TORTURE_IMAGES").ok()?.parse().ok()
}

/// Every boundary so many times, each time with the next pattern; every so many-th image is looked at
/// with everything that is said.
fn cuts(recording: &Recording, rounds: usize, closely: usize, seed: u64) -> Vec<Cut> {
    let mut dice = Dice::new(seed);
    let boundaries = recording.tape.boundaries();
    let mut cuts = Vec::with_capacity(rounds * boundaries.len());
    for round in 0..rounds {
        for (number, moment) in boundaries.iter().enumerate() {
            let pattern = Pattern::ALL[(number + round) % Pattern::ALL.len()];
            let loss = Loss { pattern, seed: dice.roll() };
            let look = if cuts.len() % closely == 0 { Look::Everything } else { Look::Rows };
            cuts.push(Cut { moment: *moment, loss, look });
        }
    }
    cuts
}

async fn recorded(script: &Script) -> (Expected, Recording) {
    let expected = Expected::of(script).await;
    let recording = record(script, &expected).await;
    (expected, recording)
}

#[test]
fn every_sync_is_a_moment_to_lose_power() {
    let wanted = images().unwrap_or(0);
    let mut findings = Findings::default();
    let mut syncs = 0;
    for seed in 1.. {
        let script = Script::of(16, seed);
        assert!(script.ops().count() >= 50);
        let (expected, recording) = block_on(recorded(&script));
        let rounds = if wanted == 0 { 2 } else { Pattern::ALL.len() };
        let cuts = cuts(&recording, rounds, if wanted == 0 { 5 } else { 2 }, seed);
        findings.add(look_at(&recording, &expected, &cuts, Lie::None));
        syncs += recording.tape.syncs();
        if findings.images >= wanted {
            break;
        }
    }
    let missing = |complaint: &Complaint| {
        matches!(complaint, Complaint::Missing { .. } | Complaint::Half(_) | Complaint::Says(_))
    };
    println!(
        "{} images of {syncs} sync boundaries; corrupt: {}, acknowledged rows missing: {}",
        findings.images,
        findings.count(|complaint| !missing(complaint)),
        findings.count(missing),
    );
    findings.expect_none();
}

#[test]
fn power_may_be_lost_again_while_the_store_comes_back() {
    let (_, recording) = block_on(recorded(&Script::of(8, 2)));
    let next = Script::of_a_next_life();
    let firsts = cuts(&recording, 1, 1, 5);
    let step = firsts.len() / images().map_or(12, |_| 100).min(firsts.len());
    let mut findings = Findings::default();
    for (number, first) in firsts.iter().step_by(step).enumerate() {
        let image = Image::of(&recording.tape, first.moment, first.loss, Lie::None);
        let (expected, again) = block_on(async {
            let expected = Expected::from(&image, &next).await;
            let again = play(&next, &expected, &image, |_| Vec::new()).await;
            (expected, again)
        });
        let seconds = cuts(&again, 1, 8, number as u64);
        findings.add(look_at(&again, &expected, &seconds, Lie::None));
    }
    println!("{} images of a second power cut", findings.images);
    findings.expect_none();
}

/// Where the disk lies about its syncs, acknowledged writes are lost; if nobody complained, nobody
/// would have looked.
#[test]
fn a_disk_that_lies_is_found_out() {
    let (expected, recording) = block_on(recorded(&Script::of(8, 4)));
    let cuts = cuts(&recording, 2, 1_000, 9);
    let found = |lie| look_at(&recording, &expected, &cuts, lie);
    look_at(&recording, &expected, &cuts, Lie::None).expect_none();

    let missing = |complaint: &Complaint| matches!(complaint, Complaint::Missing { .. });
    let broken = |complaint: &Complaint| {
        matches!(complaint, Complaint::Corrupt(_) | Complaint::Unopenable(_) | Complaint::Half(_))
    };
    // What `synchronous = off` or `normal` would be.
    let log = found(Lie::Files("-wal"));
    assert!(log.count(missing) > 50, "{:?}", log.complaints.first());
    let file = found(Lie::Files("state.db"));
    assert!(file.count(broken) > 10, "{:?}", file.complaints.first());
    let folder = found(Lie::Folder);
    assert!(folder.count(missing) > 10, "{:?}", folder.complaints.first());
    let all = found(Lie::All);
    assert!(all.count(missing) > 50 && all.count(broken) > 10, "{:?}", all.complaints.first());
    for (lie, findings) in [("log", log), ("file", file), ("folder", folder), ("all", all)] {
        println!(
            "{lie}: {} of {} missing, {} broken",
            findings.count(missing),
            findings.images,
            findings.count(broken)
        );
    }
}
