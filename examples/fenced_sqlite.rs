//! Stock in SQLite that no holder can spoil who does not know that its lock is over.
//!
//! ```text
//! QUORLOCK_MASTERS=redis://…,… cargo run --example fenced_sqlite -- stock.db
//! ```

use quorlock::FencingToken;
use quorlock::fence::Stale;
use rusqlite::{Connection, TransactionBehavior, params};

/// The token stands in the row that it protects.
pub(crate) fn open(path: &std::path::Path) -> rusqlite::Result<Connection> {
    let db = Connection::open(path)?;
    db.busy_timeout(std::time::Duration::from_secs(5))?;
    db.execute_batch(
        "CREATE TABLE IF NOT EXISTS stock (
             item TEXT PRIMARY KEY, amount INTEGER NOT NULL, token INTEGER NOT NULL DEFAULT 0
         ) STRICT;
         INSERT OR IGNORE INTO stock (item, amount) VALUES ('ticket', 10);",
    )?;
    Ok(db)
}

/// Takes one of an item, unless a later holder was here: then nothing is changed.
pub(crate) fn take(
    db: &mut Connection,
    item: &str,
    token: FencingToken,
) -> rusqlite::Result<Result<i64, Stale>> {
    let number = |token: FencingToken| i64::try_from(token.as_u64()).unwrap_or(i64::MAX);
    // The look at the token and the write are one transaction, and one statement of it.
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let changed = change.execute(
        "UPDATE stock SET amount = amount - 1, token = ?1 WHERE item = ?2 AND token <= ?1",
        params![number(token), item],
    )?;
    let (amount, seen): (i64, i64) =
        change.query_row("SELECT amount, token FROM stock WHERE item = ?1", [item], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    change.commit()?;
    let seen = FencingToken::new(u64::try_from(seen).unwrap_or_default());
    Ok(if changed == 1 { Ok(amount) } else { Err(Stale { token, seen }) })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters = std::env::var("QUORLOCK_MASTERS")?;
    let path = std::env::args().nth(1).unwrap_or_else(|| "stock.db".to_owned());
    let mut db = open(path.as_ref())?;
    let redlock = quorlock::Redlock::connect(masters.split(',')).await?;
    let guard = redlock.lock("stock:ticket").fenced().acquire().await?;
    let left = take(&mut db, "ticket", guard.fence()?)??;
    println!("took one with token {}, {left} left", guard.fence()?);
    let _ = guard.release().await;
    Ok(())
}
