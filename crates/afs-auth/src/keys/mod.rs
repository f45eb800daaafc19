//! The cell's keys and the files they are kept in.
