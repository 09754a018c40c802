//! Counting text the way a platform counts it.

use talaria_model::{TextLimit, Unit};

/// The length of a text in a platform's own unit.
pub fn length(text: &str, unit: Unit) -> usize {
    match unit {
        Unit::Bytes => text.len(),
        Unit::Utf16 => text.chars().map(char::len_utf16).sum(),
        Unit::Chars => text.chars().count(),
    }
}

/// A limit that every character fits into, so that a text can always be taken apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) max: usize,
    pub(crate) unit: Unit,
}

impl Limit {
    /// A limit below the longest single character of its unit counts as that long.
    pub(crate) fn of(limit: TextLimit) -> Self {
        let one_character = match limit.unit {
            Unit::Bytes => 4,
            Unit::Utf16 => 2,
            Unit::Chars => 1,
        };
        Self {
            max: usize::try_from(limit.max).unwrap_or(usize::MAX).max(one_character),
            unit: limit.unit,
        }
    }

    pub(crate) fn length(self, text: &str) -> usize {
        length(text, self.unit)
    }

    pub(crate) fn fits(self, text: &str) -> bool {
        self.length(text) <= self.max
    }
}

/// The longest beginning of a text that is at most `max` long.
pub(crate) fn beginning(text: &str, max: usize, unit: Unit) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += match unit {
            Unit::Bytes => character.len_utf8(),
            Unit::Utf16 => character.len_utf16(),
            Unit::Chars => 1,
        };
        if used > max {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_counts_in_its_own_way() {
        for (text, bytes, utf16, chars) in
            [("", 0, 0, 0), ("abc", 3, 3, 3), ("a😀é", 7, 4, 3), ("e\u{301}", 3, 2, 2)]
        {
            assert_eq!(length(text, Unit::Bytes), bytes, "{text}");
            assert_eq!(length(text, Unit::Utf16), utf16, "{text}");
            assert_eq!(length(text, Unit::Chars), chars, "{text}");
        }
    }

    #[test]
    fn a_beginning_never_ends_inside_a_character() {
        assert_eq!(beginning("a😀é", 4, Unit::Bytes), "a");
        assert_eq!(beginning("a😀é", 3, Unit::Utf16), "a😀");
        assert_eq!(beginning("a😀é", 3, Unit::Chars), "a😀é");
        assert_eq!(beginning("é", 1, Unit::Bytes), "");
    }
}
