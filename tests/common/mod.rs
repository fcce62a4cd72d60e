//! The corpus and how the tests examine it.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};

use coroner::catalog::Catalog;
use coroner::intake::{InputSpec, Limits, discover};
use coroner::report::model::{Process, Report};
use serde::Deserialize;

/// The formats of a report, as `--format` names them.
pub const FORMATS: &[&str] = &[
    "terminal",
    "markdown",
    "json",
    "html",
    "jira",
    "slack",
    "github",
    "oneline",
    "termination",
];

/// A label, as far as the tests use it. Its fields are described in `corpus/README.md`.
#[derive(Debug, Deserialize)]
pub struct Case {
    pub id: String,
    pub outcome: String,
    pub phase: Option<String>,
    pub cause: Option<String>,
    #[serde(default)]
    pub acceptable_outcomes: Vec<String>,
    #[serde(default)]
    pub acceptable_phases: Vec<String>,
    #[serde(default)]
    pub acceptable_causes: Vec<String>,
    #[serde(default)]
    pub root_lines: Vec<u64>,
    #[serde(default)]
    pub consequence_lines: Vec<u64>,
    #[serde(default)]
    pub roots: Vec<Places>,
    #[serde(default)]
    pub consequences: Vec<Places>,
    #[serde(default)]
    pub inputs: Vec<String>,
    pub session_supports: Option<bool>,
}

/// Lines of one file of a folder.
#[derive(Debug, Deserialize)]
pub struct Places {
    pub input: String,
    pub lines: Vec<u64>,
}

impl Case {
    /// The path of this case with the given ending, relative to the package, so that reports name it the same everywhere.
    pub fn path(&self, ending: &str) -> PathBuf {
        Path::new("corpus").join(format!("{}{ending}", self.id))
    }

    /// The log beside the label.
    pub fn log(&self) -> Option<PathBuf> {
        Some(self.path(".log")).filter(|path| path.is_file())
    }

    /// The folder beside the label, where it shows what the label says.
    pub fn folder(&self) -> Option<PathBuf> {
        Some(self.path(".d")).filter(|path| path.is_dir() && self.session_supports != Some(false))
    }
}

/// All cases, by id.
pub fn cases() -> Vec<Case> {
    let entries = fs::read_dir("corpus").expect("the corpus stands beside the tests");
    let mut labels: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    labels.retain(|path| path.extension().is_some_and(|e| e == "json"));
    labels.sort();
    assert!(labels.len() > 30, "the corpus has shrunk to {} cases", labels.len());
    let read = |path: &PathBuf| serde_json::from_str(&fs::read_to_string(path).unwrap());
    labels
        .iter()
        .map(|path| read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .collect()
}

/// One case.
pub fn case(id: &str) -> Case {
    cases()
        .into_iter()
        .find(|case| case.id == id)
        .unwrap_or_else(|| panic!("no case {id}"))
}

/// Examines paths as the command line does.
pub fn examine(paths: &[PathBuf]) -> Report {
    examine_with(paths, &coroner::Options::default())
}

/// Examines paths as the command line does.
pub fn examine_with(paths: &[PathBuf], options: &coroner::Options) -> Report {
    let found = discover(paths, &Limits::default());
    coroner::examine(Catalog::shared(), &found.inputs, options)
}

/// Examines texts as the inputs of one incident.
pub fn examine_texts(inputs: &[Text]) -> Report {
    examine_texts_with(inputs, &coroner::Options::default())
}

/// The same, otherwise than by default.
pub fn examine_texts_with(inputs: &[Text], options: &coroner::Options) -> Report {
    let inputs: Vec<InputSpec> = inputs
        .iter()
        .map(|text| InputSpec::memory(text.name.clone(), text.bytes.clone()))
        .collect();
    coroner::examine(Catalog::shared(), &inputs, options)
}

/// One input in memory.
#[derive(Debug, Clone)]
pub struct Text {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Text {
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
        }
    }

    /// A file, named below the package.
    pub fn read(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self::new(path.to_string_lossy(), bytes)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    /// The lines that pass, each with its line end.
    pub fn keep(&self, keep: impl Fn(&str) -> bool) -> Self {
        let kept: String = self.text().split_inclusive('\n').filter(|line| keep(line)).collect();
        Self::new(self.name.clone(), kept)
    }

    /// Exchanges the two words of each pair for each other.
    pub fn swap(&self, pairs: &[(&str, &str)]) -> Self {
        let mut text = self.text().to_owned();
        for (a, b) in pairs {
            assert!(
                text.contains(a) || text.contains(b),
                "{}: neither {a} nor {b}",
                self.name
            );
            text = text.replace(a, "\u{1}").replace(b, a).replace('\u{1}', b);
        }
        Self::new(self.name.clone(), text)
    }
}

/// A healthy vLLM server that still serves: a recorded one up to its shutdown.
pub fn healthy_vllm() -> Text {
    let mut log = Text::read("corpus/healthy-8b-graphs.log");
    let end = log.text().find("[shutdown]").expect("it was shut down");
    let end = log.text()[..end].rfind('\n').map_or(0, |at| at + 1);
    log.bytes.truncate(end);
    log
}

/// The process that a report names as the root's.
pub fn root_process(report: &Report) -> &Process {
    let id = report.root.as_ref().and_then(|root| root.place.process.as_ref());
    let process = report.processes.iter().find(|process| Some(&process.id) == id);
    process.unwrap_or_else(|| panic!("no root process {id:?}: {}", report.headline))
}

/// Number of lines of a file.
pub fn lines_of(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    bytes.split_inclusive(|b| *b == b'\n').count() as u64
}

/// What a worker of vLLM logs, each line behind `head`, when an error ends the loading of its model.
pub fn load_failure(head: &str, error: &str) -> String {
    [
        "WorkerProc hit an exception.",
        "Traceback (most recent call last):",
        "  File \"/usr/lib/python3/dist-packages/vllm/v1/worker/gpu_worker.py\", line 300, in load_model",
        "    self.model_runner.load_model()",
        error,
    ]
    .map(|line| format!("{head} [multiproc_executor.py:1007] {line}\n"))
    .concat()
}
