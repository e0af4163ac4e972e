//! What people do with locks: wait, hold to the last moment, extend, give up anywhere, drop everything.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use quorlock::{AcquireError, ExtendError, Guard, Hold, LockRequest, Redlock, Released, UsingError, Why};
use tokio::time::{sleep, timeout};

use crate::dice::Dice;
use crate::promise::Promise;
use crate::sights::Sight;
use crate::time::{MS, MachineClock, US};
use crate::world::{World, locked};

/// Where users of one client work.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) client: usize,
    pub(crate) redlock: Redlock,
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) clock: Arc<MachineClock>,
    pub(crate) ttl: u64,
    pub(crate) timeout: u64,
    pub(crate) resources: usize,
    /// Nothing keeps the machine from its turns.
    pub(crate) steady: bool,
    /// What the drift allows in a ttl.
    pub(crate) drift: u64,
}

/// A guard whose end is in the book, however it comes.
struct Held {
    desk: Desk,
    holder: Bytes,
    guard: Option<Guard>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.guard.is_some() {
            self.desk.saw(Sight::GuardDropped);
        }
        self.desk.given_back(&self.holder);
    }
}

impl Held {
    fn guard(&self) -> &Guard {
        self.guard.as_ref().expect("not released yet")
    }

    async fn release(mut self) {
        self.desk.given_back(&self.holder);
        let Some(guard) = self.guard.take() else { return };
        match guard.release().await {
            Released::AlreadyLost(_) => return self.desk.saw(Sight::AlreadyLost),
            Released::Freed { .. } => self.desk.saw(Sight::Freed),
            Released::Lingering { .. } => self.desk.saw(Sight::Lingering),
        }
        locked(&self.desk.world).book.on_released(&self.holder);
    }
}

impl Desk {
    pub(crate) fn saw(&self, sight: Sight) {
        locked(&self.world).saw(sight);
    }

    fn given_back(&self, holder: &Bytes) {
        let now = self.clock.real();
        let world = &mut *locked(&self.world);
        let short = world.short(holder);
        world.trace.tell(now, || format!("c{} ends {short}", self.client));
        world.book.on_given_back(holder, now, &mut world.sights);
    }

    fn granted(&self, hold: &Hold, capped: bool) -> Bytes {
        let holder = Bytes::copy_from_slice(hold.holder().as_bytes());
        // Before the world is looked at: a hold that turns out to be lost gives itself back.
        let token = self.clock.unseen(|| hold.fence().ok());
        let now = self.clock.real();
        let world = &mut *locked(&self.world);
        let short = world.short(&holder);
        world.trace.tell(now, || {
            format!("c{} holds {:?} by {short}", self.client, Bytes::copy_from_slice(hold.resource()))
        });
        world.sights.saw(Sight::Won);
        world.book.on_granted(hold, token, capped, now, &mut world.sights);
        holder
    }

    fn held(&self, guard: Guard, capped: bool) -> Held {
        let holder = self.granted(&guard.hold(), capped);
        Held { desk: self.clone(), holder, guard: Some(guard) }
    }

    fn told(&self, error: &AcquireError) {
        self.saw(match error {
            AcquireError::Contended(_) => Sight::Contended,
            AcquireError::NoQuorum(_) => Sight::NoQuorum,
            AcquireError::Closed => Sight::RefusedWhenClosed,
            _ => Sight::TooLate,
        });
    }

    /// Works until it is dropped.
    pub(crate) async fn work(self, mut dice: Dice) {
        loop {
            let resource = format!("order:{}", dice.index(self.resources));
            match dice.below(12) {
                0..3 => self.snipe(&resource, &mut dice).await,
                3 => self.using(&resource, &mut dice).await,
                _ => self.hold(&resource, &mut dice).await,
            }
            nap(dice.below(self.ttl / 6)).await;
        }
    }

    fn request(&self, resource: &str, dice: &mut Dice) -> (LockRequest, bool) {
        let ttl = if dice.one_in(3) { self.ttl - self.ttl / 8 } else { self.ttl };
        let request = if self.resources > 1 && dice.one_in(3) {
            self.saw(Sight::Several);
            // In any order, so that lists meet crosswise.
            self.redlock.lock_all([resource, "order:0", "order:1"])
        } else {
            self.redlock.lock(resource)
        };
        let mut request = request.ttl(Duration::from_nanos(ttl)).label(format!("c{}", self.client));
        if dice.one_in(3) {
            request = request.fenced();
        }
        let capped = dice.one_in(3);
        if !capped && dice.one_in(2) {
            request = request.no_renewal();
        }
        if capped {
            // Around a renewal, which heals what is missing, or any time.
            let slots = 16 * dice.between(1, 4) - dice.below(4);
            let renewal = ttl / 48 * slots + dice.below(self.timeout);
            let longest = if dice.one_in(3) { dice.between(self.ttl / 4, 2 * self.ttl) } else { renewal };
            request = request.max_hold(Duration::from_nanos(longest));
        }
        (request.wait(Duration::from_nanos(dice.pick(&[0, self.ttl / 2, 2 * self.ttl]))), capped)
    }

    async fn hold(&self, resource: &str, dice: &mut Dice) {
        let (request, capped) = self.request(resource, dice);
        let acquired = match dice.below(12) {
            0 | 1 => polled(request.acquire(), dice.below(12)).await,
            2 => timeout(Duration::from_nanos(dice.below(3 * self.timeout)), request.acquire()).await.ok(),
            _ => Some(request.acquire().await),
        };
        match acquired {
            None => self.saw(Sight::DroppedAmidClaim),
            Some(Err(error)) => self.told(&error),
            Some(Ok(guard)) => self.keep(self.held(guard, capped), capped, dice).await,
        }
    }

    async fn keep(&self, held: Held, capped: bool, dice: &mut Dice) {
        if dice.one_in(10) && held.guard().resources().len() == 1 {
            return self.lend(held, dice).await;
        }
        let blind = capped && dice.one_in(2);
        match if blind { 6 } else { dice.below(10) } {
            0..3 => self.to_the_end(&held).await,
            3 => self.for_long(&held, dice).await,
            4 | 5 => self.extend(&held, dice).await,
            // Somebody who does not look whether it is lost.
            6 => nap(dice.between(self.ttl / 4, 3 * self.ttl)).await,
            _ => nap(dice.below(self.ttl / 4)).await,
        }
        match dice.below(5) {
            0 => drop(held),
            1 => {
                if polled(held.release(), dice.below(5)).await.is_none() {
                    self.saw(Sight::DroppedAmidRelease);
                }
            }
            _ => held.release().await,
        }
    }

    /// Gives it up with its keys; somebody who knows the holder id alone goes on with it, or ends it.
    async fn lend(&self, mut held: Held, dice: &mut Dice) {
        let Some(guard) = held.guard.take() else { return };
        locked(&self.world).book.on_lent(&held.holder);
        drop(held);
        let resource = guard.resource().to_vec();
        let holder = guard.abandon();
        nap(dice.below(self.ttl / 3)).await;
        if dice.one_in(2)
            && let Ok(guard) =
                self.redlock.extend_as(&resource, &holder, Duration::from_nanos(self.ttl)).await
        {
            self.saw(Sight::ExtendedAs);
            locked(&self.world).book.on_adopted(&Bytes::copy_from_slice(holder.as_bytes()));
            let held = self.held(guard, true);
            nap(dice.below(self.ttl)).await;
            return held.release().await;
        }
        if let Ok(Released::Freed { .. }) = self.redlock.release_as(&resource, &holder).await {
            self.saw(Sight::ReleasedAs);
        }
    }

    /// Gives back all that its users hold.
    pub(crate) async fn close(self) {
        let holds: Vec<Bytes> =
            locked(&self.world).book.holds_of(self.client).into_iter().map(|(holder, _)| holder).collect();
        holds.iter().for_each(|holder| self.given_back(holder));
        self.saw(Sight::ClosedAmidWork);
        locked(&self.world).book.closed = Some(self.client);
        let _ = self.redlock.close().await;
    }

    /// Does not stop before it must, or after some ttls.
    async fn to_the_end(&self, held: &Held) {
        let Ok(lost) = timeout(Duration::from_nanos(3 * self.ttl), held.guard().lost()).await else { return };
        self.saw(if lost.why() == Why::MaxHold { Sight::MaxHoldOver } else { Sight::HeldToTheEnd });
        let valid = held.guard().is_valid();
        let now = self.clock.real();
        let world = &mut *locked(&self.world);
        let deadline = world.book.deadline(&held.holder).unwrap_or(now);
        // Clocks may run ahead of timers.
        let slack = self.drift + self.ttl / 100 + 3 * MS;
        if valid {
            world.book.breach(Promise::TimelyLoss, now, "told of the loss of a valid lock".into());
        } else if self.steady && now > deadline + slack {
            let late = (now - deadline) / MS;
            world.book.breach(
                Promise::TimelyLoss,
                now,
                format!("told of the loss {late} ms after the deadline"),
            );
        }
    }

    async fn for_long(&self, held: &Held, dice: &mut Dice) {
        let hold = held.guard().hold();
        let end = sleep(Duration::from_nanos(dice.between(self.ttl / 2, 3 * self.ttl)));
        tokio::pin!(end);
        tokio::select! {
            biased;
            _ = hold.lost() => return,
            () = hold.at_risk() => self.saw(Sight::AtRisk),
            () = &mut end => return,
        }
        tokio::select! {
            biased;
            _ = hold.lost() => {}
            () = &mut end => {}
        }
    }

    async fn extend(&self, held: &Held, dice: &mut Dice) {
        for _ in 0..dice.between(1, 4) {
            nap(dice.below(self.ttl / 2)).await;
            let ttl = Duration::from_nanos(dice.pick(&[self.ttl, self.ttl - self.ttl / 8, self.ttl]));
            let extended = held.guard().extend(ttl);
            let extended =
                if dice.one_in(6) { polled(extended, dice.below(3)).await } else { Some(extended.await) };
            match extended {
                Some(Ok(())) => self.saw(Sight::Extended),
                Some(Err(ExtendError::Unconfirmed { .. })) => self.saw(Sight::NotExtended),
                Some(Err(_)) => return,
                None => {}
            }
        }
    }

    async fn using(&self, resource: &str, dice: &mut Dice) {
        let (request, capped) = self.request(resource, dice);
        let takes = dice.below(2 * self.ttl);
        let used = request
            .using(|hold| async move {
                let _held = Held { desk: self.clone(), holder: self.granted(&hold, capped), guard: None };
                nap(takes).await;
            })
            .await;
        match used {
            Ok(()) => self.saw(Sight::Used),
            Err(UsingError::Cancelled(_)) => self.saw(Sight::UseCancelled),
            Err(UsingError::NotAcquired(error)) => self.told(&error),
            Err(_) => {}
        }
    }

    /// Asks again and again around the moment at which enough masters forget.
    async fn snipe(&self, resource: &str, dice: &mut Dice) {
        let now = self.clock.real();
        let free = locked(&self.world).free_at(resource.as_bytes()).unwrap_or(now);
        nap((free + dice.below(2 * MS)).saturating_sub(now + 2 * MS)).await;
        for _ in 0..dice.between(2, 8) {
            let (request, capped) = self.request(resource, dice);
            match request.try_acquire().await {
                Ok(guard) => return self.keep(self.held(guard, capped), capped, dice).await,
                Err(error) => self.told(&error),
            }
            nap(dice.below(1_200 * US)).await;
        }
    }

    /// One of some who all want it; each must have it in time.
    pub(crate) async fn contend(self, resource: &'static str, wait: u64, wins: Arc<Mutex<usize>>) {
        let request = self
            .redlock
            .lock(resource)
            .ttl(Duration::from_nanos(self.ttl))
            .label(format!("c{}", self.client));
        match request.wait(Duration::from_nanos(wait)).acquire().await {
            Ok(guard) => {
                let held = self.held(guard, false);
                nap(5 * MS).await;
                held.release().await;
                *locked(&wins) += 1;
            }
            Err(error) => {
                let now = self.clock.real();
                locked(&self.world).trace.tell(now, || format!("c{} did not win: {error}", self.client));
            }
        }
    }
}

async fn nap(nanos: u64) {
    sleep(Duration::from_nanos(nanos)).await;
}

/// Polls `future` so often and drops it, unless it ends before.
async fn polled<F: Future>(future: F, polls: u64) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
