//! Texts with the word distribution of natural language, the same every time.

use std::collections::HashSet;

/// How many words there are.
pub(super) const WORDS: usize = 60_000;

/// SplitMix64: the same store every time.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Words by rank; the word at rank `r` is about `r` times rarer than the first, as in any language.
pub(super) struct Language {
    words: Vec<String>,
}

impl Language {
    pub(super) fn new(dice: &mut Dice) -> Self {
        const ONSETS: [&str; 24] = [
            "b", "br", "c", "ch", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n",
            "p", "pr", "r", "s", "st", "t", "tr", "w",
        ];
        const NUCLEI: [&str; 9] = ["a", "e", "i", "o", "u", "ea", "ou", "ai", "io"];
        const CODAS: [&str; 12] = ["", "", "", "n", "r", "s", "t", "l", "ng", "nd", "st", "ck"];
        let mut seen = HashSet::new();
        let mut words = Vec::with_capacity(WORDS);
        while words.len() < WORDS {
            // Common words are short.
            let syllables = 1 + dice.below(1 + (words.len() + 20).ilog10() as usize);
            let mut word = String::new();
            for _ in 0..syllables {
                word.push_str(ONSETS[dice.below(ONSETS.len())]);
                word.push_str(NUCLEI[dice.below(NUCLEI.len())]);
                word.push_str(CODAS[dice.below(CODAS.len())]);
            }
            if seen.insert(word.clone()) {
                words.push(word);
            }
        }
        Self { words }
    }

    /// A word whose rank is between these.
    pub(super) fn between(&self, dice: &mut Dice, from: usize, to: usize) -> &str {
        &self.words[from + dice.below(to - from)]
    }

    fn rank(dice: &mut Dice) -> usize {
        // The inverse of a logarithm: Zipf's law with exponent one.
        ((WORDS as f64).powf(dice.unit()) as usize).min(WORDS) - 1
    }

    fn word(&self, dice: &mut Dice) -> &str {
        &self.words[Self::rank(dice)]
    }

    pub(super) fn text(&self, dice: &mut Dice, many: usize) -> String {
        if dice.below(20) == 0 {
            return (0..many * 2).map(|_| ideograph(dice)).collect();
        }
        let mut text = String::new();
        for number in 0..many {
            if number > 0 {
                text.push_str(if dice.below(12) == 0 { ". " } else { " " });
            }
            // Numbers, hashes and names that occur once.
            if dice.below(60) == 0 {
                text.push_str(&format!("{:x}", dice.next() >> 36));
            } else {
                text.push_str(self.word(dice));
            }
        }
        text
    }
}

pub(super) fn ideograph(dice: &mut Dice) -> char {
    let rank = (3_000f64.powf(dice.unit()) as u32).min(3_000);
    char::from_u32(0x4E00 + rank * 7 % 3_001).expect("an ideograph")
}
