//! rxgk: security index 4, and 6 as Linux speaks it (`docs/protocol/rxgk.md`).
