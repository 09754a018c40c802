//! `cargo xtask torture`: the store on a disk that loses power, breaks down and rots.

use std::path::Path;

use anyhow::Result;
use clap::Args;

use crate::shell;

#[derive(Args)]
pub(crate) struct Options {
    /// How many images of a power cut to make and look at
    #[arg(long, default_value_t = 20_000)]
    images: usize,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let torture = [
        "test",
        "--release",
        "--locked",
        "--package",
        "talaria-store-sqlite",
        "tests::torture::",
        "--",
        "--nocapture",
        "--test-threads=1",
    ];
    let mut command = shell::cargo(root, &torture);
    shell::run(command.env("TORTURE_IMAGES", options.images.to_string()))
}
