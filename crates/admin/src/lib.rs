//! The local API that the CLI talks to, and the HTTP listeners.
