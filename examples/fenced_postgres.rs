//! Stock in PostgreSQL that no holder can spoil who does not know that its lock is over.
//!
//! ```text
//! QUORLOCK_MASTERS=redis://…,… cargo run --example fenced_postgres -- "host=/run/postgresql user=me dbname=shop"
//! ```

use quorlock::FencingToken;
use quorlock::fence::Stale;
use tokio_postgres::{Client, Error, NoTls};

/// The token stands in the row that it protects.
pub(crate) async fn prepare(db: &Client) -> Result<(), Error> {
    db.batch_execute(
        "CREATE TABLE IF NOT EXISTS stock (
             item text PRIMARY KEY, amount bigint NOT NULL, token bigint NOT NULL DEFAULT 0
         );
         INSERT INTO stock (item, amount) VALUES ('ticket', 10) ON CONFLICT DO NOTHING;",
    )
    .await
}

/// Takes one of an item, unless a later holder was here: then nothing is changed.
pub(crate) async fn take(
    db: &mut Client,
    item: &str,
    token: FencingToken,
) -> Result<Result<i64, Stale>, Error> {
    let number = i64::try_from(token.as_u64()).unwrap_or(i64::MAX);
    let change = db.transaction().await?;
    // The look at the token and the write are one statement: PostgreSQL looks again at a row that it had to wait for.
    let changed = change
        .query_opt(
            "UPDATE stock SET amount = amount - 1, token = $1 WHERE item = $2 AND token <= $1 RETURNING amount",
            &[&number, &item],
        )
        .await?;
    let Some(row) = changed else {
        let row = change.query_one("SELECT token FROM stock WHERE item = $1", &[&item]).await?;
        let seen = FencingToken::new(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default());
        return Ok(Err(Stale { token, seen }));
    };
    // What else belongs to it goes here, into the same transaction.
    change.commit().await?;
    Ok(Ok(row.get(0)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters = std::env::var("QUORLOCK_MASTERS")?;
    let database = std::env::args().nth(1).ok_or("give the database: host=… user=… dbname=…")?;
    let (mut db, connection) = tokio_postgres::connect(&database, NoTls).await?;
    let connection = connection_task(connection);
    prepare(&db).await?;
    let redlock = quorlock::Redlock::connect(masters.split(',')).await?;
    let guard = redlock.lock("stock:ticket").fenced().acquire().await?;
    let left = take(&mut db, "ticket", guard.fence()?).await??;
    println!("took one with token {}, {left} left", guard.fence()?);
    let _ = guard.release().await;
    drop(db);
    connection.await?;
    Ok(())
}

/// The task that carries the bytes; it ends with the client.
#[allow(clippy::disallowed_methods, reason = "a program's own task, which it awaits")]
pub(crate) fn connection_task(
    connection: impl Future<Output = Result<(), Error>> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            eprintln!("the connection to the database: {error}");
        }
    })
}
