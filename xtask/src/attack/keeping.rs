//! What is on the disk, and what the process keeps to itself.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use futures::future::BoxFuture;
use talaria_testkit::{Home, Launch};

use super::doors;
use super::field::{Field, MISCONFIGURED, WORK_TOKEN, command, ended, unchunked};
use super::wire::Ask;

/// ATK-096: nothing is read from the folder in which it is started.
pub(super) fn the_present_folder_means_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let (home, folder) = (Home::empty()?, tempfile::tempdir()?);
        fs::write(folder.path().join(".env"), "TALARIA_MODEL=planted/model\n")?;
        fs::write(folder.path().join("config.yaml"), "model: planted/model\n")?;
        let output = tokio::process::Command::new(&field.binary)
            .args(["config", "show"])
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", home.path())
            .env("TALARIA_HOME", home.path())
            .stdin(Stdio::null())
            .output()
            .await?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(text.contains("model"), "nothing is shown: {text}");
        ensure!(!text.contains("planted"), "it was read: {text}");
        Ok(())
    }
    .boxed()
}

/// ATK-112: state that is a link, and secrets and state that others can read.
pub(super) fn links_and_open_secrets_are_refused(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let elsewhere = tempfile::tempdir()?;
        for name in ["state.db", "files", "accounts", "homes.json", "gateway.lock", ".env"] {
            let home = Home::empty()?;
            let target = elsewhere.path().join(name);
            fs::write(&target, "")?;
            symlink(&target, home.file(name))?;
            let (code, output) = ended(Launch::new(&field.binary).start(home.path())?).await?;
            ensure!(code != 0 && output.contains("link"), "{name}: {code}: {output}");
            ensure!(fs::read(&target)?.is_empty(), "{name} was written through");
        }
        let home = Home::empty()?;
        home.write(".env", "ANTHROPIC_API_KEY=sk-canary-in-dotenv\n")?;
        for mode in [0o640, 0o644, 0o604] {
            fs::set_permissions(home.file(".env"), fs::Permissions::from_mode(mode))?;
            let (code, output) = ended(Launch::new(&field.binary).start(home.path())?).await?;
            ensure!(
                code == MISCONFIGURED && output.contains("chmod 600"),
                "{mode:o}: {code}: {output}"
            );
            ensure!(!output.contains("canary"), "it is shown: {output}");
        }
        let home = Home::empty()?;
        home.write("state.db", "")?;
        for mode in [0o640, 0o644, 0o604] {
            fs::set_permissions(home.file("state.db"), fs::Permissions::from_mode(mode))?;
            let (code, output) = ended(Launch::new(&field.binary).start(home.path())?).await?;
            ensure!(
                code == MISCONFIGURED && output.contains("chmod 600"),
                "state with {mode:o}: {code}: {output}"
            );
        }
        Ok(())
    }
    .boxed()
}

/// ATK-116: whatever a file is, it runs nothing under our name.
pub(super) fn a_file_runs_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let browser = field.browser().await?;
        let page = "<html><script>alert(1)</script></html>";
        for kind in ["image/png", "text/html", "image/svg+xml"] {
            let upload = Ask::post("/api/files", page)
                .with("content-type", kind)
                .with("x-file-name", "..%2F..%2Fevil%E2%80%AEgnp.html");
            let answer = field.ask(browser.signs(upload)).await?;
            ensure!(answer.status == 200, "the upload got {answer:?}");
            let file: serde_json::Value = serde_json::from_str(&unchunked(&answer))?;
            let name = file["name"].as_str().unwrap_or_default();
            ensure!(!name.contains(['/', '\u{202e}']), "it is called {name:?}");
            let id = file["id"].as_str().context("an id")?;
            let file = field.ask(browser.signs(Ask::get(&format!("/api/files/{id}")))).await?;
            let is = |name: &str, part: &str| {
                file.header(name).is_some_and(|value| value.contains(part))
            };
            ensure!(is("content-disposition", "attachment"), "{kind}: {}", file.head);
            ensure!(is("x-content-type-options", "nosniff"), "{kind}: {}", file.head);
            ensure!(is("content-security-policy", "sandbox"), "{kind}: {}", file.head);
            ensure!(!is("content-type", "html") && !is("content-type", "image"), "{}", file.head);
            let stranger = field.ask(Ask::get(&format!("/api/files/{id}"))).await?;
            ensure!(stranger.status == 401, "a stranger got {}", stranger.status);
        }
        Ok(())
    }
    .boxed()
}

/// ATK-123: what is on the disk is for this user alone, and a crash writes nothing down.
pub(super) fn what_is_kept_is_for_us_alone(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        fn look(folder: &Path, open: &mut Vec<String>) -> Result<()> {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let Ok(found) = fs::symlink_metadata(&path) else { continue };
                if found.permissions().mode() & 0o077 != 0 {
                    open.push(format!("{} {:o}", path.display(), found.permissions().mode()));
                }
                if found.is_dir() {
                    look(&path, open)?;
                }
            }
            Ok(())
        }
        // Whoever runs the attacks keeps what they write to themselves; most who start a gateway do not.
        let home = Home::empty()?;
        let careless = "umask 000; ulimit -c $(ulimit -H -c); exec \"$0\" \"$@\"";
        let launch = Launch::new(&field.binary).through(&["sh", "-c", careless]);
        let mut process = launch.start(home.path())?;
        process.ready().await?;
        let mut open = Vec::new();
        look(home.path(), &mut open)?;
        look(field.home.path(), &mut open)?;
        ensure!(open.is_empty(), "others can read {open:?}");
        for pid in [process.pid(), field.process.pid()] {
            let about = |what: &str| fs::read_to_string(format!("/proc/{pid}/{what}"));
            let limits = about("limits")?;
            let core = limits.lines().find(|line| line.starts_with("Max core file size"));
            let is_off = core
                .is_some_and(|line| line.split_whitespace().filter(|it| *it == "0").count() == 2);
            ensure!(is_off, "a crash leaves a dump: {core:?}");
            let status = about("status")?;
            let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).map(str::trim);
            ensure!(umask == Some("0077"), "files are made for others: {umask:?}");
        }
        Ok(())
    }
    .boxed()
}

/// ATK-144: no search is more than a search: it finds what has its words, and nothing else.
pub(super) fn a_search_is_a_search(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let browser = field.browser().await?;
        let words = format!("uncle Quagga {}", field.fresh());
        doors::said_by_us(field, &browser, &words).await?;
        let search =
            |query: &str| field.ask(browser.signs(Ask::get(&format!("/api/search?q={query}"))));
        let found = async {
            while !unchunked(&search("Quagga").await?).contains("Quagga") {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(Duration::from_secs(30), found)
            .await
            .context("nothing is found")??;
        for query in [
            "'%20OR%201=1--",
            "%22%29%3B%20DROP%20TABLE%20entries%3B--",
            "NEAR(a%20b",
            "*",
            "%22",
            "a%20AND",
            "col:x",
            "%E2%80%AE",
            "%F0%9F%98%80",
        ] {
            let answer = search(query).await?;
            ensure!(matches!(answer.status, 200 | 400), "{query} got {}", answer.status);
        }
        // Nobody has said the first word.
        for query in [
            "qqzz'%20OR%20'1'='1",
            "qqzz%22%20OR%20%22Quagga",
            "qqzz%20OR%20Quagga",
            "qqzz')%20OR%201=1--",
            "qqzz%25",
        ] {
            let found = unchunked(&search(query).await?);
            ensure!(!found.contains("Quagga"), "{query} finds {found}");
        }
        for query in ["' OR 1=1 --", "qqzz' OR '1'='1", "qqzz\" OR \"Quagga"] {
            let (code, output) = field.command(&["sessions", "search", query]).await?;
            ensure!(code == 0 || code == 1, "{code}: {output}");
            ensure!(!output.contains("uncle"), "{query} finds {output}");
        }
        let still = unchunked(&search("Quagga").await?);
        ensure!(still.contains("Quagga"), "what was said is gone: {still}");
        field.is_well().await
    }
    .boxed()
}

/// Two gateways with one credential: the second one says who has it.
pub(super) fn one_gateway_for_each_credential(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let home = Home::empty()?;
        let token = WORK_TOKEN;
        let config = format!(
            "accounts: {{thief: {{platform: slack, base_url: 'http://127.0.0.1:1/', bot_token: {token}, \
             signing_secret: a-secret-of-its-own-here, allow: [U1]}}}}\n"
        );
        home.write("config.yaml", &config)?;
        // Locks are found by the home of the user, which is the same for both.
        let locks = field.home.file(".local/state/talaria/gateway-locks");
        let locks = locks.to_str().context("a path")?;
        let launch = Launch::new(&field.binary).environment("TALARIA_GATEWAY_LOCK_DIR", locks);
        let mut process = launch.start(home.path())?;
        process.ready().await?;
        let refused = async {
            loop {
                let (_, status) = command(&field.binary, home.path(), &["status"]).await?;
                if status.contains("credential is in use") {
                    return Ok::<_, anyhow::Error>(status);
                }
            }
        };
        let refused = tokio::time::timeout(Duration::from_secs(30), refused).await;
        let status = refused.context("it uses the credential of another gateway")??;
        let holder = field.process.pid().to_string();
        ensure!(status.contains(&holder) && status.contains("work"), "it does not say who: {status}");
        Ok(())
    }
    .boxed()
}
