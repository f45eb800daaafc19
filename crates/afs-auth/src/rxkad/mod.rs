//! rxkad: security index 2 (`docs/protocol/rxkad.md`).
