//! The shape of the catalog's data files.
//!
//! Owns the serde types of signatures, structure tables, causes and phases, what each key means, and the JSON Schema
//! made of them. Never matches text (see `matcher`) and never judges (see `verdict`).

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What `strength` of a cause may be.
pub const STRENGTHS: [&str; 3] = ["strong", "generic", "weak"];
/// What `owner` of a cause may be.
pub const OWNERS: [&str; 9] = [
    "launch-config",
    "node",
    "cluster",
    "network",
    "image",
    "model",
    "engine-bug",
    "external",
    "unknown",
];
/// What `retry.verdict` of a cause may be.
pub const RETRIES: [&str; 4] = ["pointless", "after-change", "may-help", "unknown"];
/// What `risk` of a remedy may be.
pub const RISKS: [&str; 3] = ["low", "medium", "high"];
/// What `kind` of a change may be.
pub const CHANGES: [&str; 4] = ["flag", "env", "command", "config"];

/// What a matched line is for the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// States a cause.
    Root,
    /// Says that something failed elsewhere ("see root cause above"); carries an inner text at most.
    Wrapper,
    /// Fails because something else died before.
    Consequence,
    /// Looks like a failure and is none.
    Benign,
    /// A benign-looking or warning line that makes a served launch `degraded`.
    Degraded,
    /// The process enters `phase`.
    Phase,
    /// A launch begins here: banner, `non-default args`, `server_args=`.
    Launch,
    /// The server is ready: requests may run.
    Ready,
    /// An orderly end: shutdown after serving, a batch job that finished.
    Stop,
    /// Tells how a process ended (exit code, signal), its own or another's.
    Exit,
    /// Only carries figures, settings or identity.
    Note,
    /// Output of a program that is no launch (a build, a client, a diagnostic script).
    NoLaunch,
}

impl Role {
    /// Whether it speaks of something that went wrong.
    pub fn is_bad(self) -> bool {
        matches!(
            self,
            Self::Root | Self::Wrapper | Self::Consequence | Self::Degraded | Self::Exit
        )
    }
}

/// Where a signature may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Site {
    /// The start of a message, or anywhere in an exception's message.
    #[default]
    Any,
    /// The start of a message after all prefixes are peeled.
    Message,
    /// Anywhere in a message whose line has a log header of a known program.
    Header,
    /// Anywhere in the message of an exception line.
    Exception,
}

/// One signature.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignatureDef {
    /// Stable id, `program.words-with-dashes`.
    pub id: String,
    /// What it is.
    pub role: Role,
    /// Cause id; `gpu-oom.*` means: by the phase of the process. Required for `root`.
    pub cause: Option<String>,
    /// The program that prints it: `vllm`, `sglang`, `ray`, `nccl`, `torch`, `cuda`, `python`, `kernel`, `k8s`, `slurm`, ….
    pub program: String,
    /// For `phase`: the phase entered. Otherwise the phase that the text itself fixes, if it does.
    pub phase: Option<String>,
    /// Phases in which it can occur; empty means any. Agreement raises confidence.
    #[serde(default)]
    pub phases: Vec<String>,
    /// The only phases in which it states its cause; elsewhere the text means something else.
    #[serde(default)]
    pub only_in: Vec<String>,
    /// Where it may match.
    #[serde(default)]
    pub at: Site,
    /// Regular expression that the full exception type must match (unanchored), for exception sites.
    pub exception: Option<String>,
    /// Regular expression that the source file in the line's header must match (unanchored): NCCL says `Cuda failure`
    /// in every file, and only the file tells what it was doing. Such an entry never matches an exception.
    pub file: Option<String>,
    /// Literal text, one of which must be contained; the longest stable fragments. Never empty, each at least four bytes.
    pub literal: Vec<String>,
    /// Regular expression; without one the literal itself is the pattern. Named groups capture, see the catalog's README.
    pub pattern: Option<String>,
    /// The group `inner` is an exception or message of its own and is looked up in turn.
    #[serde(default)]
    pub quotes: bool,
    /// The quoted text comes from another process, so this line is a report of that one's failure.
    #[serde(default)]
    pub forwards: bool,
    /// How far its process is in joining the group of ranks: `join` when it waits for the others, `met` when they met;
    /// or what an agent does with its ranks: `group-failed` when the first of them has failed, `restart` when it is about
    /// to start them all anew.
    pub step: Option<String>,
    /// Only this generation of the engine prints it: `v0` of vLLM, `post-capture` of SGLang (0.5.18 and later).
    pub generation: Option<String>,
    /// The phase marker is printed by one rank for its whole group.
    #[serde(default)]
    pub shared: bool,
    /// The marker is printed by one rank of its group: it counts for the others as soon as they have finished what they
    /// were doing.
    #[serde(default)]
    pub once: bool,
    /// The marker says that its process has finished the phase.
    #[serde(default)]
    pub finishes: bool,
    /// The marker may be entered from a later phase (nested or repeated work).
    #[serde(default)]
    pub back: bool,
    /// The line tells of one try of several: that it stands there does not mean that the last one failed, and where the
    /// launch gets further it did not.
    #[serde(default)]
    pub retried: bool,
    /// What the line tells of ends nothing by itself: it states the cause of an end that another line tells of, if this one
    /// explains that.
    #[serde(default)]
    pub pending: bool,
    /// Seconds that whom it tells to end has for that: a launch that gets further after them was not ended.
    #[serde(default)]
    pub grace: Option<u32>,
    /// The traceback printed raw right below the message belongs to its record: it was caught and logged.
    #[serde(default)]
    pub heads_traceback: bool,
    /// What an allocation is called that fails behind this marker and before the next, where the phase alone says
    /// something else.
    pub oom: Option<String>,
    /// The text says only that a step failed: a reason beside it, in the same message or chain of exceptions, counts
    /// before it.
    #[serde(default)]
    pub vague: bool,
    /// The text says only that a step failed, however much its cause says elsewhere: it counts as a weak one, and not
    /// at all where an orderly stop had begun.
    #[serde(default)]
    pub weak: bool,
    /// The text is only the code that a library returned: why it did stands in a line before it, or in none of this log.
    #[serde(default)]
    pub code_only: bool,
    /// A peer that is gone brings it about as well as what it states: where another rank is known to have died before, it
    /// is an effect of that.
    #[serde(default)]
    pub of_peer: bool,
    /// The line counts the dead of the node that it names, and names none of them.
    #[serde(default)]
    pub counts: bool,
    /// The line tells of a request that the server has answered.
    #[serde(default)]
    pub answers: bool,
    /// Signature ids, cause ids or `family.*` that this one explains whatever the order of lines.
    #[serde(default)]
    pub explains: Vec<String>,
    /// Signature ids of troubles that are over, as this line says, wherever it stands.
    #[serde(default)]
    pub settles: Vec<String>,
    /// Signature ids of the record that this line goes on with: its victim and figures are added there.
    #[serde(default)]
    pub completes: Vec<String>,
    /// Label of the process that the line tells of, where no word of it does: the one of that name on the teller's node.
    pub tells_of: Option<String>,
    /// Only this global rank prints it: rank 0 keeps the store.
    pub of_rank: Option<u32>,
    /// Sub-reason for causes whose remedies differ by it (`memlock`, `nofile`, `nproc`).
    pub reason: Option<String>,
    /// Title of the cause in this very form, where the general one is too vague.
    pub title: Option<String>,
    /// What the headline says of the process in this very form, where the cause's own is too vague or says the contrary;
    /// `{peer}` becomes the node that the line tells of, or `a peer`.
    pub headline: Option<String>,
    /// What it means in this very form: the sentence of the story that the cause has otherwise.
    pub meaning: Option<String>,
    /// Tags of the verdict: `unified`, `draft`, `leftover`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The advice in this line is wrong for these causes (`id` or `family.*`) for the reason given.
    #[serde(default)]
    pub wrong_advice: BTreeMap<String, WrongAdvice>,
    /// Version range of the program, `0.9.1..0.13.0`, `0.20..`, or empty for all.
    #[serde(default)]
    pub versions: String,
    /// Program, version range and file that print it; or the logs it was seen in.
    pub source: String,
    /// Lines that must match.
    #[serde(rename = "match")]
    pub matches: Vec<String>,
    /// Lines that must not match.
    #[serde(default)]
    pub no_match: Vec<String>,
}

/// Programs that only tell of others, as the catalog names them.
const OBSERVERS: &[&str] = &["kernel", "k8s", "slurm", "systemd", "docker", "earlyoom", "mpi"];

impl SignatureDef {
    /// Whether a kernel or a supervisor says it, which tells of other processes.
    pub fn tells_of_others(&self) -> bool {
        OBSERVERS.contains(&self.program.as_str())
    }
}

/// A row of the frame table: where in the code → which phase.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameDef {
    /// Suffix of the module path, `vllm/v1/worker/gpu_worker.py`, or a directory part ending in `/`.
    pub module: String,
    /// Function names; empty means any function of the module.
    #[serde(default)]
    pub function: Vec<String>,
    /// Phase of the process while this frame runs.
    pub phase: String,
    /// Subsystem, for the report.
    #[serde(default)]
    pub subsystem: String,
    /// Cause family that this place hints at.
    pub family: Option<String>,
    /// Cause of a device out-of-memory raised here, where it is not the phase's own.
    pub oom: Option<String>,
    /// The phase is that of the caller if an outer frame of the table says so (nested work takes the outer phase).
    #[serde(default)]
    pub defer: bool,
}

/// Why advice that a line gives is wrong: the reason alone, or with what it is about and when it holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(from = "AdviceForm")]
pub struct WrongAdvice {
    /// The advice, where the whole line would bury it. Takes the placeholders of remedies; without a value for one of
    /// them the line did not give the advice.
    pub advice: Option<String>,
    /// Why it is wrong; takes the same placeholders.
    pub why: String,
    /// Conditions as in remedies; empty for always.
    pub when: Vec<String>,
}

/// The two spellings of [`WrongAdvice`].
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum AdviceForm {
    Reason(String),
    Full {
        advice: Option<String>,
        why: String,
        #[serde(default)]
        when: Vec<String>,
    },
}

impl From<AdviceForm> for WrongAdvice {
    fn from(form: AdviceForm) -> Self {
        match form {
            AdviceForm::Reason(why) => Self {
                advice: None,
                why,
                when: Vec::new(),
            },
            AdviceForm::Full { advice, why, when } => Self { advice, why, when },
        }
    }
}

/// A row of the table of places that fail in one way: an engine's own check, or a library's call with one error.
/// It counts for exceptions of an ambiguous type that are raised right there, in the innermost frame, unless it says otherwise.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceDef {
    /// Suffix of the module path, or a directory part ending in `/`.
    pub module: String,
    /// Function names; empty means any function of the module.
    #[serde(default)]
    pub function: Vec<String>,
    /// It counts where a traceback begins here, whatever code it ends in: a program's own start.
    #[serde(default)]
    pub outermost: bool,
    /// Signatures whose text says too little, and types of exceptions: where one of them is raised here or in code called
    /// from here, this is its cause. Such a row counts for nothing else.
    #[serde(default)]
    pub of: Vec<String>,
    /// The cause.
    pub cause: String,
}

/// A row of the exception table: type → family hint.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExceptionDef {
    /// Last part of the type, `ModuleNotFoundError`, or a full type if it contains a dot.
    #[serde(rename = "type")]
    pub kind: String,
    /// Cause, where the type alone decides it.
    pub cause: Option<String>,
    /// Family hint.
    pub family: Option<String>,
    /// The type alone proves nothing.
    #[serde(default)]
    pub ambiguous: bool,
    /// It only ever reports a failure elsewhere.
    #[serde(default)]
    pub wrapper: bool,
    /// It is how a peer's death shows.
    #[serde(default)]
    pub consequence: bool,
    /// The phase in which alone it is raised, whatever called the code.
    pub phase: Option<String>,
}

/// Would the same launch end the same way?
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryDef {
    /// `pointless`, `after-change`, `may-help` or `unknown`.
    #[schemars(extend("enum" = RETRIES))]
    pub verdict: String,
    /// Reason, one sentence.
    pub why: String,
    /// Whether the same node is advisable.
    pub same_node: Option<bool>,
    /// What has to happen before.
    pub after: Option<String>,
}

/// What does not help.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoHelpDef {
    /// What people try.
    pub title: String,
    /// Why it does not help.
    pub why: String,
    /// Engines it is said for; empty for all.
    #[serde(default)]
    pub engines: Vec<String>,
    /// Conditions that must not hold, as in remedies: what is advised on this evidence is not called vain.
    #[serde(default)]
    pub unless: Vec<String>,
}

/// One command that would show what the log cannot.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceDef {
    /// What to get.
    pub what: String,
    /// Why.
    pub why: String,
    /// The command.
    pub command: String,
    /// Conditions as in remedies (`kubernetes`, `ray`, `slurm`); empty for always.
    #[serde(default)]
    pub when: Vec<String>,
}

/// One cause.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CauseDef {
    /// `family.cause`.
    pub id: String,
    /// Title, a noun phrase of at most 70 characters: "Out of GPU memory during CUDA graph capture".
    pub title: String,
    /// What "{who} …" did, for the headline: "ran out of GPU memory during CUDA graph capture".
    pub headline: String,
    /// Of whom the headline speaks, where that is not the process whose line states the cause; `{node}` becomes the node,
    /// ` (node-b)`, as far as it is known.
    pub subject: Option<String>,
    /// What it means, two to four sentences for `explain` and the story.
    pub meaning: String,
    /// How it differs from its neighbours.
    #[serde(default)]
    pub differs: String,
    /// `strong`, `generic` or `weak`.
    #[serde(default = "strong")]
    #[schemars(extend("enum" = STRENGTHS))]
    pub strength: String,
    /// The phase it has where nothing else tells.
    pub phase: Option<String>,
    /// What it often turns out to be once the deciding line is found, likeliest first: named as alternatives. Only for
    /// weak and generic causes.
    #[serde(default)]
    pub often: Vec<String>,
    /// Phases in which a launch that falls silent without a failure may be held up by it, and how likely that is where
    /// nothing else is known: named as alternatives of a launch that is still running.
    #[serde(default)]
    pub silent_in: BTreeMap<String, f64>,
    /// Who can act: `launch-config`, `node`, `cluster`, `network`, `image`, `model`, `engine-bug`, `external`, `unknown`.
    #[schemars(extend("enum" = OWNERS))]
    pub owner: String,
    /// Retry verdict.
    pub retry: RetryDef,
    /// What does not help.
    #[serde(default)]
    pub will_not_help: Vec<NoHelpDef>,
    /// What to look at next; required for weak causes.
    #[serde(default)]
    pub next_evidence: Vec<EvidenceDef>,
    /// Sources.
    #[serde(default)]
    pub sources: Vec<String>,
}

fn strong() -> String {
    "strong".to_owned()
}

/// One flag, variable, command or configuration value to change.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeDef {
    /// `flag`, `env`, `command` or `config`.
    #[schemars(extend("enum" = CHANGES))]
    pub kind: String,
    /// Name, `--gpu-memory-utilization`.
    pub name: String,
    /// Value now, may hold `{placeholders}` of the formula or `{setting:name}`.
    pub from: Option<String>,
    /// Value to set, same placeholders.
    pub to: Option<String>,
    /// Engines that have it, where the remedy is for more; empty for all of the remedy's.
    #[serde(default)]
    pub engines: Vec<String>,
    /// Versions of the engine that have it, `0.20..`.
    #[serde(default)]
    pub versions: String,
    /// Conditions as in remedies (`kubernetes`, `ray`, `amd`); empty for always.
    #[serde(default)]
    pub when: Vec<String>,
}

/// One remedy.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemedyDef {
    /// Stable id, words with dashes.
    pub id: String,
    /// Imperative sentence without a full stop. `{to}` and other placeholders are filled where a formula gives them.
    pub title: String,
    /// Title when the formula has no figures.
    pub plain_title: Option<String>,
    /// Why it helps.
    pub why: String,
    /// Cause id (or `family.*`) → place within that cause: least invasive and best fitting first.
    #[serde(rename = "for")]
    pub applies: BTreeMap<String, u32>,
    /// Engines it exists in; empty for all.
    #[serde(default)]
    pub engines: Vec<String>,
    /// Versions of that engine it exists in, `0.20..`.
    #[serde(default)]
    pub versions: String,
    /// Conditions that must hold, see `remedy::conditions`.
    #[serde(default)]
    pub when: Vec<String>,
    /// Conditions that must not hold.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Sub-reasons it is for (`unknown`: where none is known); empty for all.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// What to change.
    #[serde(default)]
    pub change: Vec<ChangeDef>,
    /// Formula that computes the placeholders, by name.
    pub formula: Option<String>,
    /// What it costs.
    pub cost: String,
    /// `low`, `medium` or `high`.
    #[schemars(extend("enum" = RISKS))]
    pub risk: String,
    /// Command or observation that shows it took.
    pub verify: String,
    /// Remedy it belongs together with.
    pub pair_with: Option<String>,
    /// Whether it only unblocks (the pressure stays).
    #[serde(default)]
    pub unblocks_only: bool,
    /// Sources.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// One data file.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// Signatures.
    #[serde(default)]
    pub signature: Vec<SignatureDef>,
    /// Frame table.
    #[serde(default)]
    pub frame: Vec<FrameDef>,
    /// Places that fail in one way.
    #[serde(default)]
    pub place: Vec<PlaceDef>,
    /// Exception table.
    #[serde(default)]
    pub exception: Vec<ExceptionDef>,
    /// Causes.
    #[serde(default)]
    pub cause: Vec<CauseDef>,
    /// Remedies.
    #[serde(default)]
    pub remedy: Vec<RemedyDef>,
    /// Ids of built-in signatures and remedies that are out of force.
    #[serde(default)]
    pub silence: Vec<String>,
    /// What is added to built-in entries.
    #[serde(default)]
    pub extend: ExtendDef,
}

impl DataFile {
    /// Takes over the entries of another file, behind its own. What that one silences and extends is not taken over.
    pub fn take_entries(&mut self, mut other: Self) {
        self.signature.append(&mut other.signature);
        self.frame.append(&mut other.frame);
        self.place.append(&mut other.place);
        self.exception.append(&mut other.exception);
        self.cause.append(&mut other.cause);
        self.remedy.append(&mut other.remedy);
    }
}

/// Parts of entries, each with the `id` of a built-in one: a list is added to its list, anything else stands in place
/// of what is there.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendDef {
    /// Parts of signatures.
    #[serde(default)]
    #[schemars(schema_with = "parts::<SignatureDef>")]
    pub signature: Vec<toml::Table>,
    /// Parts of causes.
    #[serde(default)]
    #[schemars(schema_with = "parts::<CauseDef>")]
    pub cause: Vec<toml::Table>,
    /// Parts of remedies.
    #[serde(default)]
    #[schemars(schema_with = "parts::<RemedyDef>")]
    pub remedy: Vec<toml::Table>,
}

/// The schema of a list of entries of which only the id has to be there.
fn parts<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut entry = T::json_schema(generator);
    entry.insert("required".to_owned(), serde_json::json!(["id"]));
    json_schema!({ "type": "array", "items": entry })
}

/// The JSON Schema of a rule file, indented, for editors.
pub fn json_schema() -> String {
    let mut schema = schemars::schema_for!(DataFile);
    schema.insert("title".to_owned(), "A rule file of coroner".into());
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
