//! `quorlock demo`: five masters, contenders for one lock, and everything that goes wrong in practice.
//!
//! | file | is |
//! |---|---|
//! | `event` | what contenders and stage say to each other |
//! | `worker` | one contender, a process of its own |
//! | `crew` | the processes of all |
//! | `stage` | masters, contenders, books and time line together |
//! | `script` | what goes wrong when |
//! | `ledger` | the books: who was inside when |
//! | `story` | the time line |
//! | `verdict` | what it comes to |

mod crew;
mod event;
mod ledger;
mod script;
mod stage;
mod story;
mod verdict;
pub(crate) mod worker;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::args::{Demo, Global};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::signals::Signals;
use stage::Stage;

pub(crate) async fn run(global: &Global, args: &Demo) -> Result<Exit, Failure> {
    let mut signals = Signals::catch()?;
    let folder = Folder::create()?;
    let played = async {
        let mut stage = Stage::set(global, args, folder.path()).await?;
        let seen = script::play(&mut stage, args.seconds).await?;
        let verdict = verdict::judge(&stage, &seen);
        if !verdict.is_right() {
            stage.show_logs();
        }
        Ok::<_, Failure>(verdict)
    };
    // Interrupted, everything is dropped: contenders and masters end with it, the folder goes.
    let verdict =
        signals.or(played).await.map_err(|signal| Failure::interrupted(signal, "interrupted"))??;
    output::result(global, verdict.text(), &verdict.json());
    if verdict.is_right() {
        return Ok(Exit::Done);
    }
    // The object is out already; what is left is for a person.
    output::note(format_args!("error: {}", verdict.problems().join("\n  ")));
    Ok(Exit::NotHeld)
}

/// For the counter and the contenders' logs. Removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("quorlock-demo-{}", std::process::id()));
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|error| Failure::other(format!("cannot create {}: {error}", path.display())))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
