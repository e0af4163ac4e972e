//! Looking at masters: nothing here asks for a vote, and nothing writes.

use std::time::Duration;

use super::Builder;
use crate::client::error::ConnectError;
use crate::client::locker::quorum;
use crate::protocol::request::check_resource;
use crate::transport::fred::{self, Inspection, Listing, Overheard, Survey};

impl Builder {
    /// Looks at one resource on every master.
    ///
    /// # Errors
    ///
    /// If the list of masters cannot be one. A master that cannot be reached is part of the answer.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    ///
    /// # Left behind
    ///
    /// Nothing.
    pub async fn inspect(&self, resource: impl AsRef<[u8]>) -> Result<Inspection, ConnectError> {
        check_resource(resource.as_ref())?;
        let dialers = self.dialers()?;
        let quorum = quorum(dialers.len(), self.min_votes)?;
        Ok(fred::inspect(&dialers, quorum, resource.as_ref()).await)
    }

    /// Asks every master what it is and how it is, and looks at these resources on it; within twice the connect timeout and
    /// twice the [master timeout](crate::Policy::master_timeout). The commands: `INFO`, `EXISTS`, `TIME`, `GET`, `PTTL`,
    /// `EVAL` of two scripts that read, and, where it is allowed, `CONFIG GET`, `SLOWLOG GET`, `CLIENT LIST`, `COMMAND INFO`.
    ///
    /// # Errors
    ///
    /// If the list of masters cannot be one, or a resource cannot be one. A master that cannot be reached is part of the
    /// answer, and so is what a master does not tell.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    ///
    /// # Left behind
    ///
    /// Nothing.
    pub async fn survey<R: AsRef<[u8]>>(&self, resources: &[R]) -> Result<Survey, ConnectError> {
        let resources: Vec<Vec<u8>> = resources.iter().map(|resource| resource.as_ref().to_vec()).collect();
        resources.iter().try_for_each(|resource| check_resource(resource))?;
        let dialers = self.dialers()?;
        let quorum = quorum(dialers.len(), self.min_votes)?;
        Ok(fred::survey(&dialers, quorum, &resources).await)
    }

    /// Lists the string keys whose name matches `pattern` (as `SCAN` has it: `order:*`), `most` of them at most, with what
    /// stands there on every master. Searches gently: at most 25,000 keys a second on each master. Takes the rights `scan` and
    /// `getrange`, which a client does not need.
    ///
    /// # Errors
    ///
    /// If the list of masters cannot be one. A master that cannot be searched is part of the answer.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    ///
    /// # Left behind
    ///
    /// Nothing.
    pub async fn list(&self, pattern: impl AsRef<[u8]>, most: usize) -> Result<Listing, ConnectError> {
        let dialers = self.dialers()?;
        let quorum = quorum(dialers.len(), self.min_votes)?;
        Ok(fred::list(&dialers, quorum, pattern.as_ref(), most).await)
    }

    /// Listens to the commands that all clients give the masters, by `MONITOR`, and hands each to `heard` with the place of
    /// its master in the list. Ends when `lasting` is over, on a master that gave `most` commands before then.
    ///
    /// **This costs each master up to half of its throughput** while it lasts: briefly, and off the peak. It takes the right
    /// `monitor`. What is heard holds others' keys and values.
    ///
    /// Answers for each master how many commands there were, or why it could not be listened to.
    ///
    /// # Errors
    ///
    /// If the list of masters cannot be one.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the future ends the listening.
    ///
    /// # Left behind
    ///
    /// Nothing.
    pub async fn overhear(
        &self,
        lasting: Duration,
        most: usize,
        heard: impl Fn(usize, Overheard),
    ) -> Result<Vec<Result<usize, String>>, ConnectError> {
        Ok(fred::overhear(&self.dialers()?, lasting, most, heard).await)
    }
}
