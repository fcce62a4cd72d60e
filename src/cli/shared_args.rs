//! Arguments that several commands share.
//!
//! Owns their parser and the meaning of each value, once for all commands. Never acts on one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use regex::Regex;

/// The rules in force.
#[derive(Debug, Clone, Args)]
pub struct RuleChoice {
    /// Rules of your own beside the built-in ones: a file NAME.toml, or a folder with such files; can be given several
    /// times, and CORONER_RULES holds what is used without it. "none" switches off all built-in signatures of root
    /// causes, to see what structure alone gives
    #[arg(long, value_name = "DIR|none")]
    pub rules: Vec<PathBuf>,
}

/// What judges, and what the exit status makes of it.
#[derive(Debug, Args)]
pub struct Judging {
    /// The rules in force.
    #[command(flatten)]
    pub rules: RuleChoice,

    /// Outcomes, cause families or causes, separated by commas, that exit with 1; an examination exits with 3 where
    /// the cause is unknown, and takes "failed" without this option
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub fail_on: Option<Vec<String>>,
}

/// What is taken out of a report before it is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sharing the report")]
pub struct Redact {
    /// What to replace by pseudonyms: secrets; identity: also hosts, addresses, users and home folders, e-mail
    /// addresses, buckets; all: also models and custom patterns
    #[arg(
        long = "redact",
        value_enum,
        default_value_t,
        value_name = "secrets|identity|all",
        hide_possible_values = true
    )]
    pub level: RedactLevel,

    /// Make the pseudonyms from this key, so that the same host has the same one in every report made with it
    #[arg(long = "redact-key", value_name = "KEY")]
    pub key: Option<String>,

    /// Keep in FILE what each pseudonym stands for; those that FILE already holds are used again. Secrets never
    /// enter it
    #[arg(long = "redact-map", value_name = "FILE")]
    pub map: Option<PathBuf>,

    /// Also replace what this regular expression matches; takes effect at --redact all
    #[arg(long = "redact-pattern", value_name = "REGEX")]
    pub patterns: Vec<Regex>,
}

/// How much is taken out of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum RedactLevel {
    /// Tokens, passwords, keys and credentials
    #[default]
    Secrets,
    /// Also who and where
    Identity,
    /// Also models and custom patterns
    All,
}
