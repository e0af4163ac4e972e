//! The lines of clients that wait, on a master in memory.

use bytes::Bytes;

use super::Master;
use crate::protocol::fanout::Act;
use crate::protocol::votes::Vote;

impl Master {
    /// Has `bell` join `line`, or go; also tells how many stand before it. Neither a line nor who stands in it has a ttl here.
    pub(super) fn line(&mut self, act: Act, bell: &Bytes, line: &Bytes) -> (Vote, Option<u64>) {
        let bells = self.lines.entry(line.clone()).or_default();
        let place = bells.iter().position(|other| other == bell);
        if act == Act::QueueUp {
            let before = place.unwrap_or_else(|| {
                bells.push(bell.clone());
                bells.len() - 1
            });
            return (Vote::Granted, u64::try_from(before).ok());
        }
        self.rung.push(bell.clone());
        let Some(place) = place else { return (Vote::Absent, None) };
        bells.remove(place);
        let overtakes = act == Act::Overtake;
        if overtakes && place > 0 {
            bells.remove(0);
        }
        if overtakes || place == 0 {
            self.rung.extend(bells.first().cloned());
        }
        if bells.is_empty() {
            self.lines.remove(line);
        }
        (Vote::Granted, None)
    }

    /// The bells that rang since the last call, for those who listen.
    pub fn take_rung(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.rung)
    }
}
