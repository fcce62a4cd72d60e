//! The report model and its views.
//!
//! Owns the choice of view. Every view is a function of the [`Report`](model::Report) alone: it reads no input,
//! asks no clock and no environment, and passes every text of the log through [`text::safe`].

#[cfg(test)]
mod gallery_test;
pub mod html;
pub mod jira;
pub mod json;
pub mod limit;
pub mod line;
pub mod markdown;
pub mod model;
#[cfg(test)]
pub(crate) mod sample;
pub mod slack;
pub mod snippet;
pub mod terminal;
pub mod text;
#[cfg(test)]
mod views_test;
mod words;

pub use words::attempt as attempt_in_words;

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
    /// For people, in a browser: one file.
    Html,
    /// For Jira: wiki markup.
    Jira,
    /// For Slack: one message.
    Slack,
    /// For CI on GitHub: annotations.
    Github,
    /// For alerts: one line.
    Oneline,
    /// For a Kubernetes termination message: one line of at most 4096 bytes.
    Termination,
}

impl Format {
    /// Every format.
    pub const ALL: &[Self] = &[
        Self::Terminal,
        Self::Markdown,
        Self::Json,
        Self::Html,
        Self::Jira,
        Self::Slack,
        Self::Github,
        Self::Oneline,
        Self::Termination,
    ];

    /// Its name on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Html => "html",
            Self::Jira => "jira",
            Self::Slack => "slack",
            Self::Github => "github",
            Self::Oneline => "oneline",
            Self::Termination => "termination",
        }
    }
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
        Format::Html => html::render(report, style),
        Format::Jira => jira::render(report),
        Format::Slack => slack::render(report, slack::BLOCK_CHARS),
        Format::Github => line::github(report),
        Format::Oneline => line::oneline(report),
        Format::Termination => line::termination(report),
    }
}
