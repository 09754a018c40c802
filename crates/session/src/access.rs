//! Who is heard, and what they may do: one decision, one table.
//!
//! Deny by default. `Access::footing` says on what footing somebody stands, by the first rule that
//! decides; `permitted` is the table of what each footing may do. Neither has a wildcard arm, so that
//! whatever is added is not let through until somebody has decided about it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use talaria_model::{ChatKind, Inbound, RoleId, Sender, SenderId, SenderKind};

use crate::budget::{Bounds, Budget, Budgets};
use crate::command::{QuickCommand, Who};
use crate::people::Person;
use crate::rules::Approvers;

pub use talaria_model::Reach;

/// Who an account listens to, and who may give which command there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Who its senders are known to be.
    pub surface: Surface,
    /// Who is heard in every chat.
    pub listed: BTreeSet<SenderId>,
    /// Who is heard on every account.
    pub general: BTreeSet<SenderId>,
    /// What differs in a direct chat.
    pub direct: RoomRules,
    /// What differs in every other chat.
    pub group: RoomRules,
    /// What becomes of somebody unknown who writes in a direct chat.
    pub strangers: Strangers,
    /// Whom the operator knows by name. That lets nobody in.
    pub people: BTreeMap<SenderId, Arc<Person>>,
    /// What may be spent by those for whom no role says it.
    pub budgets: Budgets,
}

/// What applies in one kind of room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomRules {
    /// Whether anybody is heard, and whether everybody is.
    pub policy: Policy,
    /// Who is heard only here.
    pub listed: BTreeSet<SenderId>,
    /// The roles on the platform whose people are heard here.
    pub roles: BTreeSet<RoleId>,
    /// Who may give which command.
    pub tiers: Arc<Tiers>,
}

/// Who the senders on an account are known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// The operator: the platform has authenticated them before an event leaves it.
    Own,
    /// Whoever can write there.
    Platform,
}

/// Whether anybody is heard in a kind of room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// Whoever can write there. Only an explicit word of the operator leads to it.
    Open,
    /// Those who are named: on a list, by a role, by pairing.
    #[default]
    Named,
    /// Nobody.
    Disabled,
}

/// What becomes of somebody unknown who writes in a direct chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strangers {
    /// They get a code with which the operator can let them in.
    Pair,
    /// Nothing.
    #[default]
    Ignore,
}

/// Where something is said, as far as policy is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// One person and us.
    Direct,
    /// Everywhere else.
    Group,
}

impl Room {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Direct, Self::Group];

    /// What a kind of chat is. Only what is surely direct is.
    pub const fn of(kind: ChatKind) -> Self {
        match kind {
            ChatKind::Dm => Self::Direct,
            ChatKind::Group | ChatKind::Channel | ChatKind::Thread | ChatKind::Forum => Self::Group,
        }
    }

    /// Whether a pairing reaches there.
    pub const fn is_within(self, reach: Reach) -> bool {
        match (reach, self) {
            (Reach::Direct, Self::Direct) | (Reach::Everywhere, Self::Direct | Self::Group) => true,
            (Reach::Direct, Self::Group) => false,
        }
    }
}

/// Who asks to be heard, and what is known of them.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// By the id that never changes. Nothing else of a sender counts.
    pub sender: &'a Sender,
    /// Their roles on the platform, for which that vouches.
    pub roles: &'a [RoleId],
    /// Where.
    pub room: Room,
    /// Whether they were let in by pairing, and where.
    pub grant: Option<Reach>,
}

impl<'a> Caller<'a> {
    /// Who caused an event.
    pub fn of(inbound: &'a Inbound, grant: Option<Reach>) -> Self {
        Self {
            sender: &inbound.from,
            roles: &inbound.source.roles,
            room: Room::of(inbound.to.chat.kind),
            grant,
        }
    }
}

/// On what footing somebody stands with an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Footing {
    /// Nobody is heard there.
    Nobody,
    /// No rule lets them in.
    Stranger,
    /// Let in because everybody is.
    Guest,
    /// Let in by pairing.
    Paired,
    /// Named by the operator.
    Listed,
    /// May give every command.
    Admin,
    /// Has authenticated as the operator.
    Operator,
}

impl Footing {
    /// All of them, the lowest first.
    pub const ALL: [Self; 7] = [
        Self::Nobody,
        Self::Stranger,
        Self::Guest,
        Self::Paired,
        Self::Listed,
        Self::Admin,
        Self::Operator,
    ];

    /// As people are told.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Stranger => "a stranger",
            Self::Guest => "a guest",
            Self::Paired => "a paired guest",
            Self::Listed => "on the list",
            Self::Admin => "an administrator",
            Self::Operator => "the operator",
        }
    }
}

/// The rule that decided on a footing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nobody is heard in such a chat.
    Disabled,
    /// The platform has authenticated the operator.
    Authenticated,
    /// The account's list.
    List,
    /// The account's list for such a chat.
    RoomList,
    /// A role that the account names, vouched for by the platform.
    Role,
    /// The list for all accounts.
    General,
    /// A pairing that was approved.
    Pairing,
    /// Everybody is let in.
    Everyone,
    /// No rule lets the sender in.
    None,
}

impl Rule {
    /// Whether the operator has named those whom it lets in: by their id or by a role.
    pub const fn names(self) -> bool {
        match self {
            Self::List | Self::RoomList | Self::Role | Self::General => true,
            Self::Disabled | Self::Authenticated | Self::Pairing | Self::Everyone | Self::None => {
                false
            }
        }
    }

    /// As it is recorded and told.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Disabled => "nobody is heard in such a chat: its policy is disabled",
            Self::Authenticated => "the platform has authenticated the operator",
            Self::List => "the sender is on the account's allow list",
            Self::RoomList => "the sender is on the account's list for such chats",
            Self::Role => "the sender has a role that the account lets in",
            Self::Pairing => "the sender was let in by pairing",
            Self::General => "the sender is on the list for all accounts",
            Self::Everyone => "everybody is let in",
            Self::None => "the sender is on no list and not paired",
        }
    }
}

/// Who may give which command in a kind of room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tiers {
    /// Who may give every command, if they are let in.
    pub admins: BTreeSet<SenderId>,
    /// What everybody else may give as soon as an administrator is named, by name. `/help` and
    /// `/whoami` always.
    pub others: BTreeSet<String>,
    /// Who may give every command as long as nobody is named.
    pub unnamed: Unnamed,
}

/// Who is an administrator as long as nobody is named as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unnamed {
    /// Whom the operator has named otherwise: on a list or by a role. Not who just came, nor who was let in
    /// by a code.
    #[default]
    Listed,
    /// Whoever is heard.
    Everyone,
}

impl Tiers {
    /// Whether commands are kept from those who are not administrators.
    pub fn gating(&self) -> Gating {
        if self.admins.is_empty() { Gating::Off } else { Gating::On }
    }
}

/// Whether commands are kept from those who are not administrators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gating {
    /// Nobody is named: `Tiers::unnamed` says who may give every command.
    Off,
    /// Somebody is.
    On,
}

/// What somebody may do, as it was at the moment it was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Who the account's senders are known to be.
    pub surface: Surface,
    /// Where.
    pub room: Room,
    /// On what footing.
    pub footing: Footing,
    /// By which rule.
    pub rule: Rule,
    /// Who may give which command there.
    pub tiers: Arc<Tiers>,
    /// Who they are, where the operator knows them by name.
    pub person: Option<Arc<Person>>,
    /// What may be spent on them.
    pub bounds: Bounds,
}

/// Commands that tell people what they may do are everybody's, and those of which the table itself says
/// to whom they are granted, once it is known whose turn it is.
const ALWAYS: [&str; 5] = ["help", "whoami", "stop", "approve", "deny"];

impl Authority {
    /// Nobody's.
    pub fn none() -> Self {
        Self {
            surface: Surface::Platform,
            room: Room::Group,
            footing: Footing::Nobody,
            rule: Rule::None,
            tiers: Arc::default(),
            person: None,
            bounds: Bounds::NOTHING,
        }
    }

    /// What the table says of a deed.
    pub fn permits(&self, deed: Deed) -> Permission {
        permitted(self.surface, deed, self.footing, self.room)
    }

    /// Whether a deed is granted outright.
    pub fn may(&self, deed: Deed) -> bool {
        self.permits(deed) == Permission::Granted
    }

    /// Whether they may give every command.
    pub fn is_admin(&self) -> bool {
        self.footing >= Footing::Admin
    }

    /// Whether they may give the command of this name.
    pub fn may_give(&self, name: &str, who: Who) -> bool {
        ALWAYS.contains(&name) && self.may(Deed::Speak) || self.is_granted(name, who)
    }

    /// Whether they may stop a turn.
    pub fn may_stop(&self, whose: Whose) -> bool {
        match whose {
            Whose::Own => self.may(Deed::Stop),
            Whose::Anothers => self.is_granted("stop", Who::Anyone),
        }
    }

    fn is_granted(&self, name: &str, who: Who) -> bool {
        let is_named = self.tiers.others.contains(name);
        let by_role = self.person.as_ref().is_some_and(|person| person.may_give(name));
        match self.permits(Deed::Command(who, self.tiers.gating())) {
            Permission::Granted => true,
            Permission::IfNamed => is_named,
            Permission::ByRole => by_role,
            Permission::IfNamedOrByRole => is_named || by_role,
            Permission::Refused => false,
        }
    }

    /// Whether a message may be sent to the destination of this name for them. A role that names
    /// destinations means these and no others, whoever has it.
    pub fn may_send_to(&self, destination: &str) -> bool {
        let granted = self.person.as_ref().and_then(|person| person.destinations());
        match self.permits(Deed::SendElsewhere) {
            Permission::Granted => granted.is_none_or(|names| names.contains(destination)),
            Permission::ByRole => granted.is_some_and(|names| names.contains(destination)),
            Permission::IfNamed | Permission::IfNamedOrByRole | Permission::Refused => false,
        }
    }

    /// Whether they may give a command from the configuration. That says itself who may.
    pub fn may_run(&self, quick: &QuickCommand) -> bool {
        match quick.who {
            Who::Anyone => self.may(Deed::Speak),
            Who::Admin => self.may_give(&quick.name, quick.who),
        }
    }
}

/// Something that somebody may or may not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Say something that is answered.
    Speak,
    /// Stop their own turn. For another's they have to be able to give the command.
    Stop,
    /// Take back turns, with what came of them.
    TakeBack(Whose),
    /// Answer a question of the agent.
    Answer(Whose),
    /// Let a call of the agent have its effect, as far as the configuration says who may.
    Approve(Whose, Approvers),
    /// Keep one from it.
    Deny(Whose, Approvers),
    /// Give a command. Those that change the gateway are an administrator's.
    Command(Who, Gating),
    /// Let somebody in, or put them out again.
    LetIn,
    /// Have whoever they let in heard in rooms like this one.
    LetInto,
    /// Be given a code with which the operator can let them in.
    AskToPair,
    /// Be let in by a code that an administrator has handed on.
    Redeem,
    /// Search what was said on every account of the operator.
    ReadOthers,
    /// Have a message sent to another chat, of those that the operator has named.
    SendElsewhere,
    /// Disconnect any account or connect it again, those where only the operator can be among them.
    PauseAny,
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 29] = [
        Self::Speak,
        Self::Stop,
        Self::TakeBack(Whose::Own),
        Self::TakeBack(Whose::Anothers),
        Self::Answer(Whose::Own),
        Self::Answer(Whose::Anothers),
        Self::Approve(Whose::Own, Approvers::Requester),
        Self::Approve(Whose::Own, Approvers::Admins),
        Self::Approve(Whose::Own, Approvers::Both),
        Self::Approve(Whose::Anothers, Approvers::Requester),
        Self::Approve(Whose::Anothers, Approvers::Admins),
        Self::Approve(Whose::Anothers, Approvers::Both),
        Self::Deny(Whose::Own, Approvers::Requester),
        Self::Deny(Whose::Own, Approvers::Admins),
        Self::Deny(Whose::Own, Approvers::Both),
        Self::Deny(Whose::Anothers, Approvers::Requester),
        Self::Deny(Whose::Anothers, Approvers::Admins),
        Self::Deny(Whose::Anothers, Approvers::Both),
        Self::Command(Who::Anyone, Gating::Off),
        Self::Command(Who::Anyone, Gating::On),
        Self::Command(Who::Admin, Gating::Off),
        Self::Command(Who::Admin, Gating::On),
        Self::LetIn,
        Self::LetInto,
        Self::AskToPair,
        Self::Redeem,
        Self::ReadOthers,
        Self::SendElsewhere,
        Self::PauseAny,
    ];

    /// As the documentation names it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Speak => "speak to the agent",
            Self::Stop => "stop their own turn",
            Self::TakeBack(Whose::Own) => "take back their own turns with `/undo`",
            Self::TakeBack(Whose::Anothers) => "take back another's turns",
            Self::Answer(Whose::Own) => "answer a question put to them",
            Self::Answer(Whose::Anothers) => "answer a question put to somebody else",
            Self::Approve(Whose::Own, Approvers::Requester) => {
                "approve what they asked for, by `requester`"
            }
            Self::Approve(Whose::Own, Approvers::Admins) => {
                "approve what they asked for, by `admins`"
            }
            Self::Approve(Whose::Own, Approvers::Both) => "approve what they asked for, by `both`",
            Self::Approve(Whose::Anothers, Approvers::Requester) => {
                "approve what another asked for, by `requester`"
            }
            Self::Approve(Whose::Anothers, Approvers::Admins) => {
                "approve what another asked for, by `admins`"
            }
            Self::Approve(Whose::Anothers, Approvers::Both) => {
                "approve what another asked for, by `both`"
            }
            Self::Deny(Whose::Own, Approvers::Requester) => {
                "deny what they asked for, by `requester`"
            }
            Self::Deny(Whose::Own, Approvers::Admins) => "deny what they asked for, by `admins`",
            Self::Deny(Whose::Own, Approvers::Both) => "deny what they asked for, by `both`",
            Self::Deny(Whose::Anothers, Approvers::Requester) => {
                "deny what another asked for, by `requester`"
            }
            Self::Deny(Whose::Anothers, Approvers::Admins) => {
                "deny what another asked for, by `admins`"
            }
            Self::Deny(Whose::Anothers, Approvers::Both) => {
                "deny what another asked for, by `both`"
            }
            Self::Command(Who::Anyone, Gating::Off) => {
                "give a command, where no administrator is named"
            }
            Self::Command(Who::Anyone, Gating::On) => "give a command, where one is named",
            Self::Command(Who::Admin, Gating::Off) => {
                "give an administrator's command, where none is named"
            }
            Self::Command(Who::Admin, Gating::On) => {
                "give an administrator's command, where one is named"
            }
            Self::LetIn => "let somebody in with `/pair`",
            Self::LetInto => "have whom they let in be heard in such chats",
            Self::AskToPair => "get a pairing code",
            Self::Redeem => "be let in by a code",
            Self::ReadOthers => "search the operator's other conversations",
            Self::SendElsewhere => "have a message sent to a destination",
            Self::PauseAny => "pause and resume any account with `/platforms`",
        }
    }
}

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Their own.
    Own,
    /// Somebody else's.
    Anothers,
}

/// What the table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// They may.
    Granted,
    /// They may if the configuration names the command for everybody.
    IfNamed,
    /// They may if their role in the configuration grants it.
    ByRole,
    /// They may if either is so.
    IfNamedOrByRole,
    /// They may not.
    Refused,
}

/// The table.
pub const fn permitted(surface: Surface, deed: Deed, footing: Footing, room: Room) -> Permission {
    use Footing::{Admin, Guest, Listed, Nobody, Operator, Paired, Stranger};
    use Permission::{ByRole, Granted, IfNamed, IfNamedOrByRole, Refused};
    match deed {
        Deed::Speak
        | Deed::Stop
        | Deed::TakeBack(Whose::Own)
        | Deed::Answer(Whose::Own)
        // Nobody has to have done what they asked for.
        | Deed::Deny(Whose::Own, Approvers::Requester | Approvers::Admins | Approvers::Both)
        | Deed::Command(Who::Anyone, Gating::Off) => match footing {
            Operator | Admin | Listed | Paired | Guest => Granted,
            Stranger | Nobody => Refused,
        },
        // Who came in with everybody may be anybody.
        Deed::Approve(Whose::Own, Approvers::Requester | Approvers::Both) => match footing {
            Operator | Admin | Listed | Paired => Granted,
            Guest | Stranger | Nobody => Refused,
        },
        // An answer is given in the name of the one who was asked.
        Deed::Answer(Whose::Anothers)
        | Deed::Approve(Whose::Anothers, Approvers::Requester)
        | Deed::Deny(Whose::Anothers, Approvers::Requester) => match footing {
            Operator | Admin | Listed | Paired | Guest | Stranger | Nobody => Refused,
        },
        // Nobody brings others where they have no say themselves.
        Deed::LetInto
        | Deed::TakeBack(Whose::Anothers)
        | Deed::Approve(Whose::Own, Approvers::Admins)
        | Deed::Approve(Whose::Anothers, Approvers::Admins | Approvers::Both)
        | Deed::Deny(Whose::Anothers, Approvers::Admins | Approvers::Both) => match footing {
            Operator | Admin => Granted,
            Listed | Paired | Guest | Stranger | Nobody => Refused,
        },
        // Who came in with everybody has no role here, whatever the configuration calls them.
        Deed::Command(Who::Anyone | Who::Admin, Gating::On) => match footing {
            Operator | Admin => Granted,
            Listed | Paired => IfNamedOrByRole,
            Guest => IfNamed,
            Stranger | Nobody => Refused,
        },
        // Whoever was named is an administrator there, and nobody else becomes one by a list of commands.
        Deed::Command(Who::Admin, Gating::Off) => match footing {
            Operator | Admin | Listed => Granted,
            Paired => ByRole,
            Guest | Stranger | Nobody => Refused,
        },
        // In a chat of several people everybody would read the code.
        Deed::LetIn => match (footing, room) {
            (Operator | Admin, Room::Direct) => Granted,
            (Operator | Admin, Room::Group)
            | (Listed | Paired | Guest | Stranger | Nobody, Room::Direct | Room::Group) => Refused,
        },
        Deed::AskToPair | Deed::Redeem => match (surface, footing, room) {
            (Surface::Platform, Stranger, Room::Direct) => Granted,
            (Surface::Platform, Stranger, Room::Group)
            | (Surface::Own, Stranger, Room::Direct | Room::Group)
            | (
                Surface::Own | Surface::Platform,
                Operator | Admin | Listed | Paired | Guest | Nobody,
                Room::Direct | Room::Group,
            ) => Refused,
        },
        // Whoever is an administrator of one account is nobody on another.
        Deed::ReadOthers | Deed::PauseAny => match (surface, footing) {
            (Surface::Own, Operator) => Granted,
            (Surface::Platform, Operator)
            | (
                Surface::Own | Surface::Platform,
                Admin | Listed | Paired | Guest | Stranger | Nobody,
            ) => Refused,
        },
        // Others read it in the operator's name.
        Deed::SendElsewhere => match footing {
            Operator | Admin => Granted,
            Listed | Paired => ByRole,
            Guest | Stranger | Nobody => Refused,
        },
    }
}

impl Access {
    /// An account on which nobody is heard but those who come to be named.
    pub fn closed() -> Self {
        Self {
            surface: Surface::Platform,
            listed: BTreeSet::new(),
            general: BTreeSet::new(),
            direct: RoomRules::default(),
            group: RoomRules::default(),
            strangers: Strangers::default(),
            people: BTreeMap::new(),
            budgets: Budgets::default(),
        }
    }

    /// An account on which every sender is the operator.
    pub fn own() -> Self {
        Self { surface: Surface::Own, ..Self::closed() }
    }

    /// An account on which these are heard everywhere.
    pub fn only(listed: impl IntoIterator<Item = SenderId>) -> Self {
        Self { listed: listed.into_iter().collect(), ..Self::closed() }
    }

    /// An account on which everybody is heard.
    pub fn everyone() -> Self {
        let open = RoomRules { policy: Policy::Open, ..RoomRules::default() };
        Self { direct: open.clone(), group: open, ..Self::closed() }
    }

    /// What differs in a kind of room.
    pub fn of(&self, room: Room) -> &RoomRules {
        match room {
            Room::Direct => &self.direct,
            Room::Group => &self.group,
        }
    }

    /// What somebody may do.
    pub fn authority(&self, caller: Caller<'_>) -> Authority {
        let (footing, rule) = self.footing(caller);
        let person = self.person(&caller.sender.id).cloned();
        Authority {
            surface: self.surface,
            room: caller.room,
            footing,
            rule,
            tiers: self.of(caller.room).tiers.clone(),
            bounds: self.bounds(footing, person.as_deref()),
            person,
        }
    }

    /// Whether somebody may let others in who are then heard as far as this.
    pub fn may_let_in(
        &self,
        sender: &Sender,
        roles: &[RoleId],
        grant: Option<Reach>,
        reach: Reach,
    ) -> bool {
        let may = |deed, room| self.authority(Caller { sender, roles, room, grant }).may(deed);
        let mut heard_in = Room::ALL.into_iter().filter(|room| room.is_within(reach));
        may(Deed::LetIn, Room::Direct) && heard_in.all(|room| may(Deed::LetInto, room))
    }

    /// Who a sender is, where the operator knows them by name.
    pub fn person(&self, sender: &SenderId) -> Option<&Arc<Person>> {
        self.people.get(sender)
    }

    /// What may be spent on somebody. The operator, on surfaces of their own, is limited by nothing but a
    /// role that they gave themselves.
    fn bounds(&self, footing: Footing, person: Option<&Person>) -> Bounds {
        let of_role = person.and_then(|person| person.role.as_ref()).and_then(|role| role.budget);
        let usual = match (footing, person) {
            (Footing::Operator, _) => Budget::NONE,
            (Footing::Admin | Footing::Listed, _)
            | (Footing::Paired | Footing::Guest | Footing::Stranger | Footing::Nobody, Some(_)) => {
                self.budgets.person
            }
            (Footing::Paired | Footing::Guest | Footing::Stranger | Footing::Nobody, None) => {
                self.budgets.guest
            }
        };
        let chat = match self.surface {
            Surface::Own => Budget::NONE,
            Surface::Platform => self.budgets.chat,
        };
        Bounds { own: of_role.unwrap_or(usual), chat }
    }

    /// On what footing somebody stands, by the first rule that decides. By the sender's immutable id,
    /// by what the platform itself says of a role, or by what the operator approved; never by a name.
    pub fn footing(&self, caller: Caller<'_>) -> (Footing, Rule) {
        let here = self.of(caller.room);
        let id = &caller.sender.id;
        let (footing, rule) = match (here.policy, self.surface) {
            (Policy::Disabled, Surface::Own | Surface::Platform) => {
                return (Footing::Nobody, Rule::Disabled);
            }
            (Policy::Open | Policy::Named, Surface::Own) => {
                return (Footing::Operator, Rule::Authenticated);
            }
            (Policy::Open | Policy::Named, Surface::Platform) => {
                if self.listed.contains(id) {
                    (Footing::Listed, Rule::List)
                } else if here.listed.contains(id) {
                    (Footing::Listed, Rule::RoomList)
                } else if caller.roles.iter().any(|role| here.roles.contains(role)) {
                    (Footing::Listed, Rule::Role)
                } else if self.general.contains(id) {
                    (Footing::Listed, Rule::General)
                } else if caller.grant.is_some_and(|reach| caller.room.is_within(reach)) {
                    (Footing::Paired, Rule::Pairing)
                } else if here.policy == Policy::Open {
                    (Footing::Guest, Rule::Everyone)
                } else {
                    return (Footing::Stranger, Rule::None);
                }
            }
        };
        match caller.sender.kind {
            SenderKind::Person => {}
            // Several people may speak in the name of a chat, and whoever can make a program say something speaks
            // through it, so neither is anybody in particular.
            SenderKind::Chat | SenderKind::Bot => return (Footing::Guest, rule),
        }
        let is_admin = match here.tiers.gating() {
            Gating::Off => match here.tiers.unnamed {
                Unnamed::Listed => footing == Footing::Listed,
                Unnamed::Everyone => true,
            },
            Gating::On => here.tiers.admins.contains(id),
        };
        (if is_admin { Footing::Admin } else { footing }, rule)
    }

    /// Whether a person of the configuration may give this command in such a chat here, too, by what the
    /// operator has written about one of their ids. What only the platform or a pairing could tell of them does
    /// not count, and nobody who speaks elsewhere is the operator.
    pub fn lets_give(&self, person: &Person, room: Room, command: &str, who: Who) -> bool {
        let theirs = self.people.iter().filter(|(_, known)| known.name == person.name);
        self.surface == Surface::Platform
            && theirs.map(|(id, _)| Sender::new(id.clone())).any(|sender| {
                let caller = Caller { sender: &sender, roles: &[], room, grant: None };
                self.authority(caller).may_give(command, who)
            })
    }

    /// Whether its operator may read along on all their own accounts.
    pub fn reads_others(&self) -> bool {
        let operator = permitted(self.surface, Deed::ReadOthers, Footing::Operator, Room::Direct);
        operator == Permission::Granted
    }
}

#[cfg(test)]
mod tests;
