//! `coroner catalog draft`: the skeleton of a rule for a failure that none knows.
//!
//! Owns what of the report goes into it and which places are left to fill in. Never judges and never opens a file.

use std::fmt::Write;

use super::check::TODO;
use super::mask::mask;
use crate::dialect::header;
use crate::report::model::{Outcome, Report};

/// Family of the ids; a name of the site's own, so that no built-in one is taken.
const FAMILY: &str = "site";
/// Words of a message that make an id.
const WORDS: usize = 4;

/// Why there is nothing to draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoDraft {
    /// A rule knows the cause.
    Known(String),
    /// The log tells of no failure.
    NoFailure,
    /// There is no line to recognise the failure by.
    NoLine,
}

/// A rule file with one signature, one cause and one remedy, the places to fill in marked with `TODO`.
///
/// # Errors
/// When the failure is known, there is none, or no line states it.
pub fn draft(report: &Report) -> Result<String, NoDraft> {
    if report.outcome != Outcome::Failed {
        return Err(NoDraft::NoFailure);
    }
    if let Some(cause) = report.cause.as_ref().filter(|c| !c.id.starts_with("unknown.")) {
        return Err(NoDraft::Known(cause.id.clone()));
    }
    let root = report.root.as_ref().ok_or(NoDraft::NoLine)?;
    let line = header::parse(&root.place.text).message.trim();
    let stated = report.exception.as_ref().filter(|e| line.contains(e.kind.as_str()));
    let (kind, message) = match stated {
        Some(e) => (e.kind.as_str(), e.message.lines().next().unwrap_or_default().trim()),
        None => ("", line),
    };
    if message.len() < 4 {
        return Err(NoDraft::NoLine);
    }
    let sample = match kind {
        "" => message.to_owned(),
        _ => format!("{kind}: {message}"),
    };
    let mask = mask(message);
    let literal = match mask.longest() {
        short if short.len() < 4 => message,
        literal => literal,
    };
    let words: Vec<String> = mask.words().take(WORDS).collect();
    let id = match words.is_empty() {
        true => format!("{FAMILY}.failure"),
        false => format!("{FAMILY}.{}", words.join("-")),
    };
    let mut out = String::new();
    let place = match root.place.input.as_str() {
        "-" => "standard input".to_owned(),
        input => format!("{input}, line {}", root.place.line),
    };
    let _ = writeln!(
        out,
        "# Drafted from {}.\n# Fill in what says {TODO}, then: coroner catalog check DIR",
        place.replace(|c: char| c.is_control(), " ")
    );
    let _ = writeln!(out, "\n[[signature]]\nid = {}\nrole = \"root\"", quoted(&id));
    let _ = writeln!(out, "cause = {}\nprogram = {}", quoted(&id), quoted(&program(report)));
    if let Some(name) = kind.rsplit('.').next().filter(|name| !name.is_empty()) {
        let _ = writeln!(
            out,
            "exception = {}",
            quoted(&format!(r"(?:^|\.){}$", regex::escape(name)))
        );
    }
    let _ = writeln!(
        out,
        "# One of these stands in every such line. The pattern has the rest; what varies is masked, and a named\n\
         # group such as (?P<wait_s>\\d+) makes a figure of it.\n\
         literal = [{}]\npattern = {}",
        quoted(literal),
        quoted(&mask.pattern)
    );
    let _ = writeln!(
        out,
        "source = \"{TODO} the program, version and file that prints it\"\nmatch = [{}]\n\
         # Lines that look alike and mean something else.\nno_match = []",
        quoted(&sample)
    );
    let _ = writeln!(
        out,
        "\n[[cause]]\nid = {}\ntitle = \"{TODO} a noun phrase of at most 70 characters\"\n\
         headline = \"{TODO} what the process did: lost its lease on the weights\"\n\
         meaning = \"{TODO} two to four sentences on what it means\"\n\
         owner = \"unknown\" # launch-config, node, cluster, network, image, model, engine-bug or external\n\
         # pointless, after-change, may-help or unknown\n\
         retry = {{ verdict = \"unknown\", why = \"{TODO} would the same launch end the same way, and why?\" }}",
        quoted(&id)
    );
    if let Some(phase) = &report.phase {
        let _ = writeln!(out, "phase = {}", quoted(phase));
    }
    let _ = writeln!(
        out,
        "\n[[remedy]]\nid = {}\ntitle = \"{TODO} what to do, an imperative without a full stop\"\n\
         why = \"{TODO} why it helps\"\nfor = {{ {} = 10 }}\ncost = \"{TODO} what it costs\"\n\
         risk = \"low\" # medium or high\nverify = \"{TODO} what shows that it took\"\n\
         # kind is flag, env, command or config\n\
         change = [{{ kind = \"command\", name = \"{TODO} the command, or the name of the flag or variable\" }}]",
        quoted(&id.replace('.', "-")),
        quoted(&id)
    );
    Ok(out)
}

fn program(report: &Report) -> String {
    report.engine.name.clone().unwrap_or_else(|| "other".to_owned())
}

/// A TOML string: as it is where that can be, so that patterns can be read.
fn quoted(text: &str) -> String {
    if !text.contains('\'') && !text.chars().any(char::is_control) {
        return match text.contains(['"', '\\']) {
            true => format!("'{text}'"),
            false => format!("\"{text}\""),
        };
    }
    toml::Value::String(text.to_owned()).to_string()
}
