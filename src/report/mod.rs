//! The report model and its views.
//!
//! Owns the choice of view. Every view is a function of the [`Report`](model::Report) alone: it reads no input,
//! asks no clock and no environment, and passes every text of the log through [`text::safe`].

pub mod json;
pub mod markdown;
pub mod model;
#[cfg(test)]
pub(crate) mod sample;
pub mod snippet;
pub mod terminal;
pub mod text;
#[cfg(test)]
mod views_test;
mod words;

use model::Report;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// For people, on a terminal or in a file.
    #[default]
    Terminal,
    /// For issues and merge requests on GitHub and GitLab.
    Markdown,
    /// For programs: one indented object. [`json::line`] gives the same object on one line.
    Json,
}

impl Format {
    /// Every format.
    pub const ALL: &[Self] = &[Self::Terminal, Self::Markdown, Self::Json];
}

/// How a view may look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal view.
    pub width: usize,
    /// Whether the terminal view may use colour.
    pub color: bool,
    /// Whether to list the terms that make up the confidence.
    pub explain_confidence: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            width: 80,
            color: false,
            explain_confidence: false,
        }
    }
}

/// The report in the given format, ending in a line break.
pub fn render(report: &Report, format: Format, style: &Style) -> String {
    match format {
        Format::Terminal => terminal::render(report, style),
        Format::Markdown => markdown::render(report, style),
        Format::Json => json::object(report),
    }
}
