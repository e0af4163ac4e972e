//! One master's outbox and, while there is one, the connection that empties it.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll};

use super::link::{End, Wire};
use super::outbox::{Gate, Outbox};
use crate::protocol::votes::Fault;

/// The connection has one task, which polls it. Whoever puts into an idle outbox polls it too, with that task's waker:
/// a lone command then goes out at once, and only its answer wakes the task.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) outbox: Outbox,
    wire: Mutex<Option<Wire>>,
}

impl Post {
    pub(super) fn new() -> Self {
        Self { outbox: Outbox::new(), wire: Mutex::new(None) }
    }

    /// Sends what was put in, here and now if nothing is under way, else as soon as the connection's task can.
    pub(super) fn flush(&self) {
        let mut wire = match self.wire.try_lock() {
            Ok(wire) => wire,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody is at it, and may have looked into the outbox before we put something in.
            Err(TryLockError::WouldBlock) => return self.outbox.wake(),
        };
        match wire.as_mut() {
            Some(wire) if wire.is_calm() => wire.send_at_once(&self.outbox),
            _ => self.outbox.wake(),
        }
    }

    /// Lets the connection work until it ends. Dropped, it ends the connection.
    pub(super) async fn work(&self, wire: Wire) -> End {
        *self.wire.lock().unwrap_or_else(PoisonError::into_inner) = Some(wire);
        let plugged = Plugged(self);
        poll_fn(|cx| plugged.0.poll_work(cx)).await
    }

    fn poll_work(&self, cx: &mut Context<'_>) -> Poll<End> {
        match self.wire.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(wire) => wire.poll_drive(&self.outbox, cx),
            None => Poll::Ready(End::Closed("the connection was taken away".to_owned())),
        }
    }
}

/// A connection in its place.
struct Plugged<'a>(&'a Post);

/// The outbox is shut before the connection answers what was under way: an answer may ask for deletes, and nobody
/// would take them out.
impl Drop for Plugged<'_> {
    fn drop(&mut self) {
        let wire = self.0.wire.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.0.outbox.set_gate(Gate::Shut(Fault::NotConnected("the connection ended".into())));
        drop(wire);
    }
}
