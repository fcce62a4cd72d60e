//! The report: one serialisable model that every output is a view of.
//!
//! Owns the JSON contract `coroner.report/1`. Fields are only ever added; what is not known is `null` or an
//! empty list and never left out. Never computes a verdict and never reads input.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The schema id of [`Report`].
pub const SCHEMA: &str = "coroner.report/1";

/// Id of the finding that the inputs hold other incidents too.
pub const UNRELATED: &str = "inputs.unrelated";

/// The answer to one examination.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// What made the report.
    pub program: ProgramInfo,
    /// What was taken out of this report; `null` where nothing was.
    pub redaction: Option<Redaction>,
    /// The path as given, `-` for standard input, `a.tar.gz!/dir/x.log` for an archive member.
    pub source: String,
    /// `failed`, `healthy`, `degraded`, `running`, `stopped` or `no-launch`.
    pub outcome: Outcome,
    /// At most 120 characters.
    pub headline: String,
    /// Two to four sentences.
    pub story: String,
    /// The engine.
    pub engine: Engine,
    /// Phase of death, or the phase a running launch stands in.
    pub phase: Option<String>,
    /// The cause; `null` only when the launch did not fail.
    pub cause: Option<Cause>,
    /// Rival causes, best first.
    pub alternatives: Vec<Alternative>,
    /// The line that states the cause.
    pub root: Option<Root>,
    /// The exception of the root, if it was one.
    pub exception: Option<ExceptionReport>,
    /// The proof, root first.
    pub evidence: Vec<Evidence>,
    /// Observations beside the verdict.
    pub findings: Vec<Finding>,
    /// Figures of the root process; names carry their unit.
    pub figures: BTreeMap<String, f64>,
    /// Every figure with the place it was read from.
    pub measurements: Vec<Measurement>,
    /// The memory account.
    pub memory: Option<Memory>,
    /// What to change, best first.
    pub remedies: Vec<Remedy>,
    /// What does not help.
    pub will_not_help: Vec<NoHelp>,
    /// Advice printed in the log that is wrong for this cause.
    pub overruled_advice: Vec<Overruled>,
    /// Would the very same launch end the same way?
    pub retry: Retry,
    /// What the log cannot tell and the one command that would.
    pub next_evidence: Vec<NextEvidence>,
    /// Who can act.
    pub owner: String,
    /// The launch as far as the log shows it.
    pub launch: Launch,
    /// The processes.
    pub processes: Vec<Process>,
    /// The path through the phases, in order of lines.
    pub timeline: Vec<TimelineEntry>,
    /// Number of the attempt that the report is on, from 1: the last one unless another was asked for.
    pub attempt: usize,
    /// Attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// The same failure elsewhere has the same one.
    pub fingerprint: Option<String>,
    /// Whether the log is whole.
    pub log: LogState,
    /// What was read.
    pub examined: Examined,
    /// Lines for the snippet, copied at examination time; not part of the JSON contract.
    #[serde(skip)]
    pub snippet: Vec<SnippetLine>,
    /// What became of each process, symmetric ones in one row; not part of the JSON contract.
    #[serde(skip)]
    pub rows: Vec<ProcessRow>,
    /// How the confidence came about, for `--explain-confidence`.
    #[serde(skip)]
    pub confidence_terms: Vec<(String, f64)>,
}

/// Outcome of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Died, has a cause.
    Failed,
    /// Reached serving (or works), no fatal event.
    Healthy,
    /// Healthy, with a real problem.
    Degraded,
    /// The log ends in mid-phase without a fatal event.
    Running,
    /// Orderly end.
    Stopped,
    /// Other servers, builds, clients.
    NoLaunch,
}

impl Outcome {
    /// The id used in reports.
    pub fn id(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::NoLaunch => "no-launch",
        }
    }
}

/// What made the report.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProgramInfo {
    /// Version of coroner.
    pub version: &'static str,
    /// Hash of the rules in force.
    pub catalog: String,
}

/// What was taken out of a report before it was shown. The originals are not in it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Redaction {
    /// `secrets`, `identity` or `all`.
    pub level: String,
    /// What was replaced by pseudonyms, by kind.
    pub replaced: Vec<Replaced>,
}

/// What was replaced of one kind.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Replaced {
    /// The word its pseudonyms begin with: `secret`, `node`, `ip`, `mac`, `user`, `email`, `bucket`, `path`,
    /// `model` or `custom`.
    pub kind: String,
    /// Different values.
    pub values: u64,
    /// Places in the report where they stood.
    pub places: u64,
}

/// The engine.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Engine {
    /// `vllm`, `sglang`, `ray`, `torch`, `nccl` or `null`.
    pub name: Option<String>,
    /// Version as printed.
    pub version: Option<String>,
}

/// The cause of death.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cause {
    /// `family.cause`.
    pub id: String,
    /// Title.
    pub title: String,
    /// 0.0–1.0.
    pub confidence: f64,
    /// `unified`, `draft`, `leftover`.
    pub tags: Vec<String>,
}

/// A rival cause.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Alternative {
    /// `family.cause`.
    pub id: String,
    /// Title.
    pub title: String,
    /// 0.0–1.0.
    pub confidence: f64,
    /// What speaks for it.
    pub why: String,
    /// What speaks against it.
    pub why_not: String,
}

/// Parallel coordinates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CoordsReport {
    /// Data-parallel rank.
    pub dp: Option<u32>,
    /// Pipeline-parallel rank.
    pub pp: Option<u32>,
    /// Tensor-parallel rank.
    pub tp: Option<u32>,
    /// Expert-parallel rank.
    pub ep: Option<u32>,
    /// Rank within the node.
    pub local: Option<u32>,
}

/// A place in the input.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct PlaceReport {
    /// Path, or `-`.
    pub input: String,
    /// Line from 1.
    pub line: u64,
    /// Byte offset of the line.
    pub byte: u64,
    /// RFC 3339, only where the log has a date with year and a zone.
    pub time: Option<String>,
    /// The stamp as printed; none where the line has none of its own.
    pub time_local: Option<String>,
    /// The last stamp above a line that has none of its own: the line is no older.
    pub time_after: Option<String>,
    /// Id in `processes`.
    pub process: Option<String>,
    /// How the line was attributed to the process: `prefix`, `file`, `time`, `continuation` or `none`.
    pub attribution: String,
    /// Global rank.
    pub rank: Option<u32>,
    /// Coordinates.
    pub coords: CoordsReport,
    /// Node.
    pub node: Option<String>,
    /// The line.
    pub text: String,
}

/// The line that states the cause.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Root {
    /// Where.
    #[serde(flatten)]
    pub place: PlaceReport,
    /// Process ids with the same failure.
    pub also_in: Vec<String>,
}

/// One frame.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FrameReport {
    /// File.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Function.
    pub function: String,
}

/// The root's exception.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ExceptionReport {
    /// Type as printed.
    #[serde(rename = "type")]
    pub kind: String,
    /// Message.
    pub message: String,
    /// Frames, outermost first.
    pub frames: Vec<FrameReport>,
    /// Types of the exceptions raised from it, oldest first.
    pub chain: Vec<String>,
    /// `engine`, `model-code`, `library` or `user-script`.
    pub origin: Option<String>,
}

/// One piece of evidence.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Evidence {
    /// Number within the report, from 0.
    pub n: usize,
    /// `root`, `phase`, `figure`, `consequence`, `copy`, `exit` or `context`.
    pub role: String,
    /// Signature that recognised it.
    pub signature: Option<String>,
    /// Where.
    #[serde(flatten)]
    pub place: PlaceReport,
    /// Evidence number that explains it.
    pub explained_by: Option<usize>,
    /// Why.
    pub why: Option<String>,
}

/// An observation beside the verdict.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Finding {
    /// Id.
    pub id: String,
    /// Sentence.
    pub title: String,
    /// `info` or `warning`.
    pub severity: String,
    /// Evidence numbers.
    pub evidence: Vec<usize>,
}

/// A figure and its place.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Measurement {
    /// Name with unit.
    pub name: String,
    /// Value.
    pub value: f64,
    /// As printed.
    pub printed: String,
    /// Process.
    pub process: Option<String>,
    /// Device.
    pub device: Option<u32>,
    /// Line it was read from.
    pub line: u64,
    /// Evidence number, if it is among the evidence.
    pub evidence: Option<usize>,
}

/// One pool of memory and who holds how much of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Memory {
    /// `gpu`, `host` or `unified`.
    pub pool: String,
    /// Process the account is of.
    pub process: Option<String>,
    /// Device index.
    pub device: Option<u32>,
    /// Size of the pool in GiB.
    pub total_gib: Option<f64>,
    /// Free at start in GiB.
    pub free_at_start_gib: Option<f64>,
    /// Requested share in GiB.
    pub requested_gib: Option<f64>,
    /// Holders, largest first.
    pub holders: Vec<Holder>,
    /// By how much it is short, in GiB.
    pub short_by_gib: Option<f64>,
    /// What does not add up, or is missing.
    pub notes: Vec<String>,
}

/// A holder of memory.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Holder {
    /// What: `weights`, `kv-cache`, `graphs`, `process 1413`, ….
    pub what: String,
    /// GiB.
    pub gib: f64,
}

/// One change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Change {
    /// `flag`, `env`, `command` or `config`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Value now.
    pub from: Option<String>,
    /// Value to set.
    pub to: Option<String>,
}

/// A change as it is pasted.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Patch {
    /// `command` (the whole command), `shell`, `compose`, `kubernetes` or `ray-start`.
    pub form: String,
    /// Where it goes.
    pub place: String,
    /// Lines to paste.
    pub text: String,
}

/// One remedy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Remedy {
    /// From 1.
    pub rank: usize,
    /// Id.
    pub id: String,
    /// Sentence.
    pub title: String,
    /// Why it helps.
    pub why: String,
    /// What to change.
    pub change: Vec<Change>,
    /// The change in the form in which the launch was started: on the first remedy that has one.
    pub patch: Vec<Patch>,
    /// What it costs.
    pub cost: String,
    /// `low`, `medium`, `high`.
    pub risk: String,
    /// How to see that it took.
    pub verify: String,
    /// The sum behind the value.
    pub arithmetic: Option<String>,
    /// Evidence numbers.
    pub evidence: Vec<usize>,
    /// Remedy it belongs together with.
    pub pair_with: Option<String>,
}

/// What does not help.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NoHelp {
    /// What people try.
    pub title: String,
    /// Why it does not help.
    pub why: String,
}

/// Advice in the log that is wrong here.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Overruled {
    /// Path, or `-`.
    pub input: String,
    /// Line.
    pub line: u64,
    /// Advice.
    pub text: String,
    /// Why it is wrong.
    pub why: String,
}

/// Retry verdict.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Retry {
    /// `pointless`, `after-change`, `may-help`, `unknown`.
    pub verdict: String,
    /// Why.
    pub why: String,
    /// Whether the same node is advisable.
    pub same_node: Option<bool>,
    /// What has to happen before.
    pub after: Option<String>,
}

/// What to look at next.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NextEvidence {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// Command.
    pub command: String,
}

/// The platform.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Platform {
    /// Name of the GPU.
    pub gpu: Option<String>,
    /// Whether device and host share one pool.
    pub unified_memory: Option<bool>,
}

/// Ids that tie the launch to other systems.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct LaunchIds {
    /// Slurm job id.
    pub slurm_job: Option<String>,
    /// Pod.
    pub pod: Option<String>,
    /// Container.
    pub container: Option<String>,
    /// Ray session.
    pub ray_session: Option<String>,
}

/// The launch.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Launch {
    /// Command line, if the log shows it.
    pub command: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Settings by name.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Platform.
    pub platform: Platform,
    /// First stamp.
    pub started: Option<String>,
    /// Stamp of the root.
    pub died: Option<String>,
    /// Seconds between the two.
    pub seconds_to_death: Option<f64>,
    /// World size.
    pub world_size: Option<u32>,
    /// Number of nodes.
    pub nodes: Option<u32>,
    /// Number of GPUs.
    pub gpus: Option<u32>,
    /// Ids.
    pub ids: LaunchIds,
}

/// One process.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Process {
    /// Id within the report.
    pub id: String,
    /// Role: `api-server`, `engine-core`, `worker`, `scheduler`, `driver`, `raylet`, ….
    pub role: String,
    /// Global rank.
    pub rank: Option<u32>,
    /// Coordinates.
    pub coords: CoordsReport,
    /// Node.
    pub node: Option<String>,
    /// Process id.
    pub pid: Option<i64>,
    /// Last phase it entered.
    pub last_phase: Option<String>,
    /// `signal 9`, `exit 1`, or `null`.
    pub exit: Option<String>,
}

/// A phase entered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TimelineEntry {
    /// Process.
    pub process: String,
    /// Phase.
    pub phase: String,
    /// Path, or `-`.
    pub input: String,
    /// Line.
    pub line: u64,
    /// RFC 3339 or `null`.
    pub time: Option<String>,
    /// Seconds since the first stamp of the launch.
    pub seconds: Option<f64>,
}

/// One attempt.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Attempt {
    /// From 1.
    pub n: usize,
    /// The input that shows its beginning, and in which its lines are counted.
    pub input: Option<String>,
    /// First line.
    pub first_line: u64,
    /// Last line.
    pub last_line: u64,
    /// Outcome.
    pub outcome: Outcome,
    /// Phase.
    pub phase: Option<String>,
    /// Cause.
    pub cause: Option<String>,
    /// Fingerprint.
    pub fingerprint: Option<String>,
}

/// Whether the log is whole.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct LogState {
    /// `launch`, `cut` or `null`.
    pub head: Option<String>,
    /// `exit`, `cut`, `mid-line` or `null`.
    pub tail: Option<String>,
    /// Who never reported.
    pub missing: Vec<String>,
}

/// An input that could not be read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SkippedReport {
    /// Path.
    pub input: String,
    /// Why.
    pub why: String,
}

/// What was read.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Examined {
    /// Inputs read.
    pub files: u64,
    /// Bytes after decompression.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Inputs left out.
    pub skipped: Vec<SkippedReport>,
    /// Limits of coroner's own that were hit.
    pub capped: Vec<String>,
}

/// What became of a process, or of several that ended alike.
#[derive(Debug, Clone, Default)]
pub struct ProcessRow {
    /// The process, or the ranks.
    pub who: String,
    /// How many processes the row stands for.
    pub count: usize,
    /// Their node, or how many.
    pub nodes: Option<String>,
    /// Whether the root cause arose in it.
    pub victim: bool,
    /// Whether it failed as the root's process did.
    pub same: bool,
    /// Last phase entered.
    pub last_phase: Option<String>,
    /// What its first failure amounts to.
    pub said: Option<String>,
    /// `signal 9`, `exit 1`.
    pub exit: Option<String>,
    /// Where the first failure of the first of them stands.
    pub input: Option<String>,
    /// Line of that.
    pub line: Option<u64>,
    /// When that was, as far as stamps tell: `at 11-25T13:00:07`, `after 11-25T13:00:07`.
    pub when: Option<String>,
}

/// One line of the snippet.
#[derive(Debug, Clone)]
pub struct SnippetLine {
    /// Input.
    pub input: String,
    /// Line number.
    pub line: u64,
    /// Text.
    pub text: String,
    /// `root`, `consequence`, `exit` or empty for context.
    pub role: &'static str,
}
