//! Pages of `coroner explain` as one HTML file or as Markdown.
//!
//! Owns the links between pages. The words are those of the pages themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::PHASES;
use crate::catalog::Catalog;
use crate::report::html;

/// The pages of these ids as one HTML file; an id named on a page leads to its own page, if that is among them.
pub fn html(catalog: &Catalog, title: &str, ids: &[&str]) -> String {
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    let mut main = String::new();
    let mut written = BTreeSet::new();
    for id in ids {
        let Some(page) = super::page(catalog, id).filter(|_| written.insert(*id)) else {
            continue;
        };
        let name = html::escape(id);
        let text: Vec<String> = page.lines().map(|line| linked(line, id, &known)).collect();
        let _ = writeln!(
            main,
            "<section aria-labelledby=\"{name}\">\n<h2 id=\"{name}\">{name}</h2>\n<pre>{}</pre>\n</section>",
            text.join("\n")
        );
    }
    let body = format!(
        "<header><h1>{0}</h1></header>\n<nav aria-label=\"Pages\">\n{1}</nav>\n<main>\n{main}</main>",
        html::escape(title),
        index(catalog, &written)
    );
    html::document(title, "", &body)
}

/// The links to the pages: causes by family, phases, lines by the program that prints them, remedies.
fn index(catalog: &Catalog, ids: &BTreeSet<&str>) -> String {
    let causes = catalog.causes().map(|c| c.id.as_str());
    let phases = PHASES.iter().map(|(id, _)| *id);
    let lines = catalog.signatures().map(|s| s.def.id.as_str());
    let remedies = catalog.remedies().map(|r| r.id.as_str());
    let kinds: [(&str, Vec<&str>, bool); 4] = [
        ("Causes", causes.collect(), true),
        ("Phases", phases.collect(), true),
        ("Lines that are known", lines.collect(), false),
        ("Remedies", remedies.collect(), false),
    ];
    let mut out = String::new();
    let mut linked = BTreeSet::new();
    for (kind, members, open) in kinds {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for id in members.into_iter().filter(|id| ids.contains(id) && linked.insert(*id)) {
            // The first part of an id is its family or program; what has no parts stands together.
            let group = id.split_once('.').map_or(kind, |(group, _)| group);
            groups.entry(group).or_default().push(id);
        }
        if groups.is_empty() {
            continue;
        }
        let _ = writeln!(out, "<h2>{kind}</h2>");
        for (group, ids) in groups {
            let state = if open { " open" } else { "" };
            let (group, count) = (html::escape(group), ids.len());
            let _ = writeln!(out, "<details{state}><summary>{group} ({count})</summary>\n<ul>");
            for id in ids {
                let _ = writeln!(out, "<li><a href=\"#{0}\">{0}</a></li>", html::escape(id));
            }
            let _ = writeln!(out, "</ul></details>");
        }
    }
    out
}

/// The pages as Markdown: a heading and the page as it is, in a fence that nothing in it can close.
pub fn markdown(catalog: &Catalog, ids: &[&str]) -> String {
    let mut out = String::new();
    for id in ids {
        let page = super::page(catalog, id).unwrap_or_default();
        let longest = page.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let _ = writeln!(out, "## `{id}`\n\n{fence}text\n{page}{fence}\n");
    }
    out
}

/// A line with links. Ids that are plain words, such as `config`, are left alone: prose uses them too.
fn linked(line: &str, own: &str, known: &BTreeSet<&str>) -> String {
    let part_of_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let mut out = String::with_capacity(line.len() + 64);
    let mut rest = line;
    while !rest.is_empty() {
        let len = rest.find(|c| !part_of_id(c)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(len);
        let id = word.trim_end_matches('.');
        if id != own && id.contains(['.', '-']) && known.contains(id) {
            let _ = write!(out, "<a href=\"#{id}\">{id}</a>{}", &".".repeat(word.len() - id.len()));
        } else {
            out.push_str(&html::escape(word));
        }
        let gap = tail.find(part_of_id).unwrap_or(tail.len());
        let (between, next) = tail.split_at(gap);
        out.push_str(&html::escape(between));
        rest = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain;

    #[test]
    fn the_reference_has_every_page_once_and_no_dead_link() {
        let catalog = Catalog::shared();
        let ids: Vec<&str> = explain::ids(catalog).collect();
        let page = html(catalog, "Reference", &ids);
        let goals: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|p| p.split('"').next())
            .collect();
        let unique: BTreeSet<&str> = goals.iter().copied().collect();
        assert_eq!(unique.len(), goals.len());
        assert_eq!(unique, ids.iter().copied().collect());
        for link in page.split("href=\"#").skip(1).filter_map(|p| p.split('"').next()) {
            assert!(unique.contains(link), "{link}");
        }
        assert!(page.matches("href=\"#gpu-oom.graph-capture\"").count() > 1);
    }
}
