//! Files and environment to typed values that know where they came from.
