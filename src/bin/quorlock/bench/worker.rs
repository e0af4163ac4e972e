//! One contender in a process of its own, told by its input when to end.

use std::io::Write as _;

use tokio::sync::mpsc;

use super::scenes::contention::contend;
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
    let Some((Ok(until), key)) = line.split_once(' ').map(|(until, key)| (until.parse(), key)) else {
        return Err(Failure::other("not told what to do"));
    };
    // Whoever started it is gone when its input ends.
    let turns = tokio::select! {
        turns = contend(client.clone(), key.to_owned(), None, until) => turns,
        _ = input.recv() => Vec::new(),
    };
    let _ = client.close().await;
    let text: String = turns.iter().map(|turn| format!("{turn}\n")).collect();
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
