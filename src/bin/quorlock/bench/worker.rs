//! A client in a process of its own, told by its input what to do.

use std::io::Write as _;

use tokio::sync::mpsc;

use super::arms::Ours;
#[cfg(feature = "peers")]
use super::arms::Rslock;
use super::contender::TTL;
use super::scenes::contention::contend;
use super::scenes::renewal::grown_by;
use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;

pub(crate) async fn run(global: &Global) -> Result<Exit, Failure> {
    let client = Fleet::of(global)?.builder.connect().await?;
    // Its masters answer by now.
    let warm = client.lock(format!("{}warm", super::keys::prefix())).acquire().await?;
    let _ = warm.release().await;
    let mut out = std::io::stdout();
    let gone = |error: std::io::Error| Failure::other(format!("nobody listens: {error}"));
    writeln!(out, "ready").and_then(|()| out.flush()).map_err(gone)?;
    let mut input = input();
    let line = input.recv().await.unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let work = async {
        match words[..] {
            ["contend", row, until, key] => {
                let until = until.parse().map_err(|_| format!("no moment: {until}"))?;
                let turns = match row {
                    #[cfg(feature = "peers")]
                    "rslock" => contend(&Rslock::polling(&global.masters), key, until).await,
                    _ => contend(&Ours::of(client.clone(), TTL, true), key, until).await,
                };
                Ok(turns.iter().map(|turn| format!("{turn}\n")).collect())
            }
            ["hold", count] => {
                let count = count.parse().map_err(|_| format!("no number: {count}"))?;
                grown_by(&client, count).await.map(|bytes| format!("{bytes}\n"))
            }
            _ => Err(format!("not understood: {line}")),
        }
    };
    // Whoever started it is gone when its input ends.
    let text: Result<String, String> = tokio::select! {
        text = work => text,
        _ = input.recv() => Ok(String::new()),
    };
    let _ = client.close().await;
    let text = text.map_err(Failure::other)?;
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(gone)?;
    Ok(Exit::Done)
}

/// Lines as they come. The thread ends with the process: nothing interrupts a read.
fn input() -> mpsc::UnboundedReceiver<String> {
    let (tell, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
