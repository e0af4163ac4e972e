//! `quorlock explain`: the pitfalls, a page each, and what the checks of `doctor` are about.

pub(crate) mod catalog;
mod chinese;
mod english;
mod page;

use serde_json::json;

use crate::args::{Explain, Global};
use crate::exit::{Exit, Failure};
use crate::output;
use catalog::{CHECKS, Check, Lang};
use page::Page;

pub(crate) fn run(global: &Global, args: &Explain) -> Result<Exit, Failure> {
    let lang = args.lang;
    let Some(topic) = &args.topic else {
        let list = list(lang);
        output::result(
            global,
            list,
            &json!({ "topics": CHECKS.iter().map(|check| head(check, lang)).collect::<Vec<_>>() }),
        );
        return Ok(Exit::Done);
    };
    let id = if topic.parse::<u8>().is_ok() { format!("P{topic}") } else { topic.clone() };
    let Some(check) = Check::find(&id) else {
        let text = format!(
            "no topic {topic:?}: say 1 to 5 for a pitfall, or D01 to D16 for a check of `quorlock doctor`"
        );
        return Err(Failure::new(Exit::Usage, "bad_request", text));
    };
    let page = pitfall(check).map(|number| &pages(lang)[number - 1]);
    let text = match page {
        Some(page) => format!("{}\n\n{}", page.title, page.text.trim_end()),
        None => format!("{}: {}\n\n{}", check.id, check.title(lang), check.why(lang)),
    };
    let mut object = head(check, lang);
    object["text"] = page.map(|page| page.text.trim_end()).into();
    output::result(global, text, &object);
    Ok(Exit::Done)
}

fn head(check: &Check, lang: Lang) -> serde_json::Value {
    json!({ "id": check.id, "title": check.title(lang), "why": check.why(lang) })
}

/// The number of a pitfall.
fn pitfall(check: &Check) -> Option<usize> {
    check.id.strip_prefix('P').and_then(|number| number.parse().ok())
}

const fn pages(lang: Lang) -> &'static [Page; 5] {
    match lang {
        Lang::En => &english::PAGES,
        Lang::Zh => &chinese::PAGES,
    }
}

fn list(lang: Lang) -> String {
    let mut lines: Vec<String> = pages(lang).iter().map(|page| page.title.to_owned()).collect();
    lines.push(String::new());
    let checks = CHECKS.iter().filter(|check| pitfall(check).is_none());
    lines.extend(checks.map(|check| format!("{}  {}", check.id, check.title(lang))));
    lines.push(String::new());
    lines.push(
        match lang {
            Lang::En => "quorlock explain 3, or quorlock explain D07",
            Lang::Zh => "quorlock explain 3 --lang zh，或 quorlock explain D07 --lang zh",
        }
        .to_owned(),
    );
    lines.join("\n")
}
