//! Settings from a file: `coroner.toml`, whose keys are the long options.
//!
//! Owns where the file is looked for, what its keys mean and what is wrong with them. Its values become the defaults
//! of the parser, so that the command line counts more. Never acts on a setting.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgAction, Command};
use miette::{Diagnostic, NamedSource, SourceSpan};
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::args::Looks;
use super::error::CliError;
use super::rules::VARIABLE;

/// Name of the file.
const NAME: &str = "coroner.toml";
/// Options that only make sense on a command line.
const ASIDE: [&str; 6] = ["help", "version", "config", "no-config", "schema", "all"];
/// An option that has other values in each command.
const OWN: &str = "format";

/// What is wrong at one place of a settings file.
#[derive(Debug, Error, Diagnostic)]
#[error("{text}")]
pub struct ConfigFault {
    text: String,
    #[help]
    help: String,
    #[source_code]
    code: NamedSource<Arc<str>>,
    #[label]
    span: SourceSpan,
}

/// A settings file.
#[derive(Debug)]
pub struct Config {
    path: PathBuf,
    text: Arc<str>,
}

/// One setting.
struct Setting {
    /// The command it is for; all that have the option, where there is none.
    command: Option<String>,
    key: String,
    values: Vec<String>,
    key_span: Range<usize>,
    value_span: Range<usize>,
}

impl Config {
    /// The file that is named, or the first that exists where one is looked for.
    ///
    /// # Errors
    /// When the named one cannot be read.
    pub fn of(looks: &Looks) -> Result<Option<Self>, CliError> {
        let read = |path: &Path| fs::read_to_string(path);
        if let Some(path) = &looks.config {
            let text = read(path).map_err(|e| CliError::ConfigFile {
                file: path.display().to_string(),
                text: e.to_string(),
            })?;
            return Ok(Some(Self::new(path, &text)));
        }
        let mut places = if looks.no_config { Vec::new() } else { places() };
        // One that is there and cannot be read is no reason to make no report.
        let found = places
            .drain(..)
            .find_map(|path| read(&path).ok().map(|text| (path, text)));
        Ok(found.map(|(path, text)| Self::new(&path, &text)))
    }

    fn new(path: &Path, text: &str) -> Self {
        Self {
            path: path.to_path_buf(),
            text: Arc::from(text),
        }
    }

    /// The parser with these settings as its defaults.
    ///
    /// # Errors
    /// When the file is no TOML, a key is no option, or a value is none of that option.
    pub fn apply(&self, mut parser: Command) -> Result<Command, CliError> {
        for setting in self.settings()? {
            let fits = |command: &Command| option(command, &setting.key).cloned();
            let of_commands = parser.get_subcommands().filter(|c| match &setting.command {
                Some(name) => c.get_name() == name,
                None => setting.key != OWN,
            });
            let names: Vec<String> = of_commands
                .filter(|c| fits(c).is_some())
                .map(|c| c.get_name().to_owned())
                .collect();
            let own = fits(&parser).filter(|_| setting.command.is_none());
            let known = own.clone().or_else(|| {
                let first = names.first()?;
                fits(parser.find_subcommand(first)?)
            });
            let Some(known) = known else {
                return Err(self.unknown(&parser, &setting));
            };
            self.test(&known, &setting)?;
            // What the environment says counts more than a file.
            if setting.key == "rules" && std::env::var_os(VARIABLE).is_some_and(|v| !v.is_empty()) {
                continue;
            }
            let values = self.placed(&setting);
            let set = |arg: Arg| match arg.get_long() == Some(setting.key.as_str()) {
                true => arg.default_values(values.clone()),
                false => arg,
            };
            if own.is_some() {
                parser = parser.mut_args(set);
            }
            for name in &names {
                parser = parser.mut_subcommand(name, |command| command.mut_args(set));
            }
        }
        Ok(parser)
    }

    /// Rules are looked for beside the file that names them.
    fn placed(&self, setting: &Setting) -> Vec<OsString> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let place = |value: &String| match setting.key == "rules" && value != "none" && value != "all" {
            true => folder.join(value).into_os_string(),
            false => value.into(),
        };
        setting.values.iter().map(place).collect()
    }

    fn settings(&self) -> Result<Vec<Setting>, CliError> {
        let root = DeTable::parse(&self.text).map_err(|e| {
            self.fault(
                e.message().replace('\n', ", "),
                "settings are written as in TOML",
                e.span().unwrap_or(0..0),
            )
        })?;
        let mut settings = Vec::new();
        for (key, value) in root.get_ref() {
            match value.get_ref() {
                DeValue::Table(table) => {
                    for (inner, value) in table {
                        settings.extend(self.setting(Some(key.get_ref()), inner, value)?);
                    }
                }
                _ => settings.extend(self.setting(None, key, value)?),
            }
        }
        // What is said of one command counts more than what is said of all.
        settings.sort_by_key(|s| s.command.is_some());
        Ok(settings)
    }

    fn setting(
        &self,
        command: Option<&str>,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Option<Setting>, CliError> {
        let one = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(n) => Some(n.as_str().replace('_', "")),
            DeValue::Float(x) => Some(x.as_str().replace('_', "")),
            DeValue::Boolean(b) => Some(b.to_string()),
            DeValue::Datetime(time) => Some(time.to_string()),
            DeValue::Array(_) | DeValue::Table(_) => None,
        };
        let values: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|v| one(v.get_ref())).collect(),
            single => one(single).map(|v| vec![v]),
        };
        let Some(values) = values else {
            return Err(self.fault(
                "a setting is a text, a number, true or false, or a list of these".to_owned(),
                "options of one command stand in a table of its name, as [scan]",
                value.span(),
            ));
        };
        Ok((!values.is_empty()).then(|| Setting {
            command: command.map(ToOwned::to_owned),
            key: key.get_ref().to_string(),
            values,
            key_span: key.span(),
            value_span: value.span(),
        }))
    }

    /// Whether the values are of the option.
    fn test(&self, known: &Arg, setting: &Setting) -> Result<(), CliError> {
        let long = known.get_long().unwrap_or_default().to_owned();
        let flag = matches!(known.get_action(), ArgAction::SetTrue | ArgAction::SetFalse);
        let wrong =
            |text: String| Err(self.fault(text, "`coroner --help` lists the values", setting.value_span.clone()));
        if flag {
            return match setting.values.as_slice() {
                [value] if value == "true" || value == "false" => Ok(()),
                _ => wrong(format!("`{long}` is true or false")),
            };
        }
        if setting.values.len() > 1 && !matches!(known.get_action(), ArgAction::Append) {
            return wrong(format!("`{long}` takes one value"));
        }
        let alone = Arg::new("value")
            .long(long.clone())
            .value_parser(known.get_value_parser().clone())
            .action(known.get_action().clone());
        let given = setting.values.iter().map(|value| format!("--{long}={value}"));
        let parsed = Command::new("coroner")
            .arg(alone)
            .try_get_matches_from(std::iter::once("coroner".to_owned()).chain(given));
        match parsed {
            Ok(_) => Ok(()),
            Err(e) => {
                let text = e.to_string();
                let first = text.lines().next().unwrap_or_default();
                wrong(first.trim_start_matches("error: ").to_owned())
            }
        }
    }

    fn unknown(&self, parser: &Command, setting: &Setting) -> CliError {
        let commands = || std::iter::once(parser).chain(parser.get_subcommands());
        if let Some(name) = &setting.command
            && parser.find_subcommand(name).is_none()
        {
            let help = "a table has the name of a command: scan, explain or catalog";
            return self.fault(format!("there is no command `{name}`"), help, setting.key_span.clone());
        }
        let longs = commands().flat_map(|c| c.get_arguments().filter_map(Arg::get_long));
        let best = longs
            .filter(|long| !ASIDE.contains(long))
            .map(|long| (strsim::normalized_damerau_levenshtein(long, &setting.key), long))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let help = match best {
            Some((score, long)) if score > 0.5 && long != setting.key => format!("do you mean `{long}`?"),
            _ => "the keys are the long options without their dashes, see `coroner --help`".to_owned(),
        };
        self.fault(
            format!("`{}` is no setting", setting.key),
            &help,
            setting.key_span.clone(),
        )
    }

    fn fault(&self, text: String, help: &str, span: Range<usize>) -> CliError {
        CliError::Config(Box::new(ConfigFault {
            text,
            help: help.to_owned(),
            code: NamedSource::new(self.path.display().to_string(), Arc::clone(&self.text)),
            span: span.into(),
        }))
    }
}

/// The option of a command that may stand in a file.
fn option<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    let named = |arg: &&Arg| arg.get_long() == Some(key) && !ASIDE.contains(&key);
    command.get_arguments().find(named)
}

/// Where a file is looked for: this folder, that of the user, those of the machine.
fn places() -> Vec<PathBuf> {
    let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let user = value("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| value("HOME").map(|home| Path::new(&home).join(".config")));
    let machine = value("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".into());
    let folders = user
        .into_iter()
        .chain(std::env::split_paths(&machine).collect::<Vec<_>>());
    let xdg = folders.map(|folder| folder.join("coroner").join(NAME));
    std::iter::once(PathBuf::from(NAME)).chain(xdg).collect()
}
