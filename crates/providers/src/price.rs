//! What a model's words cost.

use talaria_model::{Cost, Usage};

const MILLION: u128 = 1_000_000;

/// Prices in millionths of a US dollar, per million tokens: $2.50 is 2,500,000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    /// What the model reads.
    pub input: u64,
    /// What it writes, thoughts included.
    pub output: u64,
    /// What it reads from the prompt cache; as `input` where nobody says.
    pub cache_read: Option<u64>,
    /// What is written into the prompt cache; as `input` where nobody says.
    pub cache_write: Option<u64>,
    /// What a long prompt costs instead.
    pub long: Option<Long>,
}

/// What a prompt costs that is longer than some limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Long {
    /// Prompts with more tokens than this.
    pub above: u64,
    /// What the model reads.
    pub input: u64,
    /// What it writes.
    pub output: u64,
    /// What it reads from the prompt cache.
    pub cache_read: u64,
}

/// Who knows what a model costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pricing {
    /// Nobody.
    #[default]
    Unknown,
    /// It runs on one's own machine.
    Free,
    /// We do.
    Listed(Price),
    /// The provider says so with every answer. One that breaks off costs about what the model costs where it
    /// is made, as far as we know that.
    Reported(Option<Price>),
}

impl Price {
    /// What that much costs, rounded up.
    pub fn cost(&self, usage: Usage) -> Cost {
        let long = self.long.filter(|long| usage.prompt() > long.above);
        let (input, output) =
            long.map_or((self.input, self.output), |long| (long.input, long.output));
        let read = long.map_or(self.cache_read.unwrap_or(self.input), |long| long.cache_read);
        let write = self.cache_write.unwrap_or(input);
        let parts = [
            (usage.input, input),
            (usage.output, output),
            (usage.cache_read, read),
            (usage.cache_write, write),
        ];
        let sum: u128 =
            parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        Cost::known(u64::try_from(sum.div_ceil(MILLION)).unwrap_or(u64::MAX))
    }
}

impl Pricing {
    /// What an answer cost. `reported` is what the provider said about it, in US dollars.
    pub(crate) fn cost(self, usage: Usage, reported: Option<f64>) -> Cost {
        match self {
            Self::Free => Cost::FREE,
            Self::Listed(price) => price.cost(usage),
            Self::Reported(_) => reported.and_then(in_micros).map_or(Cost::UNKNOWN, Cost::known),
            Self::Unknown => Cost::UNKNOWN,
        }
    }

    /// What an answer cost, about, that broke off before the provider said how much it used.
    pub(crate) fn unfinished(self, usage: Usage) -> Cost {
        match self {
            Self::Free => Cost::FREE,
            Self::Listed(price) | Self::Reported(Some(price)) => {
                Cost::estimated(price.cost(usage).micros)
            }
            Self::Reported(None) | Self::Unknown => Cost::UNKNOWN,
        }
    }
}

fn in_micros(dollars: f64) -> Option<u64> {
    let micros = (dollars * 1e6).ceil();
    // More than a million dollars for one answer is a mistake.
    (0.0..1e12).contains(&micros).then_some(micros as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SONNET: Price = Price {
        input: 2_000_000,
        output: 10_000_000,
        cache_read: Some(200_000),
        cache_write: Some(2_500_000),
        long: None,
    };

    #[test]
    fn every_kind_of_token_has_its_own_price() {
        let usage = Usage {
            input: 1000,
            output: 100,
            cache_read: 50_000,
            cache_write: 2000,
            reasoning: 60,
            estimated: 0,
        };
        // 2,000 + 1,000 + 10,000 + 5,000 millionths.
        assert_eq!(SONNET.cost(usage), Cost::known(18_000));
        assert_eq!(SONNET.cost(Usage { input: 1, ..Usage::default() }), Cost::known(2));
    }

    #[test]
    fn a_long_prompt_costs_what_long_prompts_cost() {
        let long =
            Long { above: 272_000, input: 10_000_000, output: 45_000_000, cache_read: 1_000_000 };
        let price = Price {
            input: 5_000_000,
            output: 30_000_000,
            cache_read: Some(500_000),
            long: Some(long),
            ..Price::default()
        };
        let usage = |cache_read| Usage { input: 2000, output: 1, cache_read, ..Usage::default() };
        assert_eq!(price.cost(usage(270_000)), Cost::known(10_000 + 30 + 135_000));
        assert_eq!(price.cost(usage(270_001)), Cost::known(20_000 + 45 + 270_001));
    }

    #[test]
    fn what_a_provider_reports_is_taken_if_it_can_be_true() {
        let cost = |reported| Pricing::Reported(None).cost(Usage::default(), reported);
        assert_eq!(cost(Some(0.000_78)), Cost::known(780));
        assert_eq!(cost(Some(0.0)), Cost::known(0));
        for wrong in [None, Some(f64::NAN), Some(-1.0), Some(f64::INFINITY)] {
            assert_eq!(cost(wrong), Cost::UNKNOWN);
        }
    }

    proptest! {
        #[test]
        fn more_never_costs_less(a in any::<u32>(), b in any::<u32>(), c in any::<u32>(), more in any::<u32>()) {
            let usage = |input| Usage {
                input: u64::from(input),
                output: u64::from(b),
                cache_read: u64::from(c),
                ..Usage::default()
            };
            let less = SONNET.cost(usage(a)).micros;
            prop_assert!(SONNET.cost(usage(a.saturating_add(more))).micros >= less);
        }
    }

    #[test]
    fn an_answer_that_broke_off_costs_about_what_its_tokens_do_where_a_price_is_known() {
        let usage = Usage { input: 1000, output: 100, ..Usage::default() };
        for (pricing, cost) in [
            (Pricing::Free, Cost::FREE),
            (Pricing::Listed(SONNET), Cost::estimated(3_000)),
            (Pricing::Reported(Some(SONNET)), Cost::estimated(3_000)),
            (Pricing::Reported(None), Cost::UNKNOWN),
            (Pricing::Unknown, Cost::UNKNOWN),
        ] {
            assert_eq!(pricing.unfinished(usage), cost, "{pricing:?}");
        }
    }
}
