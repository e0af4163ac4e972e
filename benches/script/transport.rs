//! The library's `transport`, as far as a call needs it.

#[path = "../../src/transport/ask.rs"]
mod ask;
#[path = "fred.rs"]
pub(crate) mod fred;
#[path = "../../src/transport/resources.rs"]
mod resources;
#[path = "../../src/transport/script.rs"]
pub(crate) mod script;

pub(crate) use ask::{Ask, Asker};
pub(crate) use resources::Resources;
