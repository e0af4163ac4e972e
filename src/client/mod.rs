//! Tasks, timers and guards around the decisions of [`protocol`](crate::protocol).

pub mod clock;

pub mod entropy;

pub mod holder;

pub mod error;

mod events;

mod stake;

mod after;

mod keeper;

mod queue;

mod lately;

mod turn;

mod standing;

mod shared;

mod handle;

mod drive;

mod wait;

mod watch;

pub mod guard;

pub mod release;

pub mod request;

mod using;

pub mod locker;

#[cfg(feature = "fred")]
pub mod builder;
