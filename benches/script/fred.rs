//! The library's `transport::fred`, as far as a call needs it, and a hand to turn it.

#[path = "../../src/transport/fred/call.rs"]
mod call;
#[path = "../../src/transport/fred/classify.rs"]
mod classify;

use ::fred::bytes_utils::Str;
use ::fred::clients::Client;
use ::fred::types::{Builder, Value};

use super::Ask;
use crate::protocol::fanout::Link;
use call::{Call, Scripts};

pub(crate) struct Caller {
    client: Client,
    scripts: Scripts,
    run_id: Str,
}

/// Opaque to the bench.
pub(crate) struct Filled(Call);

impl Caller {
    /// Of a client that is never connected.
    pub(crate) fn new() -> Option<Self> {
        let client = Builder::default_centralized().build().ok()?;
        let sha = || Str::from_static("0123456789abcdef0123456789abcdef01234567");
        let scripts = Scripts::Loaded(std::array::from_fn(|_| sha()));
        Some(Self { client, scripts, run_id: sha() })
    }

    /// Asks in a call that was used before, as is the rule: it has its buffers.
    pub(crate) fn filled(&self, asks: Vec<Ask>) -> Filled {
        let mut call = Call::new();
        call.prepare(&self.client, &self.scripts, &self.run_id, false);
        call.asks = asks;
        Filled(call)
    }

    pub(crate) fn prepare(&self, Filled(call): &mut Filled) {
        call.prepare(&self.client, &self.scripts, &self.run_id, false);
    }

    pub(crate) fn granted(count: usize) -> Value {
        Value::Array(vec![Value::Integer(1); count])
    }

    pub(crate) fn answer(&self, Filled(call): &mut Filled, reply: Value) -> Option<String> {
        call.answer(Ok(reply), Link(1))
    }
}
