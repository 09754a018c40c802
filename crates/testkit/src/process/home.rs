//! A home folder for one test.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A home with a configuration. Removed when dropped.
pub struct Home {
    folder: TempDir,
}

/// What else a test wants in the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clutter<'a> {
    /// Lines for the account.
    pub account: &'a [&'a str],
    /// Whole top-level sections.
    pub sections: &'a str,
}

impl Home {
    /// A folder without any configuration.
    pub fn empty() -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("talaria-test-").tempdir()?;
        Ok(Self { folder })
    }

    /// The same in a folder of one's choice, for those who care which disk it is on.
    pub fn empty_below(folder: &Path) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("talaria-test-").tempdir_in(folder)?;
        Ok(Self { folder })
    }

    /// A home whose one account `bench` is the vendor and whose model is the fake one.
    pub fn new(vendor: SocketAddr, model: &str, clutter: Clutter<'_>) -> std::io::Result<Self> {
        Self::below(&std::env::temp_dir(), vendor, model, clutter)
    }

    /// The same in a folder of one's choice, for those who care which disk it is on.
    pub fn below(
        folder: &Path,
        vendor: SocketAddr,
        model: &str,
        clutter: Clutter<'_>,
    ) -> std::io::Result<Self> {
        let home = Self::empty_below(folder)?;
        let account: String = clutter.account.iter().map(|line| format!("    {line}\n")).collect();
        home.write(
            "config.yaml",
            &format!(
                "model: fake/test-model\n\
                 providers:\n  fake:\n    wire: openai\n    base_url: \"{model}\"\n    api_key: x\n\
                 accounts:\n  bench:\n    platform: loopback\n    address: \"{vendor}\"\n    \
                 allow_everyone: true\n{account}{}",
                clutter.sections
            ),
        )?;
        Ok(home)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        let file = self.file(name);
        std::fs::write(&file, text)?;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))
    }
}
