//! Pages of `coroner explain` as one HTML file or as Markdown.
//!
//! Owns the links between pages. The words are those of the pages themselves.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::catalog::Catalog;
use crate::report::html;

/// The pages of these ids as one HTML file; an id named on a page leads to its own page, if that is among them.
pub fn html(catalog: &Catalog, title: &str, ids: &[&str]) -> String {
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    let (mut nav, mut main) = (String::new(), String::new());
    let mut written = BTreeSet::new();
    for id in ids {
        let Some(page) = super::page(catalog, id).filter(|_| written.insert(*id)) else {
            continue;
        };
        let name = html::escape(id);
        let _ = writeln!(nav, "<li><a href=\"#{name}\">{name}</a></li>");
        let text: Vec<String> = page.lines().map(|line| linked(line, id, &known)).collect();
        let _ = writeln!(
            main,
            "<section aria-labelledby=\"{name}\">\n<h2 id=\"{name}\">{name}</h2>\n<pre>{}</pre>\n</section>",
            text.join("\n")
        );
    }
    let body = format!(
        "<header><h1>{0}</h1></header>\n<nav aria-label=\"Pages\">\n<ul>\n{nav}</ul>\n</nav>\n<main>\n{main}</main>",
        html::escape(title)
    );
    html::document(title, "", &body)
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
        let catalog = Catalog::shared().unwrap();
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
