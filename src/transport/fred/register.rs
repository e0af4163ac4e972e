//! Which process each configured master turned out to be, so that no server votes twice.

use std::sync::{Arc, Mutex, PoisonError};

use crate::protocol::quorum::MasterId;

/// One table for all masters of a client, under one lock.
#[derive(Debug)]
pub(super) struct Register {
    run_ids: Mutex<Vec<Option<Arc<str>>>>,
}

/// What a newly connected process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    First,
    Again,
    /// The master is another process than last time: it restarted, or something else answers now.
    Changed,
    /// The same server as another configured master (hazard H12).
    TwinOf(MasterId),
}

impl Register {
    pub(super) fn new(masters: usize) -> Self {
        Self { run_ids: Mutex::new(vec![None; masters]) }
    }

    pub(super) fn enter(&self, master: MasterId, run_id: &Arc<str>) -> Seen {
        let mut run_ids = self.run_ids.lock().unwrap_or_else(PoisonError::into_inner);
        let twin = run_ids
            .iter()
            .enumerate()
            .find(|(index, known)| *index != master.index() && known.as_ref() == Some(run_id))
            .and_then(|(index, _)| MasterId::new(index));
        if let Some(twin) = twin {
            return Seen::TwinOf(twin);
        }
        let Some(known) = run_ids.get_mut(master.index()) else { return Seen::First };
        match known.replace(run_id.clone()) {
            None => Seen::First,
            Some(earlier) if earlier == *run_id => Seen::Again,
            Some(_) => Seen::Changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_under_two_names_is_found_and_a_restart_told() {
        let register = Register::new(3);
        let [m1, m2, _] = [0, 1, 2].map(|index| MasterId::new(index).expect("in range"));
        assert_eq!(register.enter(m1, &"a".into()), Seen::First);
        assert_eq!(register.enter(m2, &"a".into()), Seen::TwinOf(m1));
        assert_eq!(register.enter(m1, &"a".into()), Seen::Again);
        assert_eq!(register.enter(m1, &"b".into()), Seen::Changed);
        assert_eq!(register.enter(m2, &"a".into()), Seen::First);
    }
}
