//! What a file is and what it is called. Neither decides where it lies: that is the digest of its bytes.

/// The longest name, in characters.
const LONGEST: usize = 120;

/// The longest ending that is kept when a name is cut.
const LONGEST_ENDING: usize = 16;

/// What a file is: as its bytes show, else as declared. Whoever is shown a picture needs one, so nothing
/// is a picture by declaration but what is drawn in text.
pub(super) fn kind_of<'a>(head: &[u8], declared: Option<&'a str>) -> &'a str {
    let is_picture = |mime: &&str| mime.starts_with("image/") && !mime.starts_with("image/svg");
    shown_by(head)
        .or(declared.filter(|mime| !is_picture(mime)))
        .unwrap_or("application/octet-stream")
}

/// What bytes show that they are, if they do.
pub(super) fn shown_by(head: &[u8]) -> Option<&'static str> {
    infer::get(head).map(|kind| kind.mime_type())
}

/// A name for people to read, which harms nobody who saves a file under it: no folders, nothing that is
/// not seen or turns the text around, no option of a program, no device of an operating system, not endless.
pub(super) fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let seen: String = last.chars().filter(|c| !is_unseen(*c)).map(harmless).collect();
    let name = shortened(&no_device(bare(&seen)));
    // What was cut off may have been what told it from a device.
    let name = shortened(&no_device(bare(&name)));
    match name.as_str() {
        "" => "file".to_owned(),
        _ => name,
    }
}

fn no_device(name: &str) -> String {
    format!("{}{name}", if is_device(name) { "_" } else { "" })
}

/// Without what hides a file, makes an option of its name, or is lost when it is saved.
fn bare(name: &str) -> &str {
    name.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '-'))
        .trim_end_matches(|c: char| c.is_whitespace() || c == '.')
}

/// Whether a character shows nothing, or changes how others are shown.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Some operating systems read these as something else than a letter of a name.
fn harmless(c: char) -> char {
    if matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*') { '_' } else { c }
}

/// Cut in front of its ending, which says how to open it.
fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    let ending = name.rfind('.').map_or("", |at| &name[at..]);
    let ending = if ending.chars().count() <= LONGEST_ENDING { ending } else { "" };
    let room = LONGEST - ending.chars().count();
    name.chars().take(room).chain(ending.chars()).collect()
}

/// Names that mean a device on Windows, whatever their ending.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |prefix: &str| {
        let rest = stem.strip_prefix(prefix).unwrap_or_default();
        rest.chars().count() == 1 && rest.contains(|c: char| "123456789¹²³".contains(c))
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_for_reading_only() {
        let long = "n".repeat(4096);
        for (given, kept) in [
            ("report.pdf", "report.pdf"),
            ("Übersicht 2026 (1).pdf", "Übersicht 2026 (1).pdf"),
            ("../../etc/passwd", "passwd"),
            ("/etc/passwd", "passwd"),
            ("c:\\x\\y.txt", "y.txt"),
            ("\\\\host\\share\\y.txt", "y.txt"),
            (".bashrc", "bashrc"),
            ("...", "file"),
            ("a\u{7}b", "ab"),
            ("a\0b.txt", "ab.txt"),
            ("line\nbreak\r.txt", "linebreak.txt"),
            ("\u{202e}gpj.exe", "gpj.exe"),
            ("a\u{2066}b\u{200b}c\u{feff}", "abc"),
            ("-rf", "rf"),
            (" --help ", "help"),
            (".-.-x", "x"),
            ("name. . ", "name"),
            ("CON", "_CON"),
            ("con.txt", "_con.txt"),
            ("Com1.tar.gz", "_Com1.tar.gz"),
            ("LPT9", "_LPT9"),
            ("aux .c", "_aux .c"),
            ("COM10", "COM10"),
            ("console", "console"),
            ("a:b|c?.txt", "a_b_c_.txt"),
            ("", "file"),
            ("..", "file"),
            ("/", "file"),
        ] {
            assert_eq!(plain_name(given), kept, "{given:?}");
        }
        assert_eq!(plain_name(&long), "n".repeat(120));
        assert_eq!(plain_name(&format!("{long}.pdf")), format!("{}.pdf", "n".repeat(116)));
        assert_eq!(plain_name(&format!("a.{long}")).chars().count(), 120);
        assert_eq!(plain_name(&format!("con{}x", " ".repeat(200))), "_con");
        let spaced = format!("con{}x.txt", " ".repeat(200));
        assert_eq!(plain_name(&spaced), format!("_con{}.txt", " ".repeat(112)));
    }

    #[test]
    fn a_kind_is_what_the_bytes_are_and_no_picture_is_one_by_its_word() {
        for (head, declared, kind) in [
            (&b"\x89PNG\r\n\x1a\n"[..], Some("text/html"), "image/png"),
            (b"%PDF-1.7", Some("image/png"), "application/pdf"),
            (b"<html>", Some("image/png"), "text/html"),
            (b"hello", Some("image/png"), "application/octet-stream"),
            (b"hello", Some("image/svg+xml"), "image/svg+xml"),
            (b"hello", Some("text/plain"), "text/plain"),
            (b"hello", None, "application/octet-stream"),
            (b"", None, "application/octet-stream"),
        ] {
            assert_eq!(kind_of(head, declared), kind, "{head:?} {declared:?}");
        }
    }

    proptest! {
        #[test]
        fn any_name_becomes_one_that_is_safe_to_save_under(name in "(\\PC|[./\\\\\\-\u{202e}\0 :]|CON|aux\\.){0,200}") {
            let plain = plain_name(&name);
            prop_assert!((1..=LONGEST).contains(&plain.chars().count()), "{plain:?}");
            prop_assert!(!plain.contains(['/', '\\', '\0', ':']), "{plain:?}");
            prop_assert!(!plain.chars().any(is_unseen), "{plain:?}");
            prop_assert!(!plain.starts_with(['.', '-', ' ']), "{plain:?}");
            prop_assert!(!is_device(&plain), "{plain:?}");
            prop_assert_eq!(plain_name(&plain), plain.clone());
        }
    }
}
