//! Files that an answer names: `MEDIA:/its/path`, and paths of files that are there.
//!
//! Finding them is pure. Taking one looks at the disk, and takes nothing but ordinary files below the
//! folders that the operator allows: whoever can make the model write a path must not be able to
//! fetch a secret with it.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use talaria_machine::{Folder, has_one_name};
use talaria_model::{FileRef, Shown};
use tokio::io::AsyncReadExt;

use crate::Attachments;

/// Endings of files that can be sent, and what they are.
const ENDINGS: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("bmp", "image/bmp"),
    ("tiff", "image/tiff"),
    ("svg", "image/svg+xml"),
    ("mp4", "video/mp4"),
    ("mov", "video/quicktime"),
    ("avi", "video/x-msvideo"),
    ("mkv", "video/x-matroska"),
    ("webm", "video/webm"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("opus", "audio/opus"),
    ("m4a", "audio/mp4"),
    ("flac", "audio/flac"),
    ("pdf", "application/pdf"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("doc", "application/msword"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("rtf", "application/rtf"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("epub", "application/epub+zip"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xls", "application/vnd.ms-excel"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("key", "application/vnd.apple.keynote"),
    ("zip", "application/zip"),
    ("tar", "application/x-tar"),
    ("gz", "application/gzip"),
    ("tgz", "application/gzip"),
    ("bz2", "application/x-bzip2"),
    ("xz", "application/x-xz"),
    ("7z", "application/x-7z-compressed"),
    ("rar", "application/vnd.rar"),
    ("apk", "application/vnd.android.package-archive"),
    ("ipa", "application/octet-stream"),
    ("html", "text/html"),
    ("htm", "text/html"),
];

/// Words in the names of files that hold secrets.
const SECRET: [&str; 9] = [
    "credential",
    "secret",
    "password",
    "passwd",
    "id_rsa",
    "id_ed25519",
    "private_key",
    "api_key",
    "apikey",
];

const VOICE: &str = "[[audio_as_voice]]";
const DOCUMENT: &str = "[[as_document]]";
const TAG: &str = "MEDIA:";

/// The most files that one answer sends.
const MOST_FILES: usize = 10;

/// What an answer says, and the files that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The text without the tags.
    pub text: String,
    /// Paths that were given with a tag, in their order.
    pub tagged: Vec<String>,
    /// Paths that stand in the text. They are files only if they are there.
    pub mentioned: Vec<String>,
    /// How the files are to be shown.
    pub shown: Shown,
}

/// Finds the files that an answer names. What stands in code, in a quotation or inside a JSON string
/// is talked about, and is left alone.
pub fn named(answer: &str) -> Named {
    let quiet = quiet(answer);
    let is_quiet = |at: usize| quiet.iter().any(|range| range.contains(&at));
    let mut cuts: Vec<Range<usize>> = Vec::new();
    let mut tagged: Vec<String> = Vec::new();
    for (at, _) in answer.match_indices(TAG) {
        let begins = !answer[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if begins
            && !is_quiet(at)
            && let Some((path, end)) = tag(answer, at + TAG.len())
        {
            cuts.push(at..end);
            tagged.push(path);
        }
    }
    let mut shown = Shown::Natural;
    for (mark, how) in [(VOICE, Shown::Voice), (DOCUMENT, Shown::Document)] {
        for (at, _) in answer.match_indices(mark).filter(|(at, _)| !is_quiet(*at)) {
            shown = how;
            cuts.push(at..at + mark.len());
        }
    }
    let mentioned =
        mentioned(answer, |at| is_quiet(at) || cuts.iter().any(|cut| cut.contains(&at)));
    let text = without(answer, cuts);
    tagged.dedup();
    Named { text, tagged, mentioned, shown }
}

/// Shows files as an answer wishes. Only sound can be a voice.
pub(crate) fn show(files: &mut [FileRef], wished: Shown) {
    let can_be = |file: &FileRef| wished != Shown::Voice || file.mime.starts_with("audio/");
    if !wished.is_natural() {
        files.iter_mut().filter(|file| can_be(file)).for_each(|file| file.shown = wished);
    }
}

/// The answer without its tags, for showing it while it grows.
pub fn without_tags(answer: &str) -> String {
    named(answer).text
}

fn without(answer: &str, mut cuts: Vec<Range<usize>>) -> String {
    if cuts.is_empty() {
        return answer.to_owned();
    }
    cuts.sort_by_key(|cut| cut.start);
    let mut text = String::with_capacity(answer.len());
    let mut from = 0;
    for cut in cuts {
        // The path behind one tag can hold another tag, or a mark.
        if cut.start >= from {
            text.push_str(&answer[from..cut.start]);
        }
        from = from.max(cut.end);
    }
    text.push_str(&answer[from..]);
    text.trim().to_owned()
}

/// The path behind a tag and where it ends: in quotes, or up to a known ending.
fn tag(answer: &str, at: usize) -> Option<(String, usize)> {
    let rest = &answer[at..];
    let skipped = rest.len() - rest.trim_start_matches(' ').len();
    let rest = &rest[skipped..];
    let at = at + skipped;
    if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) {
        let inside = &rest[1..];
        let end = inside.find([quote, '\n']).filter(|end| inside[*end..].starts_with(quote))?;
        let path = &inside[..end];
        return (is_path(path) && kind(path).is_some()).then(|| (path.to_owned(), at + end + 2));
    }
    let path = up_to_ending(rest)?;
    Some((path.to_owned(), at + path.len()))
}

/// The path at the beginning of `text`, if it ends in a known ending and then is over.
fn up_to_ending(text: &str) -> Option<&str> {
    let word = &text
        [..text.find(|c: char| c.is_whitespace() || matches!(c, '"' | '`')).unwrap_or(text.len())];
    let ends_at = |end: usize| {
        let next = word[end..].chars().next();
        let over = next.is_none_or(|c| matches!(c, ',' | ';' | ':' | ')' | ']' | '}' | '\''));
        (over && kind(&word[..end]).is_some()).then_some(end)
    };
    let places = word.char_indices().map(|(place, _)| place).chain([word.len()]);
    let end = places.skip(1).find_map(ends_at)?;
    let path = &word[..end];
    is_path(path).then_some(path)
}

/// Paths that stand in the text without a tag.
fn mentioned(answer: &str, is_taken: impl Fn(usize) -> bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut before = ' ';
    for (at, c) in answer.char_indices() {
        let begins = before.is_whitespace() || matches!(before, '(' | '"' | '\'' | '*');
        before = c;
        let could = matches!(c, '/' | '~') && begins;
        if could && !is_taken(at) && found.len() < MOST_FILES {
            // A sentence may end behind a path.
            let word = answer[at..].split_whitespace().next().unwrap_or_default();
            let word = word.trim_end_matches(['.', '!', '?', '*']);
            if let Some(path) = up_to_ending(word)
                && !found.iter().any(|other| other == path)
            {
                found.push(path.to_owned());
            }
        }
    }
    found
}

fn is_path(path: &str) -> bool {
    let drive = path.as_bytes().get(1..3).is_some_and(|rest| matches!(rest, b":\\" | b":/"));
    !path.contains(['\0', '\n']) && (path.starts_with('/') || path.starts_with("~/") || drive)
}

/// What a file is, by its ending.
fn kind(path: &str) -> Option<&'static str> {
    let (name, ending) = path.rsplit_once('.')?;
    let is_named = !name.is_empty() && !name.ends_with('/');
    ENDINGS
        .iter()
        .find(|(known, _)| is_named && ending.eq_ignore_ascii_case(known))
        .map(|(_, mime)| *mime)
}

/// Where an answer talks about something instead of doing it: code, quotations, JSON strings.
fn quiet(answer: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut fence: Option<&str> = None;
    let mut at = 0;
    for line in answer.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let content = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| content.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if !content.starts_with('>') => {
                spans(line, range.start, &mut ranges);
                continue;
            }
            _ => {}
        }
        ranges.push(range);
    }
    ranges
}

/// Inline code and strings in one line, except for a path in quotes right behind a tag.
fn spans(line: &str, offset: usize, ranges: &mut Vec<Range<usize>>) {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let mark = match bytes[at] {
            b'`' => bytes[at..].iter().take_while(|byte| **byte == b'`').count(),
            b'"' => 1,
            _ => {
                at += 1;
                continue;
            }
        };
        let inside = at + mark;
        let Some(length) = line[inside..].find(&line[at..inside]) else {
            at = inside;
            continue;
        };
        let end = inside + length + mark;
        if !line[..at].trim_end_matches(' ').ends_with(TAG) {
            ranges.push(offset + at..offset + end);
        }
        at = end;
    }
}

/// The folders from which files may be sent.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    allowed: Vec<PathBuf>,
    home: Option<PathBuf>,
    limit: u64,
}

/// Why a file is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// It is outside of the allowed folders, or hidden, or looks like a secret.
    #[error("files from there may not be sent")]
    Forbidden,
    /// It is larger than allowed.
    #[error("it is too large")]
    TooLarge,
    /// It could not be read or kept.
    #[error("it could not be read")]
    Unreadable,
}

impl Roots {
    /// Files of at most `limit` bytes below any of these folders. `~` is `home`. Folders that are not
    /// there allow nothing.
    pub fn new(
        allowed: impl IntoIterator<Item = PathBuf>,
        home: Option<PathBuf>,
        limit: u64,
    ) -> Self {
        let allowed = allowed.into_iter().filter_map(|root| root.canonicalize().ok());
        // A root that is the whole disk would be no list.
        let allowed = allowed.filter(|root| root.parent().is_some()).collect();
        Self { allowed, home, limit }
    }

    /// Whether no folder is allowed.
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }

    /// The real file behind a path, if it may be sent.
    pub fn approve(&self, path: &str) -> Result<PathBuf, NotSent> {
        self.find(path).map(|(root, below)| root.join(below))
    }

    /// The folder that permits a file, and the file's place in it.
    fn find(&self, path: &str) -> Result<(&Path, PathBuf), NotSent> {
        let path = match path.strip_prefix("~/") {
            Some(rest) => self.home.as_deref().ok_or(NotSent::Forbidden)?.join(rest),
            None => PathBuf::from(path),
        };
        if !path.is_absolute() {
            return Err(NotSent::Forbidden);
        }
        let real = path.canonicalize().map_err(|_| NotSent::Missing)?;
        let within = |root: &'_ PathBuf| real.strip_prefix(root).ok().map(Path::to_owned);
        let found = self.allowed.iter().find_map(|root| Some((root.as_path(), within(root)?)));
        let (root, below) = found.ok_or(NotSent::Forbidden)?;
        if below.components().any(is_hidden) || is_secret(&below) {
            return Err(NotSent::Forbidden);
        }
        if kind(&real.to_string_lossy()).is_none() {
            return Err(NotSent::Forbidden);
        }
        let about = real.metadata().map_err(|_| NotSent::Missing)?;
        match about.is_file() {
            false => Err(NotSent::Forbidden),
            true if about.len() > self.limit => Err(NotSent::TooLarge),
            true => Ok((root, below)),
        }
    }

    /// Opens a file that may be sent: by way of the folder that permits it, so that whatever somebody puts
    /// in the file's place meanwhile is another ordinary file of that folder, or nothing.
    fn open(&self, path: &str) -> Result<(PathBuf, std::fs::File), NotSent> {
        let (root, below) = self.find(path)?;
        let folder = Folder::open(root).map_err(|_| NotSent::Unreadable)?;
        let file = folder.read_below(&below).map_err(|_| NotSent::Unreadable)?;
        // A second name for a file of somebody else's looks like an ordinary one.
        match has_one_name(&file).map_err(|_| NotSent::Unreadable)? {
            true => Ok((below, file)),
            false => Err(NotSent::Forbidden),
        }
    }

    /// Reads a file and keeps it so that it can be sent.
    pub async fn take(&self, path: &str, keep: &dyn Attachments) -> Result<FileRef, NotSent> {
        let (below, file) = self.open(path)?;
        let name = below.file_name().and_then(|name| name.to_str()).ok_or(NotSent::Unreadable)?;
        let mime = kind(name).ok_or(NotSent::Forbidden)?;
        let mut bytes = Vec::new();
        let read =
            tokio::fs::File::from_std(file).take(self.limit + 1).read_to_end(&mut bytes).await;
        read.map_err(|_| NotSent::Unreadable)?;
        if bytes.len() as u64 > self.limit {
            return Err(NotSent::TooLarge);
        }
        keep.save(name, mime, bytes).await.map_err(|_| NotSent::Unreadable)
    }

    /// Takes every file that an answer names, and says which tagged ones it could not take.
    pub(crate) async fn take_all(
        &self,
        named: &Named,
        keep: &dyn Attachments,
    ) -> (Vec<FileRef>, Vec<(String, NotSent)>) {
        let mut files: Vec<FileRef> = Vec::new();
        let mut not_sent = Vec::new();
        for path in named.tagged.iter().take(MOST_FILES) {
            match self.take(path, keep).await {
                Ok(file) => files.push(file),
                Err(why) => not_sent.push((path.clone(), why)),
            }
        }
        for path in &named.mentioned {
            if files.len() < MOST_FILES
                && let Ok(file) = self.take(path, keep).await
            {
                files.push(file);
            }
        }
        files.dedup_by(|a, b| a.id == b.id);
        (files, not_sent)
    }
}

fn is_hidden(part: Component<'_>) -> bool {
    part.as_os_str().as_encoded_bytes().starts_with(b".")
}

fn is_secret(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    SECRET.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(answer: &str, tagged: &[&str], text: &str) {
        let named = named(answer);
        assert_eq!(named.tagged, tagged, "{answer:?}");
        assert_eq!(named.text, text, "{answer:?}");
    }

    #[test]
    fn a_tag_names_a_file_and_is_taken_out() {
        check("see MEDIA:/tmp/a.png now", &["/tmp/a.png"], "see  now");
        check("MEDIA:\"/tmp/a b.pdf\"", &["/tmp/a b.pdf"], "");
        check("MEDIA:`/tmp/a b.pdf`", &["/tmp/a b.pdf"], "");
        check("MEDIA: /tmp/a.png", &["/tmp/a.png"], "");
        check("MEDIA:/tmp/a.png, MEDIA:~/b.mp4.", &["/tmp/a.png"], ", MEDIA:~/b.mp4.");
        check("MEDIA:C:\\x\\a.PNG", &["C:\\x\\a.PNG"], "");
        check("one\n\nMEDIA:/a/b.tar.gz\n", &["/a/b.tar.gz"], "one");
    }

    #[test]
    fn what_is_talked_about_is_left_alone() {
        for answer in [
            "write `MEDIA:/tmp/a.png` like this",
            "```\nMEDIA:/tmp/a.png\n```",
            "~~~\nMEDIA:/tmp/a.png",
            "> MEDIA:/tmp/a.png",
            "{\"path\": \"MEDIA:/tmp/a.png\"}",
            "XMEDIA:/tmp/a.png",
            "MEDIA:a.png",
            "MEDIA:/etc/passwd",
            "MEDIA:/tmp/.png",
            "MEDIA:",
            "MEDIA:\"/tmp/a.png",
        ] {
            check(answer, &[], answer);
        }
    }

    #[test]
    fn how_files_are_shown_can_be_said() {
        let shown = |answer| (named(answer).shown, named(answer).text);
        assert_eq!(shown("[[audio_as_voice]]\nMEDIA:/tmp/v.ogg"), (Shown::Voice, String::new()));
        assert_eq!(shown("[[as_document]] here"), (Shown::Document, "here".to_owned()));
        assert_eq!(shown("`[[as_document]]`").0, Shown::Natural);
    }

    #[test]
    fn paths_in_the_text_are_found_and_stay_in_it() {
        let check = |answer: &str, expect: &[&str]| {
            let found = named(answer);
            assert_eq!(found.mentioned, expect, "{answer:?}");
            assert_eq!(found.text, answer);
        };
        check("I saved it to /tmp/out.png.", &["/tmp/out.png"]);
        check("(~/b.mp4) and **/tmp/c.pdf**", &["~/b.mp4", "/tmp/c.pdf"]);
        check("see https://example.org/a.png and a/b.png", &[]);
        check("`/tmp/out.png`", &[]);
        check("/tmp and /etc/passwd", &[]);
    }

    fn tree() -> (tempfile::TempDir, Roots, String) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("out");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        for (name, text) in [
            ("out/a.png", "png"),
            ("out/.git/a.png", "png"),
            ("out/credentials.json", "{}"),
            ("out/large.txt", "0123456789ABCDEF"),
            ("out/tool", "x"),
            ("secret.txt", "outside"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let roots = Roots::new([root.clone(), PathBuf::from("/")], Some(root.clone()), 12);
        let root = root.to_str().unwrap().to_owned();
        (folder, roots, root)
    }

    #[test]
    fn only_ordinary_files_below_the_allowed_folders_are_sent() {
        let (folder, roots, root) = tree();
        assert!(roots.approve(&format!("{root}/a.png")).is_ok());
        assert!(roots.approve("~/a.png").is_ok());
        for (path, why) in [
            ("a.png".to_owned(), NotSent::Forbidden),
            (format!("{root}/b.png"), NotSent::Missing),
            (format!("{root}/.git/a.png"), NotSent::Forbidden),
            (format!("{root}/credentials.json"), NotSent::Forbidden),
            (format!("{root}/large.txt"), NotSent::TooLarge),
            (format!("{root}/tool"), NotSent::Forbidden),
            (format!("{root}/../secret.txt"), NotSent::Forbidden),
            (format!("{}/secret.txt", folder.path().display()), NotSent::Forbidden),
            ("/etc/hostname".to_owned(), NotSent::Forbidden),
            (root, NotSent::Forbidden),
        ] {
            assert_eq!(roots.approve(&path), Err(why), "{path}");
        }
    }

    /// What is read of a file that is opened.
    fn opened(roots: &Roots, path: &str) -> Result<String, NotSent> {
        let (_, mut file) = roots.open(path)?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut file, &mut text).unwrap();
        Ok(text)
    }

    #[test]
    fn what_is_opened_is_the_file_that_was_looked_at() {
        use std::os::unix::fs::symlink;
        let (folder, roots, root) = tree();
        let path = format!("{root}/a.png");
        assert_eq!(opened(&roots, &path), Ok("png".to_owned()));
        // A second name for a file that is not allowed.
        let other = format!("{root}/other.txt");
        std::fs::hard_link(folder.path().join("secret.txt"), &other).unwrap();
        assert_eq!(opened(&roots, &other), Err(NotSent::Forbidden));
        // A link inside that leads to a file inside is read by its real place.
        symlink(&path, format!("{root}/link.png")).unwrap();
        assert_eq!(opened(&roots, &format!("{root}/link.png")), Ok("png".to_owned()));
        nix::unistd::mkfifo(format!("{root}/pipe.png").as_str(), nix::sys::stat::Mode::S_IRWXU)
            .unwrap();
        assert_eq!(opened(&roots, &format!("{root}/pipe.png")), Err(NotSent::Forbidden));
        // The folder that is allowed became a link to another one.
        std::fs::rename(&root, folder.path().join("moved")).unwrap();
        symlink(folder.path().join("moved"), &root).unwrap();
        assert!(opened(&roots, &path).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_leads_nowhere_that_is_not_allowed() {
        let (folder, roots, root) = tree();
        std::os::unix::fs::symlink(folder.path().join("secret.txt"), format!("{root}/x.txt"))
            .unwrap();
        std::os::unix::fs::symlink(folder.path(), format!("{root}/up")).unwrap();
        assert_eq!(roots.approve(&format!("{root}/x.txt")), Err(NotSent::Forbidden));
        assert_eq!(roots.approve(&format!("{root}/up/secret.txt")), Err(NotSent::Forbidden));
    }

    #[test]
    fn a_path_may_swallow_a_mark() {
        let path = "/tmp/a.png[[as_document]]/tmp/a.png";
        check(&format!("see MEDIA:{path}\nnow"), &[path], "see \nnow");
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(answer in "(MEDIA:|/tmp/a\\.png|`|```|\"|> |\n| |\\[\\[as_document\\]\\]|é|.){0,24}") {
            let found = named(&answer);
            prop_assert!(found.text.len() <= answer.len());
            if found.tagged.is_empty() && found.shown == Shown::Natural {
                prop_assert_eq!(found.text, answer);
            }
        }
    }
}
