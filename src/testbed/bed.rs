//! Several masters.

use std::ops::Index;

use crate::testbed::binary::ServerBinary;
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::local::{LocalMaster, no_port};
use crate::testbed::port::Port;

/// How often a master that ends before it answers is started anew, on another port.
const TRIES: usize = 3;

/// Independent masters on this machine. Dropping it ends them.
#[derive(Debug)]
pub struct Testbed {
    masters: Vec<LocalMaster>,
}

impl Testbed {
    /// Starts `masters` of them and waits until all answer.
    ///
    /// # Errors
    /// Without a server program, or if one does not start; the others are ended then.
    pub fn start(masters: usize) -> Result<Self, TestbedError> {
        Self::builder().masters(masters).start()
    }

    /// Five masters, unless told otherwise.
    pub fn builder() -> TestbedBuilder {
        TestbedBuilder { masters: 5, binary: None, arguments: Vec::new(), clocks: false }
    }

    /// Where they listen, in order.
    pub fn urls(&self) -> Vec<String> {
        self.masters.iter().map(LocalMaster::url).collect()
    }

    /// All of them, in order.
    pub fn masters(&self) -> &[LocalMaster] {
        &self.masters
    }

    /// The master at `index`, counted from 0.
    pub fn master(&self, index: usize) -> Option<&LocalMaster> {
        self.masters.get(index)
    }

    /// The master that is called `m` and this number.
    pub(super) fn named(&self, number: usize) -> Result<&LocalMaster, TestbedError> {
        let master = number.checked_sub(1).and_then(|index| self.master(index));
        master.ok_or(TestbedError::NoSuchMaster { asked: number, have: self.masters.len() })
    }

    pub(super) fn into_masters(self) -> Vec<LocalMaster> {
        self.masters
    }
}

/// For a bed whose masters differ.
impl From<Vec<LocalMaster>> for Testbed {
    fn from(masters: Vec<LocalMaster>) -> Self {
        Self { masters }
    }
}

impl Index<usize> for Testbed {
    type Output = LocalMaster;

    fn index(&self, index: usize) -> &LocalMaster {
        &self.masters[index]
    }
}

/// A [`Testbed`] to be.
#[derive(Debug, Clone)]
pub struct TestbedBuilder {
    masters: usize,
    binary: Option<ServerBinary>,
    arguments: Vec<String>,
    clocks: bool,
}

impl TestbedBuilder {
    /// How many.
    #[must_use]
    pub fn masters(mut self, masters: usize) -> Self {
        self.masters = masters;
        self
    }

    /// This server program, instead of the one that [`ServerBinary::find`] finds.
    #[must_use]
    pub fn binary(mut self, binary: ServerBinary) -> Self {
        self.binary = Some(binary);
        self
    }

    /// More arguments for each server, after the usual ones: `["--appendonly", "yes"]`.
    #[must_use]
    pub fn arguments<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Gives each a wall clock of its own, to be stepped and slewed by [`Fault`](super::Fault)s. This takes a C compiler, and
    /// makes each look at the clock dearer: not for measurements.
    #[must_use]
    pub fn clocks(mut self) -> Self {
        self.clocks = true;
        self
    }

    /// Starts them and waits until all answer.
    ///
    /// # Errors
    /// As [`Testbed::start`]; also without a C compiler, if they are to have [clocks](Self::clocks).
    pub fn start(self) -> Result<Testbed, TestbedError> {
        self.start_on(Port::any)
    }

    pub(super) fn start_on(self, port: fn() -> std::io::Result<Port>) -> Result<Testbed, TestbedError> {
        let binary = self.binary.map_or_else(ServerBinary::find, Ok)?;
        let launch = || LocalMaster::launch(&binary, &self.arguments, port().doing(no_port)?, self.clocks);
        // All are launched before the first is waited for, so that they start side by side.
        let mut masters = (0..self.masters).map(|_| launch()).collect::<Result<Vec<_>, _>>()?;
        for master in &mut masters {
            for tries_left in (0..TRIES).rev() {
                match master.wait_until_up() {
                    Ok(()) => break,
                    // Kept as the port is, somebody may listen on all addresses at it, whom binding ours ignores.
                    Err(TestbedError::NotStarted { .. }) if tries_left > 0 => *master = launch()?,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Testbed { masters })
    }
}
