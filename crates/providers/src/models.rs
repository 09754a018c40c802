//! What is known of models by name: how much they read and what they cost.
//!
//! From the providers' own price lists. A model that is not here costs an unknown amount; the
//! configuration can say what nobody else does.

use crate::price::{Long, Price};

/// A model that is known by name.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Its provider's name in the catalog.
    pub provider: &'static str,
    /// Its own, without a date at the end.
    pub name: &'static str,
    /// How many tokens it reads.
    pub window: u64,
    /// What it costs.
    pub price: Price,
}

/// The model of that name, with or without a date or `latest` at the end.
pub fn model(provider: &str, name: &str) -> Option<&'static Model> {
    let find =
        |name: &str| MODELS.iter().find(|model| model.provider == provider && model.name == name);
    find(name).or_else(|| find(undated(name)?))
}

/// `name` without `-20250929`, `-2025-09-29` or `-latest` at its end.
fn undated(name: &str) -> Option<&str> {
    if let Some(rest) = name.strip_suffix("-latest") {
        return Some(rest);
    }
    let is_number =
        |part: &str, digits| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
    let (rest, last) = name.rsplit_once('-')?;
    if is_number(last, 8) {
        return Some(rest);
    }
    let (rest, month) = rest.rsplit_once('-')?;
    let (rest, year) = rest.rsplit_once('-')?;
    (is_number(last, 2) && is_number(month, 2) && is_number(year, 4)).then_some(rest)
}

/// Prices in the table are in hundredths of a cent per million tokens: 25_000 is $2.50.
const fn plain(
    provider: &'static str,
    name: &'static str,
    window: u64,
    input: u64,
    output: u64,
) -> Model {
    let price = Price {
        input: input * UNIT,
        output: output * UNIT,
        cache_read: None,
        cache_write: None,
        long: None,
    };
    Model { provider, name, window, price }
}

/// The table's unit is a hundredth of a cent.
const UNIT: u64 = 100;

impl Model {
    const fn cached(mut self, read: u64) -> Self {
        self.price.cache_read = Some(read * UNIT);
        self
    }

    const fn written(mut self, write: u64) -> Self {
        self.price.cache_write = Some(write * UNIT);
        self
    }

    /// Anthropic's cache: reading costs a tenth and writing a quarter more.
    const fn claude(mut self) -> Self {
        self.price.cache_read = Some(self.price.input / 10);
        self.price.cache_write = Some(self.price.input / 4 * 5);
        self
    }

    const fn beyond(mut self, above: u64, input: u64, output: u64, cache_read: u64) -> Self {
        let (input, output, cache_read) = (input * UNIT, output * UNIT, cache_read * UNIT);
        self.price.long = Some(Long { above, input, output, cache_read });
        self
    }
}

/// All of them, by provider.
pub const MODELS: &[Model] = &[
    plain("anthropic", "claude-fable-5", 1_000_000, 100_000, 500_000).claude(),
    plain("anthropic", "claude-haiku-4-5", 200_000, 10_000, 50_000).claude(),
    plain("anthropic", "claude-opus-4-1", 200_000, 150_000, 750_000).claude(),
    plain("anthropic", "claude-opus-4-5", 200_000, 50_000, 250_000).claude(),
    plain("anthropic", "claude-opus-4-6", 1_000_000, 50_000, 250_000).claude(),
    plain("anthropic", "claude-opus-4-7", 1_000_000, 50_000, 250_000).claude(),
    plain("anthropic", "claude-opus-4-8", 1_000_000, 50_000, 250_000).claude(),
    plain("anthropic", "claude-sonnet-4-5", 200_000, 30_000, 150_000).claude(),
    plain("anthropic", "claude-sonnet-4-6", 1_000_000, 30_000, 150_000).claude(),
    plain("anthropic", "claude-sonnet-5", 1_000_000, 20_000, 100_000).claude(),
    plain("anthropic", "claude-fable-5-1", 1_000_000, 100_000, 500_000).claude(),
    plain("anthropic", "claude-opus-5", 1_000_000, 50_000, 250_000).claude(),
    plain("anthropic", "claude-opus-5-5", 1_000_000, 40_000, 200_000).claude().cached(2_000),
    plain("anthropic", "claude-sonnet-5-5", 1_000_000, 20_000, 100_000).claude(),
    plain("openai", "gpt-4.1-mini", 1_047_576, 4_000, 16_000).cached(1_000),
    plain("openai", "gpt-4.1-nano", 1_047_576, 1_000, 4_000).cached(250),
    plain("openai", "gpt-4.1", 1_047_576, 20_000, 80_000).cached(5_000),
    plain("openai", "gpt-4o-mini", 128_000, 1_500, 6_000).cached(750),
    plain("openai", "gpt-4o", 128_000, 25_000, 100_000).cached(12_500),
    plain("openai", "gpt-5-mini", 400_000, 2_500, 20_000).cached(250),
    plain("openai", "gpt-5-nano", 400_000, 500, 4_000).cached(50),
    plain("openai", "gpt-5.1", 400_000, 12_500, 100_000).cached(1_250),
    plain("openai", "gpt-5.2", 400_000, 17_500, 140_000).cached(1_750),
    plain("openai", "gpt-5.4-mini", 400_000, 7_500, 45_000).cached(750),
    plain("openai", "gpt-5.4-nano", 400_000, 2_000, 12_500).cached(200),
    plain("openai", "gpt-5.4", 1_050_000, 25_000, 150_000)
        .cached(2_500)
        .beyond(272_000, 50_000, 225_000, 5_000),
    plain("openai", "gpt-5.5", 1_050_000, 50_000, 300_000)
        .cached(5_000)
        .beyond(272_000, 100_000, 450_000, 10_000),
    plain("openai", "gpt-5", 400_000, 12_500, 100_000).cached(1_250),
    plain("openai", "o1", 200_000, 150_000, 600_000).cached(75_000),
    plain("openai", "o3-mini", 200_000, 11_000, 44_000).cached(5_500),
    plain("openai", "o3", 200_000, 20_000, 80_000).cached(5_000),
    plain("openai", "o4-mini", 200_000, 11_000, 44_000).cached(2_750),
    plain("gemini", "gemini-2.5-flash-lite", 1_048_576, 1_000, 4_000).cached(100),
    plain("gemini", "gemini-2.5-flash", 1_048_576, 3_000, 25_000).cached(300),
    plain("gemini", "gemini-2.5-pro", 1_048_576, 12_500, 100_000)
        .cached(1_250)
        .beyond(200_000, 25_000, 150_000, 2_500),
    plain("gemini", "gemini-3-flash-preview", 1_048_576, 5_000, 30_000).cached(500),
    plain("gemini", "gemini-3.1-flash-lite", 1_048_576, 2_500, 15_000).cached(250),
    plain("gemini", "gemini-3.1-pro-preview", 1_048_576, 20_000, 120_000)
        .cached(2_000)
        .beyond(200_000, 40_000, 180_000, 4_000),
    plain("gemini", "gemini-3.5-flash", 1_048_576, 15_000, 90_000).cached(1_500),
    plain("groq", "llama-3.1-8b-instant", 131_072, 500, 800),
    plain("groq", "llama-3.3-70b-versatile", 131_072, 5_900, 7_900),
    plain("groq", "openai/gpt-oss-120b", 131_072, 1_500, 6_000).cached(750),
    plain("groq", "openai/gpt-oss-20b", 131_072, 750, 3_000).cached(375),
    plain("mistral", "codestral", 256_000, 3_000, 9_000),
    plain("mistral", "mistral-large", 262_144, 5_000, 15_000),
    plain("mistral", "mistral-medium", 262_144, 4_000, 20_000),
    plain("mistral", "mistral-small", 256_000, 1_500, 6_000),
    plain("deepseek", "deepseek-chat", 1_000_000, 1_400, 2_800).cached(28),
    plain("deepseek", "deepseek-reasoner", 1_000_000, 1_400, 2_800).cached(28),
    plain("deepseek", "deepseek-v4-flash", 1_000_000, 1_400, 2_800).cached(28),
    plain("deepseek", "deepseek-v4-pro", 1_000_000, 4_350, 8_700).cached(36),
    plain("xai", "grok-4.3", 1_000_000, 12_500, 25_000)
        .cached(2_000)
        .beyond(200_000, 25_000, 50_000, 4_000),
    plain("together", "moonshotai/Kimi-K2.6", 262_144, 12_000, 45_000).cached(2_000),
    plain("together", "openai/gpt-oss-120b", 131_072, 1_500, 6_000),
    plain("fireworks", "accounts/fireworks/models/glm-5p2", 1_048_575, 14_000, 44_000)
        .cached(2_600),
    plain("fireworks", "accounts/fireworks/models/gpt-oss-120b", 131_072, 1_500, 6_000).cached(150),
    plain("fireworks", "accounts/fireworks/models/kimi-k2p6", 262_000, 9_500, 40_000).cached(1_600),
    plain("cerebras", "gpt-oss-120b", 131_072, 3_500, 7_500),
    plain("moonshot", "kimi-k2.5", 262_144, 6_000, 30_000).cached(1_000),
    plain("moonshot", "kimi-k2.6", 262_144, 9_500, 40_000).cached(1_600),
    plain("moonshot", "kimi-k2.7-code-highspeed", 262_144, 19_000, 80_000).cached(3_800),
    plain("moonshot", "kimi-k2.7-code", 262_144, 9_500, 40_000).cached(1_900),
    plain("zai", "glm-4.6", 204_800, 6_000, 22_000).cached(1_100),
    plain("zai", "glm-4.6v", 128_000, 3_000, 9_000),
    plain("zai", "glm-4.7-flash", 200_000, 0, 0).cached(0),
    plain("zai", "glm-4.7-flashx", 200_000, 700, 4_000).cached(100),
    plain("zai", "glm-4.7", 204_800, 6_000, 22_000).cached(1_100),
    plain("zai", "glm-5-turbo", 200_000, 12_000, 40_000).cached(2_400),
    plain("zai", "glm-5.1", 200_000, 14_000, 44_000).cached(2_600),
    plain("zai", "glm-5.2", 1_000_000, 14_000, 44_000).cached(2_600),
    plain("zai", "glm-5", 204_800, 10_000, 32_000).cached(2_000),
    plain("zai", "glm-5v-turbo", 200_000, 12_000, 40_000).cached(2_400),
    plain("minimax", "MiniMax-M2.5-highspeed", 204_800, 6_000, 24_000).cached(600).written(3_750),
    plain("minimax", "MiniMax-M2.5", 204_800, 3_000, 12_000).cached(300).written(3_750),
    plain("minimax", "MiniMax-M2.7-highspeed", 204_800, 6_000, 24_000).cached(600).written(3_750),
    plain("minimax", "MiniMax-M2.7", 204_800, 3_000, 12_000).cached(600).written(3_750),
    plain("minimax", "MiniMax-M3", 1_000_000, 3_000, 12_000)
        .cached(600)
        .beyond(512_000, 6_000, 24_000, 1_200),
    plain("deepinfra", "moonshotai/Kimi-K2.6", 262_144, 7_500, 35_000).cached(1_500),
    plain("deepinfra", "deepseek-ai/DeepSeek-V4-Flash", 1_048_576, 1_000, 2_000).cached(200),
    plain("deepinfra", "openai/gpt-oss-120b", 131_072, 390, 1_900),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CATALOG, known};
    use std::collections::BTreeSet;

    #[test]
    fn every_model_is_there_once_and_has_a_provider_and_a_price() {
        let names: BTreeSet<_> = MODELS.iter().map(|model| (model.provider, model.name)).collect();
        assert_eq!(names.len(), MODELS.len());
        for model in MODELS {
            assert!(known(model.provider).is_some(), "{model:?}");
            assert!(model.window >= 32_000, "{model:?}");
            assert!(model.price.output >= model.price.input, "{model:?}");
            let read = model.price.cache_read.unwrap_or_default();
            assert!(read <= model.price.input, "{model:?}");
        }
    }

    #[test]
    fn the_usual_model_of_a_provider_is_known_as_the_catalog_says() {
        for known in CATALOG {
            let Some(usual) = known.model else { continue };
            if let (Some(model), Some(window)) = (model(known.name, usual), known.context_window) {
                assert_eq!(model.window, window, "{}", known.name);
            }
        }
        assert!(model("anthropic", "claude-sonnet-5").is_some());
        assert!(model("openai", "gpt-5.5").is_some());
    }

    #[test]
    fn a_date_at_the_end_does_not_matter() {
        let price = |provider, name| model(provider, name).map(|model| model.price.input);
        assert_eq!(price("anthropic", "claude-haiku-4-5-20251001"), Some(1_000_000));
        assert_eq!(price("openai", "gpt-4o-2024-08-06"), Some(2_500_000));
        assert_eq!(price("mistral", "mistral-large-latest"), Some(500_000));
        assert_eq!(price("anthropic", "claude-haiku-9"), None);
        assert_eq!(price("groq", "claude-haiku-4-5"), None);
    }
}
