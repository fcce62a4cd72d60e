//! What structure alone says: where in the code an exception arose, and of which type it is.
//!
//! Owns the tables of frames, places and exceptions. Never looks at a message's words.

use std::borrow::Cow;

use super::entries::Table;
use super::keys::Keys;
use super::modules;
use super::schema::{ExceptionDef, FrameDef, PlaceDef};
use crate::event::Frame;

/// Whose code a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The engine itself: vLLM, SGLang, Ray.
    Engine,
    /// Code shipped with a model, or an engine's model definition.
    ModelCode,
    /// An installed package or the standard library.
    Library,
    /// Anything else: the user's own script.
    UserScript,
}

impl Origin {
    /// The id used in reports.
    pub fn id(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::ModelCode => "model-code",
            Self::Library => "library",
            Self::UserScript => "user-script",
        }
    }
}

/// Where in the launch a traceback arose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Phase of the process.
    pub phase: Option<String>,
    /// Subsystem.
    pub subsystem: Option<String>,
    /// Family that the place hints at.
    pub family: Option<String>,
    /// Cause of an exception of an ambiguous type, where the innermost frame is a place that fails in one way.
    pub cause: Option<String>,
    /// Cause of a device out-of-memory raised here.
    pub oom: Option<String>,
    /// Whether only rows that defer to their caller matched.
    pub deferred: bool,
}

/// The tables.
pub struct Structure {
    /// Rows of the frame table, by their modules.
    pub(super) frames: Table<FrameDef>,
    /// Functions that they name.
    pub(super) functions: Keys,
    /// Rows of places, by their modules.
    pub(super) places: Table<PlaceDef>,
    /// Signatures and types of exceptions that they are of.
    pub(super) subjects: Keys,
    /// Rows of exceptions, by their types.
    pub(super) exceptions: Table<ExceptionDef>,
}

impl Structure {
    /// Indexes the tables.
    pub fn new(frames: Vec<FrameDef>, places: Vec<PlaceDef>, exceptions: Vec<ExceptionDef>) -> Self {
        let numbered = (0..).zip(&frames);
        let functions = numbered.flat_map(|(i, row)| row.function.iter().map(move |name| (name.as_str(), i)));
        let numbered = (0..).zip(&places);
        let subjects = numbered.flat_map(|(i, row)| row.of.iter().map(move |of| (of.as_str(), i)));
        Self {
            functions: Keys::new(functions),
            subjects: Keys::new(subjects),
            frames: Table::keyed(frames, |row| vec![row.module.as_str()]),
            places: Table::keyed(places, |row| vec![row.module.as_str()]),
            exceptions: Table::keyed(exceptions, |row| vec![row.kind.as_str()]),
        }
    }

    /// The row of an exception type: the full type first, then its last part.
    pub fn exception(&self, kind: &str) -> Option<&ExceptionDef> {
        let kind = kind.split('(').next().unwrap_or(kind);
        let last = kind.rsplit('.').next().unwrap_or(kind);
        let of_type = |kind| self.exceptions.having(kind).last();
        of_type(kind).or_else(|| of_type(last))
    }

    /// The row that fits one frame best: a named function before a whole module, the longer module path first.
    pub fn frame(&self, frame: &Frame) -> Option<&FrameDef> {
        let fits = |row: &FrameDef| is_of(&row.function, frame);
        best(&self.frames, frame, fits, |row| {
            (!row.function.is_empty(), row.module.len())
        })
    }

    /// The cause that is typical of the place where one frame stands: a named function before a whole module, the longer
    /// module path first.
    fn place(&self, frame: &Frame, outermost: bool) -> Option<&PlaceDef> {
        let fits = |row: &PlaceDef| row.of.is_empty() && row.outermost == outermost && is_of(&row.function, frame);
        best(&self.places, frame, fits, |row| {
            (!row.function.is_empty(), row.module.len())
        })
    }

    /// The cause of an exception of this type that `signature` knows, where its frames tell it and its text does not.
    pub fn cause_by_place(&self, frames: &[Frame], signature: Option<&str>, kind: &str) -> Option<&str> {
        let last = kind.rsplit('.').next().unwrap_or(kind);
        // A text that a signature knows says more than the type.
        let named = signature.unwrap_or(last);
        self.subjects.get(named).next()?;
        let row = |frame| {
            let fits = |row: &PlaceDef| row.of.iter().any(|of| of == named) && is_of(&row.function, frame);
            best(&self.places, frame, fits, |row| {
                (!row.function.is_empty(), row.module.len())
            })
        };
        frames.iter().rev().find_map(row).map(|row| row.cause.as_str())
    }

    /// The phase that a method's name alone tells, where every row that has it says the same: `load_model` is
    /// `weight-load` in any program that drives workers as vLLM does. Common words (`run`, `step`) tell nothing.
    pub fn phase_of_method(&self, method: &str) -> Option<&str> {
        let method = method.trim_end_matches("()");
        if !method.contains('_') || method.starts_with("__") {
            return None;
        }
        let rows = self.functions.get(method).filter_map(|i| self.frames.get(i));
        let rows = rows.filter(|r| !r.defer);
        let mut phases = rows.map(|r| r.phase.as_str());
        let first = phases.next()?;
        phases.all(|p| p == first).then_some(first)
    }

    /// Where a traceback arose: the innermost frame that a row knows; a row that defers leaves the phase to the
    /// next one outwards, keeping what it knows of family and subsystem.
    pub fn site(&self, frames: &[Frame]) -> Site {
        let inner = || frames.last().and_then(|f| self.place(f, false));
        let place = inner().or_else(|| frames.first().and_then(|f| self.place(f, true)));
        let mut site = Site {
            cause: place.map(|p| p.cause.clone()),
            ..Site::default()
        };
        let (mut fallback, mut deferred): (Option<&FrameDef>, bool) = (None, false);
        for row in frames.iter().rev().filter_map(|f| self.frame(f)) {
            site.family = site.family.or_else(|| row.family.clone());
            site.oom = site.oom.or_else(|| row.oom.clone());
            if site.subsystem.is_none() && !row.subsystem.is_empty() {
                site.subsystem = Some(row.subsystem.clone());
            }
            if !row.defer {
                site.phase = Some(row.phase.clone());
                return site;
            }
            deferred = true;
            // A caller in the same module knows what the step was for; one further out may be any.
            if !row.phase.is_empty() && fallback.is_none_or(|inner| inner.module == row.module) {
                fallback = Some(row);
            }
        }
        site.deferred = deferred;
        // No row knows the module: a script of the user's may still name its functions as the engine does.
        let by_name = || {
            frames
                .iter()
                .rev()
                .find_map(|f| self.phase_of_method(&f.function))
                .map(ToOwned::to_owned)
        };
        site.phase = by_name().or_else(|| fallback.map(|row| row.phase.clone()));
        site
    }

    /// Whether a package was being built or installed: by its own recipe, `setup.py`, or by a tool that a row calls so.
    pub fn is_build(&self, frames: &[Frame]) -> bool {
        let tool = |f: &Frame| self.frame(f).is_some_and(|row| row.subsystem == "package build");
        frames.iter().any(|f| modules::is_end(&f.file, "setup.py") || tool(f))
    }

    /// Whether a script calls a server and does nothing else: all frames are the script's own, a client library's or the
    /// standard library's.
    pub fn is_client_call(&self, frames: &[&Frame]) -> bool {
        let client = |f: &Frame| self.frame(f).is_some_and(|row| row.subsystem == "client call");
        let script = |f: &Frame| {
            &*f.function == "<module>"
                && origin_of(&f.file) == Origin::UserScript
                && !ENGINES.iter().any(|c| f.file.ends_with(c))
        };
        let neutral = |f: &Frame| match origin_of(&f.file) {
            Origin::UserScript => true,
            Origin::Library => !f.file.contains("-packages/"),
            Origin::Engine | Origin::ModelCode => false,
        };
        frames.iter().any(|f| script(f))
            && frames.iter().any(|f| client(f))
            && frames.iter().all(|f| client(f) || neutral(f))
    }

    /// Whether it is the model hub's own command that ran.
    pub fn is_hub_command(frames: &[&Frame]) -> bool {
        let command = |f: &&&Frame| HUB.iter().any(|c| f.file.ends_with(c));
        frames
            .iter()
            .find(|f| &*f.function == "<module>")
            .is_some_and(|f| command(&f))
    }

    /// Whose code the innermost frame is.
    pub fn origin(frames: &[Frame]) -> Option<Origin> {
        frames.last().map(|f| origin_of(&f.file))
    }

    /// Whose code decides: the innermost engine or model frame if there is one, else that of the innermost frame.
    pub fn deciding_origin(frames: &[Frame]) -> Option<Origin> {
        let origins = frames.iter().rev().map(|f| origin_of(&f.file));
        origins
            .clone()
            .find(|o| matches!(o, Origin::Engine | Origin::ModelCode))
            .or_else(|| origins.into_iter().next())
    }
}

/// The row whose module fits the file of a frame and that fits otherwise, with the highest rank; the last of several.
fn best<'t, T>(
    table: &'t Table<T>,
    frame: &Frame,
    fits: impl Fn(&T) -> bool,
    rank: impl Fn(&T) -> (bool, usize),
) -> Option<&'t T> {
    let path = slashed(&frame.file);
    let rows = modules::fitting(table.keys(), &path).filter_map(|i| Some((table.get(i)?, i)));
    let fitting = rows.filter(|(row, _)| fits(row));
    fitting.max_by_key(|(row, i)| (rank(row), *i)).map(|(row, _)| row)
}

/// Whether a row's functions, where it names any, have that of the frame among them.
fn is_of(functions: &[String], frame: &Frame) -> bool {
    functions.is_empty() || functions.iter().any(|f| **f == *frame.function)
}

/// Commands that start an engine or a distributed job.
const ENGINES: [&str; 4] = ["/bin/vllm", "/bin/sglang", "/bin/torchrun", "/bin/ray"];

/// Commands of the model hub.
const HUB: [&str; 2] = ["/bin/hf", "/bin/huggingface-cli"];

/// What lies beside an engine's package in its source tree: recipes, tests and measuring scripts, no engine at work.
const CHECKOUT: [&str; 8] = [
    "/vllm/setup.py",
    "/vllm/tests/",
    "/vllm/benchmarks/",
    "/vllm/examples/",
    "/sglang/python/setup.py",
    "/sglang/test/",
    "/sglang/benchmark/",
    "/sglang/examples/",
];

/// A path as other systems than Windows write it.
fn slashed(path: &str) -> Cow<'_, str> {
    match memchr::memchr(b'\\', path.as_bytes()) {
        Some(_) => path.replace('\\', "/").into(),
        None => path.into(),
    }
}

fn origin_of(file: &str) -> Origin {
    let file = slashed(file);
    let has = |part: &str| file.contains(part);
    if has("/transformers_modules/") || has("vllm/model_executor/models/") || has("sglang/srt/models/") {
        Origin::ModelCode
    } else if CHECKOUT.iter().any(|part| has(part)) {
        Origin::UserScript
    } else if has("/vllm/") || has("/sglang/") || file.starts_with("vllm/") || has("/ray/") && has("-packages/") {
        Origin::Engine
    } else if has("-packages/") || has("/lib/python") || file.starts_with('<') {
        Origin::Library
    } else {
        Origin::UserScript
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(module: &str, function: &[&str], phase: &str, defer: bool) -> FrameDef {
        FrameDef {
            module: module.to_owned(),
            function: function.iter().map(|f| (*f).to_owned()).collect(),
            phase: phase.to_owned(),
            subsystem: String::new(),
            family: None,
            oom: None,
            defer,
        }
    }

    fn frame(file: &str, function: &str) -> Frame {
        Frame {
            file: file.into(),
            line: 1,
            function: function.into(),
            code: "".into(),
        }
    }

    #[test]
    fn a_deferring_row_leaves_the_phase_to_its_caller_and_an_empty_one_to_nobody() {
        let rows = vec![
            row("torch/nn/", &[], "", true),
            row("eng/worker.py", &["profile"], "memory-profile", false),
            row("eng/layers/", &[], "weight-load", true),
        ];
        let table = Structure::new(rows, Vec::new(), Vec::new());
        let forward = frame("/opt/pytorch/torch/nn/module.py", "forward");
        let layer = frame("/srv/my-eng/eng/layers/linear.py", "forward");
        let profile = frame("/srv/eng/worker.py", "profile");
        let site = table.site(&[profile, layer.clone(), forward.clone()]);
        assert_eq!((site.phase.as_deref(), site.deferred), (Some("memory-profile"), false));
        let site = table.site(&[layer, forward.clone()]);
        assert_eq!((site.phase.as_deref(), site.deferred), (Some("weight-load"), true));
        let site = table.site(&[forward]);
        assert_eq!((site.phase, site.deferred), (None, true));
    }

    #[test]
    fn only_the_innermost_frame_is_the_place_of_a_cause() {
        let place = |module: &str, function: &[&str], cause: &str| PlaceDef {
            module: module.to_owned(),
            function: function.iter().map(|f| (*f).to_owned()).collect(),
            cause: cause.to_owned(),
            outermost: false,
            of: Vec::new(),
        };
        let places = vec![
            place("eng/config/", &[], "config.invalid-value"),
            place("eng/", &["check_quant"], "config.quantization"),
        ];
        let table = Structure::new(Vec::new(), places, Vec::new());
        let check = frame("/srv/eng/config/model.py", "check_quant");
        let other = frame("/srv/eng/config/model.py", "__post_init__");
        let cause = |frames: &[Frame]| table.site(frames).cause;
        assert_eq!(
            cause(std::slice::from_ref(&check)).as_deref(),
            Some("config.quantization")
        );
        assert_eq!(cause(&[check.clone(), other]).as_deref(), Some("config.invalid-value"));
        assert_eq!(cause(&[check, frame("/srv/lib/json.py", "loads")]), None);
    }

    #[test]
    fn a_text_that_says_too_little_is_told_by_the_code_that_called() {
        let row = PlaceDef {
            module: "eng/peers.py".to_owned(),
            function: vec!["register".to_owned()],
            cause: "dist.custom-allreduce".to_owned(),
            outermost: false,
            of: vec!["cuda.some-code".to_owned(), "FileNotFoundError".to_owned()],
        };
        let table = Structure::new(Vec::new(), vec![row], Vec::new());
        let (caller, inner) = (
            frame("/srv/eng/peers.py", "register"),
            frame("/srv/lib/ops.py", "__call__"),
        );
        let frames = [caller, inner.clone()];
        let cause = |signature, kind| table.cause_by_place(&frames, signature, kind);
        assert_eq!(
            cause(Some("cuda.some-code"), "RuntimeError"),
            Some("dist.custom-allreduce")
        );
        assert_eq!(cause(None, "builtins.FileNotFoundError"), Some("dist.custom-allreduce"));
        assert_eq!(cause(Some("cuda.other"), "FileNotFoundError"), None);
        assert_eq!(cause(None, "RuntimeError"), None);
        assert_eq!(
            table.cause_by_place(&[inner], Some("cuda.some-code"), "RuntimeError"),
            None
        );
        assert_eq!(table.site(&frames[..1]).cause, None);
    }

    #[test]
    fn a_program_that_fails_at_its_own_start_is_known_by_the_outermost_frame() {
        let start = PlaceDef {
            module: "eng/start.py".to_owned(),
            function: vec!["<module>".to_owned()],
            cause: "ray.worker-start".to_owned(),
            outermost: true,
            of: Vec::new(),
        };
        let table = Structure::new(Vec::new(), vec![start], Vec::new());
        let (begin, end) = (
            frame("/srv/eng/start.py", "<module>"),
            frame("/srv/lib/json.py", "loads"),
        );
        let cause = |frames: &[Frame]| table.site(frames).cause;
        assert_eq!(
            cause(&[begin.clone(), end.clone()]).as_deref(),
            Some("ray.worker-start")
        );
        assert_eq!(cause(&[end, begin]), None);
    }
}
