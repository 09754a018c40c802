//! The providers that need no introduction: where they are, what their keys are called, and which
//! model to take when nobody says.

use talaria_agent::Sight;

use crate::settings::LimitName;

/// The language that an API speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
    /// None: the offline demo.
    Demo,
}

/// Whether a provider answers without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// It does not.
    Needed,
    /// It does: a server on this machine.
    Optional,
}

/// How a provider names its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelNames {
    /// `model`.
    Plain,
    /// `vendor/model`, because it serves many vendors' models.
    WithVendor,
}

/// Who says what an answer costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bill {
    /// The provider's price list.
    Listed,
    /// The provider, with every answer.
    Reported,
}

/// A provider that is known by name.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// What people write in `provider/model`.
    pub name: &'static str,
    /// Other names that people use.
    pub aliases: &'static [&'static str],
    /// Its name in a sentence.
    pub title: &'static str,
    /// What it speaks.
    pub wire: Wire,
    /// Where its API is.
    pub base_url: &'static str,
    /// Environment variables that say it is elsewhere.
    pub base_url_env: &'static [&'static str],
    /// Whether it needs a key.
    pub key: Key,
    /// Environment variables that may hold the key, the usual one first.
    pub key_env: &'static [&'static str],
    /// The model to take when nobody says; none where only looking can tell.
    pub model: Option<&'static str>,
    /// Environment variables that name the model.
    pub model_env: &'static [&'static str],
    /// How many tokens that model reads.
    pub context_window: Option<u64>,
    /// How names of its models begin, so that a bare one is understood.
    pub prefixes: &'static [&'static str],
    /// How it names its models.
    pub names: ModelNames,
    /// What it calls the limit on an answer.
    pub limit_name: LimitName,
    /// Fields of a request that it refuses.
    pub refuses: &'static [&'static str],
    /// Who says what an answer costs.
    pub bill: Bill,
    /// Whether every usual model of it looks at pictures. One that does not refuses the whole prompt.
    pub sight: Sight,
}

const USUAL: Known = Known {
    name: "",
    aliases: &[],
    title: "",
    wire: Wire::OpenAi,
    base_url: "",
    base_url_env: &[],
    key: Key::Needed,
    key_env: &[],
    model: None,
    model_env: &[],
    context_window: None,
    prefixes: &[],
    names: ModelNames::Plain,
    limit_name: LimitName::MaxTokens,
    refuses: &[],
    bill: Bill::Listed,
    sight: Sight::TextOnly,
};

/// All of them, in the order in which keys in the environment are looked for.
pub const CATALOG: &[Known] = &[
    Known {
        name: "anthropic",
        aliases: &["claude"],
        title: "Anthropic",
        wire: Wire::Anthropic,
        base_url: "https://api.anthropic.com",
        base_url_env: &["ANTHROPIC_BASE_URL"],
        key_env: &["ANTHROPIC_API_KEY"],
        model: Some("claude-sonnet-5"),
        model_env: &["ANTHROPIC_MODEL"],
        context_window: Some(1_000_000),
        prefixes: &["claude-"],
        sight: Sight::Pictures,
        ..USUAL
    },
    Known {
        name: "openai",
        title: "OpenAI",
        base_url: "https://api.openai.com/v1",
        base_url_env: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        key_env: &["OPENAI_API_KEY"],
        model: Some("gpt-5.5"),
        model_env: &["OPENAI_MODEL"],
        context_window: Some(1_050_000),
        prefixes: &["gpt-", "chatgpt-", "o1", "o3", "o4"],
        limit_name: LimitName::MaxCompletionTokens,
        sight: Sight::Pictures,
        ..USUAL
    },
    Known {
        name: "openrouter",
        title: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        key_env: &["OPENROUTER_API_KEY"],
        model: Some("anthropic/claude-sonnet-5"),
        context_window: Some(1_000_000),
        names: ModelNames::WithVendor,
        bill: Bill::Reported,
        sight: Sight::Pictures,
        ..USUAL
    },
    Known {
        name: "gemini",
        aliases: &["google"],
        title: "Gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        key_env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        model: Some("gemini-3.5-flash"),
        context_window: Some(1_048_576),
        prefixes: &["gemini-"],
        sight: Sight::Pictures,
        ..USUAL
    },
    Known {
        name: "groq",
        title: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        key_env: &["GROQ_API_KEY"],
        model: Some("openai/gpt-oss-120b"),
        context_window: Some(131_072),
        ..USUAL
    },
    Known {
        name: "mistral",
        title: "Mistral",
        base_url: "https://api.mistral.ai/v1",
        key_env: &["MISTRAL_API_KEY"],
        model: Some("mistral-large-latest"),
        context_window: Some(262_144),
        prefixes: &["mistral-", "ministral-", "magistral-", "devstral-", "codestral-", "pixtral-"],
        // It answers 422 to fields it does not know, and counts tokens without being asked.
        refuses: &["stream_options"],
        ..USUAL
    },
    Known {
        name: "deepseek",
        title: "DeepSeek",
        base_url: "https://api.deepseek.com",
        key_env: &["DEEPSEEK_API_KEY"],
        model: Some("deepseek-v4-flash"),
        context_window: Some(1_000_000),
        prefixes: &["deepseek-"],
        ..USUAL
    },
    Known {
        name: "xai",
        aliases: &["grok"],
        title: "xAI",
        base_url: "https://api.x.ai/v1",
        key_env: &["XAI_API_KEY"],
        model: Some("grok-4.3"),
        context_window: Some(1_000_000),
        prefixes: &["grok-"],
        ..USUAL
    },
    Known {
        name: "together",
        aliases: &["togetherai"],
        title: "Together",
        base_url: "https://api.together.xyz/v1",
        key_env: &["TOGETHER_API_KEY"],
        model: Some("openai/gpt-oss-120b"),
        context_window: Some(131_072),
        names: ModelNames::WithVendor,
        ..USUAL
    },
    Known {
        name: "fireworks",
        title: "Fireworks",
        base_url: "https://api.fireworks.ai/inference/v1",
        key_env: &["FIREWORKS_API_KEY"],
        model: Some("accounts/fireworks/models/glm-5p2"),
        ..USUAL
    },
    Known {
        name: "cerebras",
        title: "Cerebras",
        base_url: "https://api.cerebras.ai/v1",
        key_env: &["CEREBRAS_API_KEY"],
        model: Some("gpt-oss-120b"),
        context_window: Some(131_072),
        ..USUAL
    },
    Known {
        name: "moonshot",
        aliases: &["kimi", "moonshotai"],
        title: "Moonshot",
        base_url: "https://api.moonshot.ai/v1",
        key_env: &["MOONSHOT_API_KEY"],
        model: Some("kimi-k2.6"),
        context_window: Some(262_144),
        prefixes: &["kimi-", "moonshot-"],
        ..USUAL
    },
    Known {
        name: "zai",
        aliases: &["z.ai", "glm", "zhipu"],
        title: "Z.AI",
        base_url: "https://api.z.ai/api/paas/v4",
        key_env: &["ZAI_API_KEY", "Z_AI_API_KEY", "GLM_API_KEY", "ZHIPU_API_KEY"],
        model: Some("glm-4.7"),
        context_window: Some(204_800),
        prefixes: &["glm-"],
        ..USUAL
    },
    Known {
        name: "minimax",
        title: "MiniMax",
        wire: Wire::Anthropic,
        base_url: "https://api.minimax.io/anthropic",
        key_env: &["MINIMAX_API_KEY"],
        model: Some("MiniMax-M3"),
        prefixes: &["MiniMax-"],
        ..USUAL
    },
    Known {
        name: "deepinfra",
        title: "DeepInfra",
        base_url: "https://api.deepinfra.com/v1/openai",
        key_env: &["DEEPINFRA_API_KEY"],
        model: Some("deepseek-ai/DeepSeek-V4-Flash"),
        names: ModelNames::WithVendor,
        ..USUAL
    },
    Known {
        name: "nous",
        title: "Nous",
        base_url: "https://inference-api.nousresearch.com/v1",
        key_env: &["NOUS_API_KEY"],
        model: Some("anthropic/claude-sonnet-5"),
        context_window: Some(1_000_000),
        names: ModelNames::WithVendor,
        ..USUAL
    },
    Known {
        name: "ollama",
        title: "Ollama",
        base_url: "http://127.0.0.1:11434/v1",
        key: Key::Optional,
        ..USUAL
    },
    Known {
        name: "lmstudio",
        aliases: &["lm-studio"],
        title: "LM Studio",
        base_url: "http://127.0.0.1:1234/v1",
        key: Key::Optional,
        ..USUAL
    },
    Known {
        name: "llamacpp",
        aliases: &["llama.cpp", "llama-server"],
        title: "llama.cpp",
        base_url: "http://127.0.0.1:8080/v1",
        key: Key::Optional,
        ..USUAL
    },
    Known {
        name: "vllm",
        title: "vLLM",
        base_url: "http://127.0.0.1:8000/v1",
        key: Key::Optional,
        ..USUAL
    },
];

/// The provider of that name or alias.
pub fn known(name: &str) -> Option<&'static Known> {
    CATALOG.iter().find(|known| known.name == name || known.aliases.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_means_two_providers() {
        let names: Vec<_> =
            CATALOG.iter().flat_map(|known| known.aliases.iter().chain([&known.name])).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let keys: Vec<_> = CATALOG.iter().flat_map(|known| known.key_env).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    }

    #[test]
    fn every_entry_is_complete() {
        for known in CATALOG {
            assert!(!known.title.is_empty(), "{known:?}");
            let here = known.base_url.starts_with("http://127.0.0.1:");
            assert_eq!(here, known.key == Key::Optional, "{known:?}");
            assert!(here || known.base_url.starts_with("https://"), "{known:?}");
            assert_eq!(here, known.model.is_none(), "{known:?}");
            assert_eq!(here, known.key_env.is_empty(), "{known:?}");
        }
    }
}
