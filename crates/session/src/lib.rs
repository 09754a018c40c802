//! The heart, pure: what a session is and what it does with each event.
