//! Platforms to be configured. They declare much and connect to nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use talaria_model::{Capabilities, ChatKind, Ids, RoleId, Secret};
use talaria_platform::{
    Ask, Bursts, ConnectError, Credential, Identity, Link, Need, Platform, Ports, Registration,
    Roles, Secrecy, Senders, SettingsError, Spec, Startup,
};

pub(crate) const ALL: [Registration; 3] =
    [Registration::of::<Desk>(), Registration::of::<Pigeon>(), Registration::of::<Owl>()];

const SPEC: Spec = Spec {
    name: "desk",
    label: "Desk",
    about: "A desk that is always there.",
    capabilities: Capabilities::PLAIN,
    note: None,
    bursts: Bursts::NONE,
    ids: Ids::Needed,
    identity: Identity::Operator,
    senders: Senders::ANY,
    startup: Startup::Always,
    asks: &[],
    guide: "",
};

/// Always there, nothing to configure.
struct Desk;

#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DeskSettings {
    /// What stands on it.
    plant: Option<String>,
}

impl Platform for Desk {
    const SPEC: Spec = SPEC;
    type Settings = DeskSettings;
    fn capabilities(_: &DeskSettings, _: ChatKind) -> Capabilities {
        Capabilities::PLAIN
    }
    async fn connect(_: DeskSettings, _: Ports) -> Result<Link, ConnectError> {
        Err(ConnectError::Unreachable { reason: "a desk".into() })
    }
}

/// Settings of every form a platform may come up with.
struct Pigeon;

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PigeonSettings {
    /// The token of the loft. It is printed on the ring.
    token: Secret,
    /// Where the loft is.
    #[serde(default = "loft")]
    #[schemars(url)]
    base_url: String,
    /// How it flies.
    #[serde(default)]
    route: Route,
    /// Where it may land.
    #[serde(default)]
    roofs: Vec<Roof>,
    /// What it carries along.
    #[serde(default)]
    bags: BTreeMap<String, Secret>,
    /// Keys to other lofts.
    #[serde(default)]
    spare_keys: Vec<Secret>,
}

fn loft() -> String {
    "https://loft.example/v1".into()
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
enum Route {
    /// By looking.
    Sight {
        /// How many times.
        #[serde(default)]
        looks: u8,
    },
    /// By knowing.
    Map {
        /// The password of the map.
        password: Secret,
    },
}

impl Default for Route {
    fn default() -> Self {
        Self::Sight { looks: 1 }
    }
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Roof {
    /// Its name.
    name: String,
    /// The key to it.
    #[serde(default)]
    key: Option<Secret>,
}

impl Platform for Pigeon {
    const SPEC: Spec = Spec {
        name: "pigeon",
        label: "Carrier pigeon",
        about: "Birds that carry messages.",
        identity: Identity::Anyone,
        senders: Senders { like: "alice", fit: |id| !id.contains('@') },
        startup: Startup::Configured,
        ..SPEC
    };
    type Settings = PigeonSettings;
    fn roles(settings: &PigeonSettings) -> Roles {
        let group = settings.roofs.iter().filter_map(|roof| RoleId::new(roof.name.as_str()).ok());
        Roles { group: group.collect(), ..Roles::default() }
    }
    fn capabilities(settings: &PigeonSettings, _: ChatKind) -> Capabilities {
        let looks = match &settings.route {
            Route::Sight { looks } => u32::from(*looks),
            Route::Map { password } => password.expose().len() as u32,
        };
        let keys = settings.roofs.iter().filter(|roof| roof.key.is_some() && !roof.name.is_empty());
        let text = talaria_model::TextLimit {
            max: looks + (keys.count() + settings.bags.len() + settings.spare_keys.len()) as u32,
            unit: talaria_model::Unit::Chars,
        };
        Capabilities { text, ..Capabilities::PLAIN }
    }
    fn validate(settings: &PigeonSettings) -> Result<(), SettingsError> {
        let refuse = |setting, hint| Err(SettingsError::unusable(setting, "does not fly", hint));
        match settings.token.expose() {
            token if token.starts_with("heavy") => refuse("token", &format!("{token} is heavy")),
            "lame" => refuse("spare_keys", "give it one"),
            _ => Ok(()),
        }
    }
    /// One ring for each leg.
    fn credentials(settings: &PigeonSettings) -> Vec<Credential> {
        let rings = settings.token.expose().split(',').map(|ring| ring.trim_matches([' ', '+']));
        Credential::each_of("token", rings.map(Secret::new).collect())
    }
    async fn connect(settings: PigeonSettings, _: Ports) -> Result<Link, ConnectError> {
        Err(ConnectError::Unreachable {
            reason: format!("{} {}", settings.base_url, settings.token.expose()),
        })
    }
}

/// A platform whose settings check themselves, and are indiscreet about it.
struct Owl;

#[derive(Clone, Deserialize, JsonSchema)]
struct OwlSettings {
    /// The password of the owl.
    password: Wisdom,
    /// When it is awake.
    #[serde(default)]
    awake: Awake,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "Secret")]
struct Wisdom;

impl TryFrom<String> for Wisdom {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with("wise") { Ok(Self) } else { Err(format!("{text} is not wise")) }
    }
}

#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Awake {
    #[default]
    Night,
    Day,
}

impl Platform for Owl {
    const SPEC: Spec = Spec {
        name: "owl",
        label: "Owl",
        about: "Comes at night.",
        asks: &[
            Ask {
                setting: "password",
                question: "What does it want to hear?",
                variable: "OWL_PASSWORD",
                secrecy: Secrecy::Secret,
                need: Need::Required,
            },
            Ask {
                setting: "awake",
                question: "When is it awake?",
                variable: "OWL_HOURS",
                secrecy: Secrecy::Open,
                need: Need::Optional,
            },
        ],
        ..Pigeon::SPEC
    };
    type Settings = OwlSettings;
    fn capabilities(_: &OwlSettings, _: ChatKind) -> Capabilities {
        Capabilities::PLAIN
    }
    async fn connect(settings: OwlSettings, _: Ports) -> Result<Link, ConnectError> {
        let OwlSettings { password: Wisdom, awake: Awake::Night | Awake::Day } = settings;
        Err(ConnectError::Unreachable { reason: "an owl".into() })
    }
}
