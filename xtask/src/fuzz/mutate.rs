//! Makes bytes out of bytes: small damage, words that mean something, pieces of other inputs.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// No input is longer.
const LONGEST: usize = 8 * 1024;

/// Bytes at the edges of numbers and encodings.
const EDGES: [u8; 12] = [0, 1, 0x7f, 0x80, 0xff, 0xc2, 0xe2, b'\n', b'\r', b'"', b'{', b'\\'];

/// Makes inputs for one target, from a seed.
pub(super) struct Mutator<'a> {
    dice: StdRng,
    corpus: &'a [Vec<u8>],
    words: &'a [&'a str],
}

impl<'a> Mutator<'a> {
    pub(super) fn new(seed: u64, corpus: &'a [Vec<u8>], words: &'a [&'a str]) -> Self {
        Self { dice: StdRng::seed_from_u64(seed), corpus, words }
    }

    /// The next input.
    pub(super) fn next(&mut self) -> Vec<u8> {
        let mut input = self.any().to_vec();
        // Mostly a few changes, so that what is special about the input survives.
        let changes = 1 << self.dice.random_range(0..6);
        for _ in 0..changes {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn any(&mut self) -> &'a [u8] {
        match self.corpus.len() {
            0 => &[],
            many => &self.corpus[self.dice.random_range(0..many)],
        }
    }

    fn place(&mut self, input: &[u8]) -> usize {
        self.dice.random_range(0..=input.len())
    }

    /// A stretch of an input.
    fn stretch(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let (one, other) = (self.place(input), self.place(input));
        // Short ones are likelier.
        let (start, end) = (one.min(other), one.max(other));
        let longest = 1 << self.dice.random_range(0..10);
        start..end.min(start + longest)
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.place(input);
        match self.dice.random_range(0..11) {
            0 if at < input.len() => input[at] ^= 1 << self.dice.random_range(0..8),
            1 if at < input.len() => input[at] = self.dice.random(),
            2 if at < input.len() => input[at] = EDGES[self.dice.random_range(0..EDGES.len())],
            3 => input.insert(at, self.dice.random()),
            4 => {
                let gone = self.stretch(input);
                input.drain(gone);
            }
            5 => {
                let again = self.stretch(input);
                let again = input[again].to_vec();
                input.splice(at..at, again);
            }
            6 => {
                let other = self.any();
                let taken = self.stretch(other);
                input.splice(at..at, other[taken].to_vec());
            }
            7 => {
                // The beginning of one and the end of another.
                let other = self.any();
                let from = self.place(other);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            8 => {
                let number = [0, 1, -1, i64::MAX, i64::MIN, 255, 65_536, 4_294_967_295];
                let number = number[self.dice.random_range(0..number.len())].to_string();
                input.splice(at..at, number.into_bytes());
            }
            _ if !self.words.is_empty() => {
                let word = self.words[self.dice.random_range(0..self.words.len())];
                input.splice(at..at, word.bytes());
            }
            _ => {}
        }
        input.truncate(2 * LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_no_endless_ones() {
        let corpus = [b"{\"a\":1}".to_vec(), vec![b'x'; LONGEST]];
        let made = |seed| {
            let mut mutator = Mutator::new(seed, &corpus, &["word"]);
            (0..200).map(|_| mutator.next()).collect::<Vec<_>>()
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        assert!(made(3).iter().all(|input| input.len() <= LONGEST));
    }
}
