//! SQLite, which is compiled into the test.

use quorlock::testbed::Testbed;

use crate::fenced_sqlite::{open, take};
use crate::frozen_between_look_and_write;

#[test]
fn sqlite_refuses_a_holder_that_stood_still_past_its_ttl() {
    let bed = Testbed::start(5).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stock.db");
    let (mut first, mut next) = (open(&path).unwrap(), open(&path).unwrap());
    let mut later = None;
    let refused = std::sync::Mutex::new(None);
    let first = std::sync::Mutex::new(&mut first);
    frozen_between_look_and_write(
        &bed,
        |token| assert_eq!(take(&mut first.lock().unwrap(), "ticket", token).unwrap(), Ok(9)),
        |token| {
            assert_eq!(take(&mut next, "ticket", token).unwrap(), Ok(8));
            later = Some(token);
        },
        |token| *refused.lock().unwrap() = Some(take(&mut first.lock().unwrap(), "ticket", token).unwrap()),
    );
    let stale = refused.into_inner().unwrap().unwrap().unwrap_err();
    assert_eq!(Some(stale.seen), later);
    assert!(stale.token < stale.seen);
    let amount: i64 = next.query_row("SELECT amount FROM stock", [], |row| row.get(0)).unwrap();
    assert_eq!(amount, 8, "the late write counted");
}
