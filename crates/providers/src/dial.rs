//! How a model is told how hard to think. Every API has its own words for it, every model its own
//! selection of them, and a word that a model does not know is an error; so what is wished for is
//! rounded to what there is.

use talaria_model::Effort::{self, High, Low, Max, Medium, Minimal, Off, XHigh};

use crate::catalog::Wire;

/// What a model can be told about thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dial {
    /// What it knows, from least to most. Empty where it cannot be told.
    pub efforts: &'static [Effort],
    /// How it is said.
    pub form: Form,
}

/// How a model is told how hard to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// Not at all.
    #[default]
    Untold,
    /// `reasoning_effort`.
    Word,
    /// `reasoning_effort`, which has to be `none` as soon as there are tools: OpenAI serves both
    /// together through another API only. Some of these models think unless they are told not to,
    /// so the word is needed even when nobody wished for anything.
    NoneWithTools,
    /// `thinking.type`, on or off.
    Switch,
    /// `thinking.type` and `reasoning_effort`.
    SwitchAndWord,
    /// `thinking.type: adaptive` and `output_config.effort`; `disabled` turns it off.
    Adaptive,
    /// The same, but it cannot be turned off.
    AlwaysAdaptive,
    /// `output_config.effort` alone.
    Output,
    /// `thinking.budget_tokens`.
    Budget,
}

impl Default for Dial {
    fn default() -> Self {
        Self { efforts: &[], form: Form::Untold }
    }
}

const fn dial(form: Form, efforts: &'static [Effort]) -> Dial {
    Dial { efforts, form }
}

const USUAL: &[Effort] = &[Low, Medium, High];

impl Dial {
    /// What is known of a model, by names in the catalog.
    pub fn of(provider: &str, wire: Wire, model: &str) -> Self {
        match (wire, provider) {
            (Wire::Demo, _) => Self::default(),
            (Wire::Anthropic, _) => claude(model),
            (Wire::OpenAi, "openai") => openai(model),
            (Wire::OpenAi, "openrouter" | "nous") => {
                dial(Form::Word, &[Off, Minimal, Low, Medium, High, XHigh, Max])
            }
            (Wire::OpenAi, "gemini") if model.contains("pro") => dial(Form::Word, USUAL),
            (Wire::OpenAi, "gemini") => dial(Form::Word, &[Minimal, Low, Medium, High]),
            (Wire::OpenAi, "xai") => dial(Form::Word, &[Off, Low, Medium, High]),
            (Wire::OpenAi, "mistral") => dial(Form::Word, &[Off, High]),
            (Wire::OpenAi, "ollama") => dial(Form::Word, &[Off, Low, Medium, High]),
            // <https://api-docs.deepseek.com/guides/thinking_mode>
            (Wire::OpenAi, "deepseek") => dial(Form::SwitchAndWord, &[Off, Low, High, Max]),
            (Wire::OpenAi, "zai" | "moonshot") => dial(Form::Switch, &[Off, High]),
            (Wire::OpenAi, _) => dial(Form::Word, USUAL),
        }
    }

    /// The effort that comes nearest to the one wished for: the next lower one, else the lowest. Who
    /// wishes for some thinking gets some, and who wishes for none gets as little as there is.
    pub fn round(&self, wished: Effort) -> Option<Effort> {
        let thinking = |effort: &&Effort| **effort > Off && **effort <= wished;
        let least = self.efforts.iter().find(|effort| (**effort > Off) == (wished > Off));
        let lower = self.efforts.iter().rev().find(thinking);
        lower.or(least).or(self.efforts.first()).copied()
    }
}

/// <https://platform.claude.com/docs/en/build-with-claude/effort>
fn claude(model: &str) -> Dial {
    const SINCE_4_7: &[Effort] = &[Off, Low, Medium, High, XHigh, Max];
    let Some(version) = version_of_claude(model) else { return Dial::default() };
    let always = ["fable", "mythos"].iter().any(|family| model.contains(family));
    match version {
        // Thinking off is a mode of its own there.
        (5, 5..) if model.contains("sonnet") => dial(Form::AlwaysAdaptive, &SINCE_4_7[1..]),
        (5, 5..) if model.contains("opus") => dial(Form::AlwaysAdaptive, &SINCE_4_7[1..]),
        (5.., _) if always => dial(Form::AlwaysAdaptive, &SINCE_4_7[1..]),
        (5.., _) | (4, 7..) => dial(Form::Adaptive, SINCE_4_7),
        (4, 6) => dial(Form::Adaptive, &[Off, Low, Medium, High, Max]),
        (4, 5) if model.contains("opus") => dial(Form::Output, USUAL),
        (4, _) | (3, 7..) => dial(Form::Budget, &[Off, Low, Medium, High, Max]),
        _ => Dial::default(),
    }
}

/// `claude-sonnet-4-5-20250929` is 4.5, `claude-opus-5` is 5.0, `claude-3-7-sonnet` is 3.7.
fn version_of_claude(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.rsplit_once("claude-")?;
    let numbers = name.split(['-', '.']).skip_while(|part| part.parse::<u32>().is_err());
    let mut numbers = numbers.map_while(|part| part.parse().ok().filter(|number| *number < 100));
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

/// <https://platform.openai.com/docs/guides/reasoning>
fn openai(model: &str) -> Dial {
    if model.starts_with('o') {
        return dial(Form::Word, USUAL);
    }
    let version = model.strip_prefix("gpt-").unwrap_or_default();
    let number = version.split('-').next().unwrap_or_default();
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    match (major.parse::<u32>(), minor.parse::<u32>()) {
        _ if model.ends_with("chat-latest") => Dial::default(),
        (Ok(5), Ok(0)) => dial(Form::Word, &[Minimal, Low, Medium, High]),
        (Ok(5), Ok(1)) => dial(Form::Word, &[Off, Low, Medium, High]),
        (Ok(5..), Ok(_)) => dial(Form::NoneWithTools, &[Off]),
        _ => Dial::default(),
    }
}

/// As `reasoning_effort` says it.
pub(crate) const fn word(effort: Effort) -> &'static str {
    match effort {
        Off => "none",
        _ => effort.as_str(),
    }
}

/// How many tokens of thought an effort is worth, for models that count them. The API takes no less
/// than 1,024.
pub(crate) const fn budget(effort: Effort) -> u32 {
    match effort {
        Off => 0,
        Minimal => 1024,
        Low => 2048,
        Medium => 8192,
        High => 16_384,
        XHigh | Max => 32_768,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_tells_its_version_in_many_ways() {
        let check = |model, version| assert_eq!(version_of_claude(model), version, "{model}");
        check("claude-sonnet-4-5-20250929", Some((4, 5)));
        check("claude-opus-4-20250514", Some((4, 0)));
        check("claude-opus-5", Some((5, 0)));
        check("claude-sonnet-4.6", Some((4, 6)));
        check("claude-3-7-sonnet-20250219", Some((3, 7)));
        check("anthropic/claude-sonnet-5-5", Some((5, 5)));
        check("MiniMax-M3", None);
        check("claude-next", None);
    }

    #[test]
    fn a_wish_is_rounded_down_to_what_a_model_knows() {
        let round = |provider, wire, model, effort| Dial::of(provider, wire, model).round(effort);
        let claude = |model, effort| round("anthropic", Wire::Anthropic, model, effort);
        assert_eq!(claude("claude-sonnet-5", XHigh), Some(XHigh));
        assert_eq!(claude("claude-sonnet-4-6", XHigh), Some(High));
        assert_eq!(claude("claude-sonnet-4-6", Minimal), Some(Low));
        assert_eq!(claude("claude-opus-4-5", Max), Some(High));
        assert_eq!(claude("claude-fable-5", Off), Some(Low));
        assert_eq!(claude("claude-opus-5-5", Off), Some(Low));
        assert_eq!(claude("claude-3-haiku-20240307", High), None);
        let openai = |model, effort| round("openai", Wire::OpenAi, model, effort);
        assert_eq!(openai("gpt-5-mini", Off), Some(Minimal));
        assert_eq!(openai("gpt-5.1", Max), Some(High));
        assert_eq!(openai("gpt-5.5", High), Some(Off));
        assert_eq!(openai("o4-mini", XHigh), Some(High));
        assert_eq!(openai("gpt-4o", High), None);
        assert_eq!(round("deepseek", Wire::OpenAi, "deepseek-v4-flash", Medium), Some(Low));
    }

    #[test]
    fn efforts_are_in_order() {
        for (provider, wire, model) in [
            ("anthropic", Wire::Anthropic, "claude-sonnet-5"),
            ("openrouter", Wire::OpenAi, "x"),
            ("deepseek", Wire::OpenAi, "x"),
            ("own", Wire::OpenAi, "x"),
        ] {
            assert!(Dial::of(provider, wire, model).efforts.is_sorted());
        }
    }
}
