//! What kind of sound some bytes are.

/// How a spoken answer is to be recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Opus in Ogg: what platforms show as a voice message.
    #[default]
    Opus,
    /// MP3.
    Mp3,
    /// AAC.
    Aac,
    /// FLAC.
    Flac,
    /// WAV.
    Wav,
}

impl Format {
    /// As audio APIs name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Opus => "opus",
            Self::Mp3 => "mp3",
            Self::Aac => "aac",
            Self::Flac => "flac",
            Self::Wav => "wav",
        }
    }

    /// How names of such files end.
    pub(crate) const fn ending(self) -> &'static str {
        match self {
            Self::Opus => "ogg",
            other => other.name(),
        }
    }

    const fn mime(self) -> &'static str {
        match self {
            Self::Opus => "audio/ogg",
            Self::Mp3 => "audio/mpeg",
            Self::Aac => "audio/aac",
            Self::Flac => "audio/flac",
            Self::Wav => "audio/wav",
        }
    }
}

/// The ending and the media type of sound, by its first bytes; else as it was to be.
pub(crate) fn kind(bytes: &[u8], wished: Format) -> (&'static str, &'static str) {
    let found = match bytes {
        [b'O', b'g', b'g', b'S', ..] => Format::Opus,
        [b'f', b'L', b'a', b'C', ..] => Format::Flac,
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Format::Wav,
        [b'I', b'D', b'3', ..] => Format::Mp3,
        // Both begin with the same eleven bits; AAC has zeros where MP3 names its layer.
        [0xff, second, ..] if second & 0xf6 == 0xf0 => Format::Aac,
        [0xff, second, ..] if second & 0xe0 == 0xe0 => Format::Mp3,
        _ => wished,
    };
    (found.ending(), found.mime())
}

/// The ending of a file's name, if it is one that a program can be trusted with.
pub(crate) fn ending<'a>(name: &'a str, mime: &str) -> &'a str {
    let plain = |ending: &&str| {
        !ending.is_empty() && ending.len() <= 5 && ending.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let named = name.rsplit_once('.').map(|(_, ending)| ending).filter(plain);
    named.unwrap_or(match mime {
        "audio/ogg" | "audio/opus" => "ogg",
        "audio/mpeg" => "mp3",
        "audio/mp4" | "audio/m4a" | "audio/x-m4a" => "m4a",
        "audio/webm" | "video/webm" => "webm",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/flac" | "audio/x-flac" => "flac",
        _ => "ogg",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_is_known_by_its_first_bytes() {
        for (bytes, expected) in [
            (&b"OggS\0"[..], "audio/ogg"),
            (b"fLaC", "audio/flac"),
            (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
            (b"RIFF\x24\0\0\0AVI ", "audio/mpeg"),
            (b"ID3\x04", "audio/mpeg"),
            (b"\xff\xfb\x90", "audio/mpeg"),
            (b"\xff\xf1\x50", "audio/aac"),
            (b"", "audio/mpeg"),
        ] {
            assert_eq!(kind(bytes, Format::Mp3).1, expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_name_ends_in_nothing_but_letters() {
        assert_eq!(ending("v.OGG", "audio/ogg"), "OGG");
        assert_eq!(ending("v.sh/../x", "audio/mpeg"), "mp3");
        assert_eq!(ending("voice", "audio/mp4"), "m4a");
        assert_eq!(ending("v.", ""), "ogg");
    }
}
