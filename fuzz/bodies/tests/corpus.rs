//! Every target has a corpus, and every input in it is fine.

use std::path::Path;

use talaria_fuzz::TARGETS;

#[test]
fn every_input_that_is_kept_is_fine() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    for target in TARGETS {
        let inputs = std::fs::read_dir(corpus.join(target.name)).expect("a folder for each target");
        let inputs: Vec<_> = inputs.map(|input| input.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "{} has nothing to begin with", target.name);
        for input in inputs {
            println!("{}", input.display());
            (target.run)(&std::fs::read(input).unwrap());
        }
    }
}

#[test]
fn every_target_runs_under_cargo_fuzz_too() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for target in TARGETS {
        let path = format!("fuzz_targets/{}.rs", target.name);
        assert!(manifest.contains(&path), "{path} is not in fuzz/Cargo.toml");
        let source = std::fs::read_to_string(folder.join(&path)).unwrap();
        assert!(source.contains(&format!("\"{}\"", target.name)), "{path} runs something else");
    }
}
