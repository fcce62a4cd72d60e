//! `coroner explain`: the page of one cause, phase, signature or remedy.
//!
//! Owns the pages, all written from the data that the verdict uses, so that they cannot drift from it. Never
//! looks at a log.

mod layout;
pub mod reference;

use crate::catalog::matcher::Signature;
use crate::catalog::schema::{CauseDef, RemedyDef, Role};
use crate::catalog::{self, Catalog};
use crate::remedy::template;
use layout::Page;

/// Sample lines shown of one signature on the page of its cause.
const SAMPLES: usize = 1;

/// Ids suggested for an unknown one.
const SUGGESTIONS: usize = 3;

/// The phases of a launch with their meaning, in the order that most engines pass them.
pub const PHASES: [(&str, &str); 15] = [
    ("process-start", "Interpreter boot, imports and command-line parsing."),
    (
        "config",
        "The model's and the engine's configuration are read and validated.",
    ),
    (
        "cluster-join",
        "Processes find each other: Ray cluster and placement group, torchrun, spawned workers and their hand-shake.",
    ),
    (
        "device-init",
        "CUDA driver and context are created, the device is chosen, free memory is checked.",
    ),
    (
        "distributed-init",
        "Process groups and NCCL communicators are made, custom all-reduce is set up.",
    ),
    ("model-fetch", "Weights and tokenizer are resolved and downloaded."),
    ("weight-load", "The model is built and its weights are loaded."),
    (
        "memory-profile",
        "A dummy forward pass shows how much memory a full batch needs.",
    ),
    ("compile", "torch.compile, JIT kernels, autotuning and kernel warm-up."),
    ("kv-cache", "The KV cache is sized and allocated."),
    ("graph-capture", "CUDA graphs are captured."),
    (
        "warmup",
        "Sampler and engine warm up after capture, before the server is ready.",
    ),
    (
        "serve-start",
        "The HTTP server starts, binds its port and sets up routes.",
    ),
    ("serving", "Ready: requests may run."),
    ("shutdown", "An orderly stop."),
];

/// The page of an id; `None` if no cause, family, phase, signature or remedy has it.
pub fn page(catalog: &Catalog, id: &str) -> Option<String> {
    let mut page = Page::default();
    if let Some(cause) = catalog.cause(id) {
        cause_page(&mut page, catalog, cause);
    } else if let Some((id, meaning)) = PHASES.iter().find(|(phase, _)| *phase == id) {
        phase_page(&mut page, catalog, id, meaning);
    } else if let Some(signature) = catalog.signatures().find(|s| s.def.id == id) {
        signature_page(&mut page, catalog, signature);
    } else if let Some(remedy) = catalog.remedies().find(|r| r.id == id) {
        remedy_page(&mut page, catalog, remedy);
    } else {
        family_page(&mut page, catalog, id)?;
    }
    Some(page.finish())
}

/// Ids close to an unknown one, nearest first.
pub fn nearest(catalog: &Catalog, id: &str) -> Vec<String> {
    let wanted = id.to_lowercase();
    let mut scored: Vec<(f64, &str)> = ids(catalog)
        .map(|known| {
            // A part of an id is a better guess than an id of similar letters.
            let part = if wanted.len() >= 3 && known.contains(&wanted) {
                1.0
            } else {
                0.0
            };
            (strsim::normalized_damerau_levenshtein(&wanted, known) + part, known)
        })
        .filter(|(score, _)| *score >= 0.5)
        // Who mistypes an id mostly begins it right.
        .map(|(score, known)| (score + begun(&wanted, known), known))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored
        .into_iter()
        .take(SUGGESTIONS)
        .map(|(_, id)| id.to_owned())
        .collect()
}

/// The share of what is wanted with which an id begins.
fn begun(wanted: &str, known: &str) -> f64 {
    let common = wanted.bytes().zip(known.bytes()).take_while(|(a, b)| a == b).count();
    common as f64 / wanted.len().max(1) as f64
}

/// Every id that has a page of its own, families aside.
pub fn ids(catalog: &Catalog) -> impl Iterator<Item = &str> {
    let causes = catalog.causes().map(|cause| cause.id.as_str());
    let phases = PHASES.iter().map(|(id, _)| *id);
    let signatures = catalog.signatures().map(|signature| signature.def.id.as_str());
    let remedies = catalog.remedies().map(|remedy| remedy.id.as_str());
    causes.chain(phases).chain(signatures).chain(remedies)
}

/// Whether a reference in the data, an id or `family.*`, covers a cause.
fn covers(reference: &str, cause: &str) -> bool {
    match reference.strip_suffix(".*") {
        Some(family) => catalog::family(cause) == family,
        None => reference == cause,
    }
}

fn cause_page(page: &mut Page, catalog: &Catalog, cause: &CauseDef) {
    page.title(&cause.id, &cause.title);
    page.para(&cause.meaning);
    let phase = cause.phase.as_deref().unwrap_or("any");
    page.blank();
    page.fact("phase", phase);
    page.fact("who can act", &cause.owner);
    page.fact("evidence", &cause.strength);
    let same_node = match cause.retry.same_node {
        Some(false) => ", not on the same node",
        _ => "",
    };
    let retry = format!("{}{same_node}: {}", cause.retry.verdict, cause.retry.why);
    page.fact("starting again", &retry);
    if let Some(after) = &cause.retry.after {
        page.fact("first", after);
    }
    if !cause.differs.is_empty() {
        page.section("How it differs from its look-alikes");
        page.para(&cause.differs);
    }
    page.section("How it looks");
    for signature in catalog.signatures() {
        let def = &signature.def;
        if def.role == Role::Root && def.cause.as_deref().is_some_and(|c| covers(c, &cause.id)) {
            page.item(
                "- ",
                &format!("{} ({}{})", def.id, def.program, versions(&def.versions)),
            );
            for sample in def.matches.iter().take(SAMPLES) {
                page.quote(sample);
            }
        }
    }
    page.section("What to change, best first");
    for (n, remedy) in remedies_for(catalog, &cause.id).iter().enumerate() {
        page.item(&format!("{}. ", n + 1), &plain_title(remedy));
        let (cost, risk) = (sentence(&remedy.cost), &remedy.risk);
        page.para_at(5, &format!("Cost: {cost} Risk: {risk}. ({})", remedy.id));
    }
    page.section("What does not help");
    for vain in &cause.will_not_help {
        page.item("- ", &format!("{}{}: {}", vain.title, engines(&vain.engines), vain.why));
    }
    page.section("What to look at next");
    for next in &cause.next_evidence {
        page.item("- ", &format!("{}: {}", next.what, next.why));
        page.command(&crate::remedy::template::plain(&next.command).unwrap_or_else(|| next.command.clone()));
    }
    page.sources(&cause.sources);
}

fn phase_page(page: &mut Page, catalog: &Catalog, id: &str, meaning: &str) {
    page.title(id, "a phase of the launch");
    page.para(meaning);
    page.section("Lines that say a process enters it");
    for signature in catalog.signatures() {
        let def = &signature.def;
        if def.role == Role::Phase && def.phase.as_deref() == Some(id) {
            page.item(
                "- ",
                &format!("{} ({}{})", def.id, def.program, versions(&def.versions)),
            );
            for sample in def.matches.iter().take(SAMPLES) {
                page.quote(sample);
            }
        }
    }
    page.section("Causes that strike here");
    for cause in catalog.causes().filter(|cause| cause.phase.as_deref() == Some(id)) {
        page.item("- ", &format!("{}: {}", cause.id, cause.title));
    }
}

fn signature_page(page: &mut Page, catalog: &Catalog, signature: &Signature) {
    let def = &signature.def;
    page.title(&def.id, &format!("a line of {}", def.program));
    let meaning = match def.role {
        Role::Root => "It states a cause.",
        Role::Wrapper => "It says that something failed elsewhere and is never the cause itself.",
        Role::Consequence => "It follows from another death.",
        Role::Benign => "It looks like a failure and is none.",
        Role::Degraded => "The launch serves, but with a real problem.",
        Role::Phase => "A process enters a phase.",
        Role::Launch => "A launch begins here.",
        Role::Ready => "The server is ready: requests may run.",
        Role::Stop => "An orderly end.",
        Role::Exit => "It tells how a process ended.",
        Role::Note => "It carries figures, settings or an identity.",
        Role::NoLaunch => "It belongs to a program that is no launch.",
    };
    page.para(meaning);
    page.blank();
    if let Some(cause) = &def.cause {
        let title = catalog
            .cause(cause)
            .map(|cause| format!(" – {}", cause.title))
            .unwrap_or_default();
        page.fact("cause", &format!("{cause}{title}"));
    }
    let phases: Vec<&str> = def.phase.iter().chain(&def.phases).map(String::as_str).collect();
    page.fact("phase", &phases.join(", "));
    let range = match def.versions.as_str() {
        "" => "all".to_owned(),
        range => in_words(range),
    };
    page.fact("versions", &range);
    page.fact("reason", def.reason.as_deref().unwrap_or_default());
    page.fact("explains", &def.explains.join(", "));
    page.section("Lines it recognises");
    def.matches.iter().for_each(|sample| page.quote(sample));
    page.section("Lines it leaves alone");
    def.no_match.iter().for_each(|sample| page.quote(sample));
    page.section("Where the line's own advice is wrong");
    for (cause, wrong) in &def.wrong_advice {
        let why = crate::remedy::template::plain(&wrong.why).unwrap_or_else(|| wrong.why.clone());
        page.item("- ", &format!("{cause}: {why}"));
    }
    page.sources(std::slice::from_ref(&def.source));
}

fn remedy_page(page: &mut Page, catalog: &Catalog, remedy: &RemedyDef) {
    page.title(&remedy.id, &plain_title(remedy));
    page.para(&remedy.why);
    page.blank();
    for change in &remedy.change {
        // Placeholders are filled from a launch; without one only the name is known.
        let name = template::plain(&change.name).unwrap_or_else(|| change.name.clone());
        let to = change
            .to
            .as_deref()
            .and_then(template::plain)
            .map(|to| format!(" {to}"));
        let verb = if change.kind == "command" { "run" } else { "set" };
        page.fact(verb, &format!("{name}{}", to.unwrap_or_default()));
    }
    page.fact("cost", &remedy.cost);
    page.fact("risk", &remedy.risk);
    page.fact("check", &remedy.verify);
    page.fact("together with", remedy.pair_with.as_deref().unwrap_or_default());
    let engines: Vec<String> = remedy
        .engines
        .iter()
        .map(|e| format!("{e}{}", versions(&remedy.versions)))
        .collect();
    page.fact("engines", &engines.join(", "));
    if remedy.unblocks_only {
        page.fact("note", "it only unblocks: the pressure stays");
    }
    page.section("Helps with");
    for cause in catalog
        .causes()
        .filter(|c| remedy.applies.keys().any(|key| covers(key, &c.id)))
    {
        page.item("- ", &format!("{}: {}", cause.id, cause.title));
    }
    page.sources(&remedy.sources);
}

fn family_page(page: &mut Page, catalog: &Catalog, id: &str) -> Option<()> {
    let family: Vec<&CauseDef> = catalog.causes().filter(|c| catalog::family(&c.id) == id).collect();
    if family.is_empty() {
        return None;
    }
    page.title(id, "a family of causes");
    for cause in family {
        page.item("- ", &format!("{}: {}", cause.id, cause.title));
    }
    Some(())
}

/// The remedies of a cause, in the order of the data: one named for the cause itself before one for its family.
fn remedies_for<'a>(catalog: &'a Catalog, cause: &str) -> Vec<&'a RemedyDef> {
    let mut found: Vec<(u32, &RemedyDef)> = catalog
        .remedies()
        .filter_map(|remedy| {
            let family = || {
                remedy
                    .applies
                    .iter()
                    .find(|(key, _)| covers(key, cause))
                    .map(|(_, place)| place)
            };
            remedy.applies.get(cause).or_else(family).map(|place| (*place, remedy))
        })
        .collect();
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, remedy)| remedy).collect()
}

/// A phrase of the data with a full stop, where it has no end of its own.
fn sentence(phrase: &str) -> String {
    match phrase.ends_with(['.', '!', '?']) {
        true => phrase.to_owned(),
        false => format!("{phrase}."),
    }
}

fn plain_title(remedy: &RemedyDef) -> String {
    let title = remedy.plain_title.as_ref().unwrap_or(&remedy.title);
    template::plain(title).unwrap_or_else(|| title.clone())
}

fn versions(range: &str) -> String {
    if range.is_empty() {
        String::new()
    } else {
        format!(" {}", in_words(range))
    }
}

/// A range of versions as people say it: `0.9..0.11` → `0.9 to 0.11`, `0.9..` → `from 0.9`.
fn in_words(range: &str) -> String {
    match range.split_once("..") {
        None => range.to_owned(),
        Some((from, "")) => format!("from {from}"),
        Some(("", to)) => format!("up to {to}"),
        Some((from, to)) => format!("{from} to {to}"),
    }
}

fn engines(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(" ({})", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::layout::WIDTH;
    use super::*;
    use crate::report::text;

    fn catalog() -> &'static Catalog {
        Catalog::shared()
    }

    #[test]
    fn every_id_has_a_page_that_fits() {
        for id in ids(catalog()) {
            let page = page(catalog(), id).unwrap();
            assert!(page.starts_with(&format!("{id} – ")), "{page}");
            assert!(page.lines().count() >= 3, "{page}");
            for line in page.lines().filter(|line| !line.starts_with("    $ ")) {
                assert!(text::width(line) <= WIDTH, "{line}");
            }
            assert_eq!(page, text::safe_lines(&page));
        }
    }

    /// The text of a line without the name of its fact; nothing of quoted logs and commands, which are as they are.
    fn prose(line: &str) -> Option<&str> {
        let verbatim = ["    | ", "    |   ", "    $ ", "  run  ", "  set  "];
        if verbatim.iter().any(|mark| line.starts_with(mark)) {
            return None;
        }
        let text = line.trim_start();
        let fact = line.starts_with("  ") && !line.starts_with("   ") && text.get(14..15) == Some(" ");
        Some(if fact { text.get(15..).unwrap_or(text) } else { text })
    }

    #[test]
    fn pages_are_whole_sentences_without_gaps() {
        for id in ids(catalog()) {
            let page = page(catalog(), id).unwrap();
            let mut after_command = false;
            for text in page.lines().filter_map(|line| {
                // The rest of a command that is wrapped is part of it.
                let rest = line.starts_with("                 ") && after_command;
                after_command = rest || line.starts_with("  run ") || line.starts_with("  set ");
                prose(line).filter(|_| !rest)
            }) {
                for fault in ["  ", "..", "None Risk", " .", "( ", " )", "()"] {
                    // `f()` is a function, and `..` may be a path.
                    let known = match fault {
                        "()" => {
                            text.contains(|c: char| c.is_alphanumeric() || c == '_')
                                && text.match_indices("()").all(|(at, _)| {
                                    text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '…'))
                                })
                        }
                        ".." => text.contains("../") || text.contains("..."),
                        " ." => text.match_indices(" .").all(|(at, _)| {
                            text[at + 2..].starts_with(|c: char| c.is_alphanumeric() || c == '/')
                                || text.contains("-e .")
                        }),
                        _ => false,
                    };
                    assert!(!text.contains(fault) || known, "{id}: `{fault}` in `{text}`\n{page}");
                }
                assert!(!matches!(text, "-" | "1."), "{id}: an empty item\n{page}");
            }
            let lines: Vec<&str> = page.lines().collect();
            for pair in lines.windows(3) {
                let heading = pair[0].is_empty() && !pair[1].is_empty() && !pair[1].starts_with(' ');
                assert!(
                    !heading || pair[2].starts_with("  "),
                    "{id}: `{}` is empty\n{page}",
                    pair[1]
                );
            }
            assert!(
                lines.last().is_some_and(|line| line.starts_with("  ")),
                "{id}: an empty end\n{page}"
            );
        }
    }

    #[test]
    fn versions_and_costs_are_said_in_words() {
        assert_eq!(in_words("0.9..0.11"), "0.9 to 0.11");
        assert_eq!(in_words("0.9.."), "from 0.9");
        assert_eq!(in_words("..2.1"), "up to 2.1");
        assert_eq!(in_words("2.1"), "2.1");
        let page = page(catalog(), "ray.fd-or-thread-limit")
            .or_else(|| page(catalog(), "env.limits"))
            .unwrap();
        assert!(!page.contains("None Risk"), "{page}");
        assert_eq!(sentence("None"), "None.");
        assert_eq!(sentence("A minute."), "A minute.");
    }

    #[test]
    fn a_cause_says_what_it_means_and_how_it_looks() {
        let page = page(catalog(), "gpu-oom.context").unwrap();
        for part in [
            "device-init",
            "How it differs from its look-alikes",
            "What does not help",
            "nvidia-smi",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }

    #[test]
    fn a_family_lists_its_causes() {
        let page = page(catalog(), "gpu-oom").unwrap();
        assert!(
            page.contains("gpu-oom.weights: ") && page.contains("gpu-oom.context: "),
            "{page}"
        );
    }

    #[test]
    fn an_unknown_id_has_no_page_but_a_neighbour() {
        assert_eq!(page(catalog(), "gpu-oom.contxt"), None);
        assert_eq!(
            nearest(catalog(), "gpu-oom.contxt").first().map(String::as_str),
            Some("gpu-oom.context")
        );
        assert_eq!(
            nearest(catalog(), "Device-Init").first().map(String::as_str),
            Some("device-init")
        );
        assert!(nearest(catalog(), "watchdog").iter().any(|id| id == "process.watchdog"));
        assert_eq!(
            nearest(catalog(), "gpu-oom.graf").first().map(String::as_str),
            Some("gpu-oom.graph-capture")
        );
        assert!(nearest(catalog(), "zzzzzzzzzzzzzz").is_empty());
    }

    #[test]
    fn the_phase_table_names_each_phase_of_the_catalog() {
        for cause in catalog().causes() {
            let phase = cause.phase.as_deref();
            assert!(phase.is_none_or(|p| PHASES.iter().any(|(id, _)| *id == p)), "{phase:?}");
        }
    }
}
