//! Several reports on one page: the attempts of a log.
//!
//! Owns the way from report to report: each stands whole, under a heading of its own, with ids that no other has.

use std::fmt::Write;

use super::{document, escape, meta, parts};
use crate::report::model::Report;
use crate::report::text::plural;
use crate::report::{Style, words};

/// Renders the reports, in their order; the last is open, the others open on a click.
pub fn render(reports: &[Report], style: &Style) -> String {
    let (mut nav, mut main) = (String::new(), String::new());
    for (n, report) in (1..).zip(reports) {
        let open = if n == reports.len() { " open" } else { "" };
        let told = format!("Attempt {n}: {}", words::outcome(report));
        let _ = writeln!(nav, "<li><a href=\"#a{n}\">{}</a></li>", escape(&told));
        let _ = writeln!(
            main,
            "<details id=\"a{n}\"{open}>\n<summary>{}</summary>\n{}\n</details>",
            escape(&told),
            apart(&parts(report, style), n)
        );
    }
    let title = format!("{} in one log", plural(reports.len() as u64, "attempt"));
    let body = format!(
        "<header><h1>{title}</h1></header>\n<nav aria-label=\"Attempts\">\n<ul>\n{nav}</ul>\n</nav>\n\
         <main>\n{main}</main>"
    );
    let head = reports.last().map(meta).unwrap_or_default();
    document(&title, &head, &body)
}

/// The parts of a page as parts of a larger one: ids with a prefix, headings one level down. Text of a log has no
/// markup left that could be taken for either.
fn apart(body: &str, n: usize) -> String {
    let mut out = body
        .replace(" id=\"", &format!(" id=\"a{n}-"))
        .replace("href=\"#", &format!("href=\"#a{n}-"))
        .replace("aria-labelledby=\"", &format!("aria-labelledby=\"a{n}-"))
        .replace("<main>", "<div>")
        .replace("</main>", "</div>");
    for level in [3, 2, 1] {
        let below = level + 1;
        out = out
            .replace(&format!("<h{level}"), &format!("<h{below}"))
            .replace(&format!("</h{level}>"), &format!("</h{below}>"));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::sample;

    #[test]
    fn every_attempt_stands_whole_and_every_link_has_one_goal() {
        let reports = [
            sample::graph_capture(),
            sample::hostile("<h1 id=\"x\"> href=\"#y\""),
            sample::graph_capture(),
        ];
        let page = render(&reports, &Style::default());
        let ids: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let goals: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(goals.len(), ids.len(), "{ids:?}");
        for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(goals.contains(link), "{link}");
        }
        assert_eq!(page.matches("<h1>").count(), 1);
        assert_eq!(page.matches("<main>").count(), 1);
        assert_eq!(page.matches("<details ").count(), 3);
        assert_eq!(page.matches(" open>").count(), 1);
        assert!(page.contains("id=\"a3-proof\"") && page.contains("href=\"#a1-proof\""));
        assert_eq!(page.matches("<footer>").count(), 3);
    }
}
