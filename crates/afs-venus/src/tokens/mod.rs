//! Who the users of this machine are to the cells.

mod table;

pub(crate) use table::{Proof, TokenId, TokenTable};

use crate::api::TokenOwner;

/// For whom something is done; `None` is nobody in particular.
pub(crate) type Who = Option<TokenOwner>;
