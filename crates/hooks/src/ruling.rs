//! What a hook that was asked wants.

use serde::Deserialize;
use serde_json::Value;

use crate::HookError;

/// What a hook that was asked wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It has nothing to say. Others are asked.
    Pass,
    /// It goes on as it is, and nobody else is asked.
    Allow,
    /// It must not be done.
    Deny {
        /// What the person is told.
        message: Option<String>,
    },
    /// It was done.
    Handled {
        /// What the person is told.
        message: Option<String>,
    },
    /// It goes on as something else.
    Rewrite(Rewrite),
    /// It is dropped without a word.
    Skip {
        /// Why.
        reason: Option<String>,
    },
}

/// What is put in the place of something. What is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// The text of a message.
    pub text: Option<String>,
    /// The name of a command.
    pub command: Option<String>,
    /// What stands behind it.
    pub arguments: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(alias = "action")]
    decision: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    text: Option<String>,
    #[serde(alias = "command")]
    command_name: Option<String>,
    #[serde(alias = "args")]
    raw_args: Option<String>,
}

impl Ruling {
    /// Reads what a hook answered that was asked. What is no object says nothing.
    pub fn read(answer: &Value) -> Result<Self, HookError> {
        if !answer.is_object() {
            return Ok(Self::Pass);
        }
        let said =
            Said::deserialize(answer).map_err(|error| HookError::Garbled(error.to_string()))?;
        let Said { decision, message, reason, text, command_name, raw_args } = said;
        let Some(decision) = decision else { return Ok(Self::Pass) };
        match decision.as_str() {
            "allow" => Ok(Self::Allow),
            "deny" => Ok(Self::Deny { message }),
            "handled" => Ok(Self::Handled { message }),
            "skip" => Ok(Self::Skip { reason }),
            "rewrite" => {
                let rewrite = Rewrite { text, command: command_name, arguments: raw_args };
                match rewrite == Rewrite::default() {
                    true => Err(HookError::Garbled("it rewrites nothing".into())),
                    false => Ok(Self::Rewrite(rewrite)),
                }
            }
            other => {
                let other: String = other.chars().take(40).collect();
                let known = "allow, deny, handled, rewrite or skip";
                Err(HookError::Garbled(format!("`{other}` is no decision; say {known}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_hooks_say() {
        let message = || Some("m".to_owned());
        let rewrite = |rewrite| Ok(Ruling::Rewrite(rewrite));
        let cases = [
            (json!(null), Ok(Ruling::Pass)),
            (json!("allow"), Ok(Ruling::Pass)),
            (json!({}), Ok(Ruling::Pass)),
            (json!({"note": 1}), Ok(Ruling::Pass)),
            (json!({"decision": "allow"}), Ok(Ruling::Allow)),
            (json!({"decision": "deny", "message": "m"}), Ok(Ruling::Deny { message: message() })),
            (json!({"decision": "handled"}), Ok(Ruling::Handled { message: None })),
            (json!({"action": "skip", "reason": "m"}), Ok(Ruling::Skip { reason: message() })),
            (
                json!({"action": "rewrite", "text": "m"}),
                rewrite(Rewrite { text: message(), ..Rewrite::default() }),
            ),
            (
                json!({"decision": "rewrite", "command_name": "m", "raw_args": ""}),
                rewrite(Rewrite {
                    command: message(),
                    arguments: Some(String::new()),
                    ..Rewrite::default()
                }),
            ),
        ];
        for (answer, ruling) in cases {
            assert_eq!(Ruling::read(&answer), ruling, "{answer}");
        }
        for answer in [
            json!({"decision": "maybe"}),
            json!({"decision": 7}),
            json!({"decision": "rewrite"}),
            json!({"decision": "deny", "message": ["m"]}),
        ] {
            assert!(matches!(Ruling::read(&answer), Err(HookError::Garbled(_))), "{answer}");
        }
    }
}
