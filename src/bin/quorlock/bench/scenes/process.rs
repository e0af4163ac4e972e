//! Clients in processes of their own.

use std::process::Stdio;
use std::str::FromStr;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A worker.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// So many, all of them connected.
    pub(super) async fn start(masters: &[String], count: usize) -> Result<Vec<Self>, String> {
        let failed = |error: std::io::Error| format!("no worker: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let mut all = Vec::new();
        for _ in 0..count {
            let mut child = Command::new(&program)
                .args(["bench-worker", "--quiet"])
                .env("QUORLOCK_MASTERS", masters.join(","))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
                .map_err(failed)?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err("a worker without its pipes".into());
            };
            all.push(Self { child, input, lines: BufReader::new(output).lines() });
        }
        for process in &mut all {
            let ready = process.lines.next_line().await.map_err(failed)?;
            if ready.as_deref() != Some("ready") {
                return Err("a worker did not come up".into());
            }
        }
        Ok(all)
    }

    pub(super) async fn tell(&mut self, what: &str) -> Result<(), String> {
        let line = format!("{what}\n");
        self.input.write_all(line.as_bytes()).await.map_err(|error| format!("a worker is gone: {error}"))
    }

    /// Its answer, a line each, once it has ended.
    pub(super) async fn told<T: FromStr>(mut self) -> Result<Vec<T>, String> {
        let mut all = Vec::new();
        while let Some(line) = self.lines.next_line().await.map_err(|error| error.to_string())? {
            all.push(line.parse().map_err(|_| format!("a worker said {line:?}"))?);
        }
        match self.child.wait().await {
            Ok(status) if status.success() => Ok(all),
            Ok(status) => Err(format!("a worker ended with {status}")),
            Err(error) => Err(format!("a worker: {error}")),
        }
    }
}
