//! Files and environment to typed values that know where they came from.
//!
//! Built-in defaults ← `config.yaml` ← `.env` ← environment become one [`Config`]. One JSON Schema,
//! made from the declarations in `settings` and from each platform's registration, drives everything
//! else: reading and checking ([`load`]), printing without secrets ([`Loaded::show`],
//! [`Loaded::explain`]), comparing ([`Loaded::reload`]), and the documentation ([`schema`],
//! [`reference()`]).
//!
//! This crate knows registrations and never a platform. It reads two files and asks nothing of the
//! network; what it has loaded never changes, so a bad file cannot replace a good running one.
#![forbid(unsafe_code)]

mod access;
mod apart;
mod approvals;
mod conventions;
mod conversations;
mod destinations;
mod dotenv;
mod edit;
mod environment;
mod finding;
mod fit;
mod gating;
mod known;
mod layers;
mod load;
mod nearest;
mod people;
mod reference;
mod rules;
mod schema;
mod secrets;
mod settings;
mod shape;
mod show;
mod single;
mod source;
mod speaking;
mod telemetry;
mod units;
mod voice;
mod yaml;

pub use access::{
    AccessSettings, AccountAccess, DmPolicy, Doors, GroupPolicy, RoomAccess, UnauthorizedDm,
};
pub use apart::apart;
pub use approvals::{ApprovalMode, ApprovalSettings, ApprovedBy, AskBefore, ProgramSettings};
pub use conversations::{
    AdminsUnlessNamed, AfterStop, CommandSettings, CompressionSettings, PriceSettings,
    PrivacySettings, QuickSettings, QuickWho, ResetMode, ResetOverride, ResetSettings,
    SessionSettings, words,
};
pub use destinations::DestinationSettings;
pub use dotenv::put_variable;
pub use edit::{Put, Unwritable, put_in_account};
pub use environment::{Environment, Variable};
pub use finding::{Finding, Origin, Place, Problems};
pub use gating::Ungated;
pub use known::variable;
pub use load::{Change, Loaded, load};
pub use people::{BudgetSettings, BudgetsSettings, PersonSettings, RoleSettings};
pub use reference::{reference, settings_table};
pub use schema::{Applies, schema};
pub use settings::{
    AccountSettings, AgentSettings, AllowBots, BusyInput, Config, EditedMessages, FileSettings,
    HearingSettings, HttpSettings, LimitSettings, LogFormat, LogLevel, LogSettings,
    NetworkSettings, ProviderSettings, ReadBystanders, Thinking, Wire,
};
pub use show::{Explanation, Line, Overridden, SettingExplanation, Shown, UnknownSetting};
pub use source::Sources;
pub use speaking::{
    DisplayOverride, DisplaySettings, ReplyToMode, StreamingOverride, StreamingSettings,
    ToolProgress, TransportSetting,
};
pub use telemetry::TelemetrySettings;
pub use units::{ByteSize, Dollars, PriceError, SizeError};
pub use voice::{SpeakSettings, SpeechFormat, SpokenReplies, TranscribeSettings, VoiceSettings};
