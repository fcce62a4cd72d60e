//! Layout of an explain page: headings, facts, lists and quoted lines in 80 columns.
//!
//! Owns indentation and wrapping. Knows nothing of the catalog.

use crate::report::text;

/// Columns of a page.
pub(super) const WIDTH: usize = 80;

/// The page as it grows. A section's heading appears with its first line, so an empty section leaves no trace.
#[derive(Default)]
pub(super) struct Page {
    out: String,
    heading: Option<&'static str>,
}

impl Page {
    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn title(&mut self, id: &str, title: &str) {
        self.wrapped("", "", &format!("{id} – {title}"));
        self.blank();
    }

    pub(super) fn section(&mut self, heading: &'static str) {
        self.heading = Some(heading);
    }

    pub(super) fn blank(&mut self) {
        self.out.push('\n');
    }

    pub(super) fn para(&mut self, text: &str) {
        self.para_at(2, text);
    }

    pub(super) fn para_at(&mut self, indent: usize, text: &str) {
        let indent = " ".repeat(indent);
        self.wrapped(&indent, &indent, text);
    }

    pub(super) fn fact(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.wrapped(&format!("  {name:<15}"), &" ".repeat(17), value);
        }
    }

    pub(super) fn item(&mut self, mark: &str, text: &str) {
        self.wrapped(&format!("  {mark}"), &" ".repeat(2 + mark.len()), text);
    }

    /// A line of a log, in full.
    pub(super) fn quote(&mut self, line: &str) {
        for part in line.lines() {
            self.wrapped("    | ", "    |   ", part);
        }
    }

    pub(super) fn command(&mut self, command: &str) {
        self.out.push_str(&format!("    $ {}\n", text::safe(command)));
    }

    pub(super) fn sources(&mut self, sources: &[String]) {
        self.section("Sources");
        for source in sources {
            self.item("- ", source);
        }
    }

    fn wrapped(&mut self, first: &str, rest: &str, text: &str) {
        if let Some(heading) = self.heading.take() {
            self.out.push_str(&format!("\n{heading}\n"));
        }
        for line in text::wrap(&text::safe(text), WIDTH, first, rest) {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }
}
