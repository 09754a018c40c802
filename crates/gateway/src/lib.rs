//! The shell: intake, lanes, turns, delivery, supervision. Tasks are spawned only here.
