//! Faults on the way.

use crate::testbed::fault::{Fault, Outcome};
use crate::testbed::flow::{Direction, Flow};
use crate::testbed::proxy::Proxy;

impl Fault {
    /// Whether it happens on the way to the master, where a [`Proxy`] can put it in place.
    pub const fn is_on_the_way(&self) -> bool {
        matches!(
            self,
            Self::Cut
                | Self::Join
                | Self::Slow(_)
                | Self::LoseReplies
                | Self::LoseRequests
                | Self::Blackhole
                | Self::Reset
                | Self::Refuse
        )
    }

    /// What it makes of requests and replies.
    const fn flows(&self) -> Option<(Flow, Flow)> {
        let open = Flow::new();
        Some(match self {
            Self::Cut => (open.held(), open.held()),
            Self::Join => (open, open),
            Self::Slow(time) => (open.delayed(*time), open.delayed(*time)),
            Self::LoseReplies => (open, open.dropped()),
            Self::LoseRequests => (open.dropped(), open),
            Self::Blackhole => (open.dropped(), open.dropped()),
            _ => return None,
        })
    }
}

impl Proxy {
    /// Puts a fault in place, in the stead of the one before.
    pub async fn inject(&self, fault: Fault) -> Outcome {
        match (fault, fault.flows()) {
            (_, Some((requests, replies))) => {
                self.set(Direction::ToMaster, requests);
                self.set(Direction::ToClient, replies);
            }
            (Fault::Reset, None) => self.reset(),
            (Fault::Refuse, None) => self.refuse().await,
            _ => return Outcome::skipped("not a fault on the way"),
        }
        Outcome::Installed
    }

    /// Takes a fault away again: everything passes.
    pub async fn undo(&self, fault: Fault) -> Outcome {
        if matches!(fault, Fault::Join | Fault::Reset) || !fault.is_on_the_way() {
            return Outcome::skipped("nothing to undo");
        }
        self.clear().await;
        Outcome::Installed
    }
}
