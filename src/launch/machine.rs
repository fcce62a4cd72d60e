//! The phase state machine: one per process and attempt, over the engine's own order of phases.
//!
//! Owns the order tables and the rule of transition: forward, or back only where the marker is known to stand for
//! nested or repeated work. Missing markers are normal, so any forward step is allowed.

use std::collections::HashMap;

use super::Placed;
use super::order::Moment;
use super::processes::Processes;
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::{Fact, Program};

/// The engine of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// vLLM with the V1 engine, or a vLLM that does not say.
    Vllm,
    /// vLLM with the V0 engine.
    VllmV0,
    /// SGLang up to 0.5.13, or an SGLang that does not say.
    Sglang,
    /// SGLang 0.5.18 and later, which may size its cache again after capture.
    SglangPostCapture,
    /// Ray without a known engine on it.
    Ray,
    /// torchrun or plain torch.distributed.
    Torch,
    /// A bare NCCL job.
    Nccl,
    /// None that is known.
    #[default]
    Unknown,
}

/// vLLM V1: the profile run compiles, so the two share a tier; kernels are compiled again before capture.
const VLLM: &[&[&str]] = &[
    &["process-start"],
    &["config"],
    &["cluster-join"],
    &["device-init"],
    &["distributed-init"],
    &["model-fetch", "weight-load"],
    &["memory-profile", "compile"],
    &["kv-cache"],
    &["graph-capture"],
    &["warmup"],
    &["serve-start"],
    &["serving"],
    &["shutdown"],
];

/// vLLM V0: nothing is compiled in the profile run; extra sizes are compiled between the cache and capture.
const VLLM_V0: &[&[&str]] = &[
    &["process-start"],
    &["config"],
    &["cluster-join"],
    &["device-init"],
    &["distributed-init"],
    &["model-fetch", "weight-load"],
    &["memory-profile"],
    &["kv-cache"],
    &["compile"],
    &["graph-capture"],
    &["warmup"],
    &["serve-start"],
    &["serving"],
    &["shutdown"],
];

/// SGLang 0.5.18 and later: attention back ends are tuned before capture, and the cache may be sized again after it.
const SGLANG_POST_CAPTURE: &[&[&str]] = &[
    &["process-start"],
    &["config"],
    &["cluster-join"],
    &["device-init"],
    &["distributed-init"],
    &["model-fetch", "weight-load"],
    &["memory-profile"],
    &["compile"],
    &["kv-cache", "graph-capture"],
    &["warmup", "serve-start"],
    &["serving"],
    &["shutdown"],
];

/// SGLang: the pool is allocated before capture; uvicorn starts before the warm-up request.
const SGLANG: &[&[&str]] = &[
    &["process-start"],
    &["config"],
    &["cluster-join"],
    &["device-init"],
    &["distributed-init"],
    &["model-fetch", "weight-load"],
    &["memory-profile"],
    &["kv-cache"],
    &["compile"],
    &["graph-capture"],
    &["warmup", "serve-start"],
    &["serving"],
    &["shutdown"],
];

impl Engine {
    /// The engine that each attempt starts. One that shows none, as the daemons of a cluster alone do, is of that which
    /// all speak of.
    pub(super) fn of_attempts(catalog: &Catalog, events: &[Placed], attempts: usize) -> Vec<Self> {
        let all = Self::detect(catalog, || events.iter());
        let own = |attempt: usize| {
            let own = Self::detect(catalog, || events.iter().filter(move |p| p.attempt == attempt));
            if own.serves() { own } else { all }
        };
        match attempts {
            0 | 1 => vec![all],
            several => (0..several).map(own).collect(),
        }
    }

    /// Whether it is an inference engine.
    pub fn serves(self) -> bool {
        matches!(self.id(), Some("vllm" | "sglang"))
    }

    /// The engine that the events speak of: its own launch lines first, then whose log headers are the most.
    fn detect<'e, I: Iterator<Item = &'e Placed>>(catalog: &Catalog, events: impl Fn() -> I) -> Self {
        const CARRIERS: [Engine; 3] = [Engine::Ray, Engine::Torch, Engine::Nccl];
        let mut weights: HashMap<Engine, u64> = HashMap::new();
        for placed in events() {
            let event = &placed.event;
            let signature = catalog.signature(event.signature);
            let weight = match signature.map(|s| s.def.role) {
                Some(Role::Launch | Role::Ready) => 1000,
                Some(Role::Phase) => 20,
                _ => 1,
            };
            let named = signature.map_or("", |s| s.def.program.as_str());
            // The form of a header alone proves no engine: others log in vLLM's and SGLang's layout too.
            let spoken = match event.speaker.program {
                Program::Vllm
                    if !engine_label(
                        event.speaker.label.as_deref(),
                        &["EngineCore", "Worker", "VllmWorker", "APIServer", "ApiServer"],
                    ) =>
                {
                    Program::Unknown
                }
                Program::Sglang if event.speaker.coords.is_empty() => Program::Unknown,
                program => program,
            };
            let of_engine = matches!(spoken, Program::Vllm | Program::Sglang);
            let program = match named {
                // What a carrier's words stand in is the engine's own line.
                "ray" | "torch" | "nccl" if of_engine => spoken,
                "vllm" => Program::Vllm,
                "sglang" => Program::Sglang,
                "ray" => Program::Ray,
                "torch" => Program::Torch,
                "nccl" => Program::Nccl,
                _ => spoken,
            };
            // Engines share code, and with it the words; the path of the code tells whose it is.
            let found = match program {
                Program::Vllm | Program::Sglang if engine_of_frames(&event.fact).is_some() => {
                    engine_of_frames(&event.fact).map(|engine| (engine, weight))
                }
                Program::Vllm => Some((Self::Vllm, weight)),
                Program::Sglang => Some((Self::Sglang, weight)),
                Program::Ray => Some((Self::Ray, weight)),
                Program::Torch => Some((Self::Torch, weight)),
                Program::Nccl => Some((Self::Nccl, weight)),
                _ => engine_of_frames(&event.fact).map(|engine| (engine, 10)),
            };
            if let Some((engine, weight)) = found {
                *weights.entry(engine).or_default() += weight;
            }
        }
        // An engine stands above what it runs on: any trace of vLLM or SGLang beats Ray, Ray beats torch, torch NCCL.
        let best = match (weights.get(&Self::Vllm), weights.get(&Self::Sglang)) {
            (vllm, sglang) if sglang > vllm => Self::Sglang,
            (Some(_), _) => Self::Vllm,
            _ => CARRIERS
                .into_iter()
                .find(|carrier| weights.contains_key(carrier))
                .unwrap_or_default(),
        };
        best.of_generation(catalog, events())
    }

    /// The engine's generation, where one of its own lines is printed by that generation alone.
    fn of_generation<'e>(self, catalog: &Catalog, events: impl Iterator<Item = &'e Placed>) -> Self {
        let signatures = events.filter_map(|p| catalog.signature(p.event.signature));
        let own = signatures.filter(|s| Some(s.def.program.as_str()) == self.id());
        let generation = own.filter_map(|s| s.def.generation.as_deref()).next();
        match (self, generation) {
            (Self::Vllm, Some("v0")) => Self::VllmV0,
            (Self::Sglang, Some("post-capture")) => Self::SglangPostCapture,
            _ => self,
        }
    }

    /// Whether this is SGLang, of any generation.
    pub fn is_sglang(self) -> bool {
        matches!(self, Self::Sglang | Self::SglangPostCapture)
    }

    /// The id used in reports.
    pub fn id(self) -> Option<&'static str> {
        Some(match self {
            Self::Vllm | Self::VllmV0 => "vllm",
            Self::Sglang | Self::SglangPostCapture => "sglang",
            Self::Ray => "ray",
            Self::Torch => "torch",
            Self::Nccl => "nccl",
            Self::Unknown => return None,
        })
    }

    fn table(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::VllmV0 => VLLM_V0,
            Self::Sglang => SGLANG,
            Self::SglangPostCapture => SGLANG_POST_CAPTURE,
            _ => VLLM,
        }
    }

    /// The place of a phase in this engine's order; unknown phases come first.
    pub fn tier(self, phase: &str) -> usize {
        self.table()
            .iter()
            .position(|tier| tier.contains(&phase))
            .map_or(0, |i| i + 1)
    }
}

fn engine_label(label: Option<&str>, known: &[&str]) -> bool {
    label.is_some_and(|l| known.iter().any(|k| l.starts_with(k)))
}

fn engine_of_frames(fact: &Fact) -> Option<Engine> {
    let Fact::Traceback(traceback) = fact else { return None };
    let has = |part: &str| {
        traceback
            .chain
            .iter()
            .flat_map(|e| &e.frames)
            .any(|f| f.file.contains(part))
    };
    if has("/vllm/v1/")
        || has("/vllm/engine/")
        || has("/vllm/worker/")
        || has("/vllm/entrypoints/")
        || has("-packages/vllm/")
    {
        Some(Engine::Vllm)
    } else if has("sglang/srt/") || has("-packages/sglang/") {
        Some(Engine::Sglang)
    } else {
        None
    }
}

/// A phase entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where the event stands.
    pub at: Moment,
    /// Phase.
    pub phase: String,
    /// Whether the marker counts for the whole group.
    pub shared: bool,
    /// Whether it counts for those of the group that have finished what they were doing.
    pub once: bool,
}

/// The path of one process through one attempt.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    entries: Vec<Entry>,
    /// Where a phase was finished, and which.
    finished: Vec<(Moment, String)>,
}

impl Machine {
    /// The phases entered, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The phase just before `now`. A process that is told to end is still judged by what it was doing.
    pub fn at(&self, now: Moment) -> Option<&str> {
        self.entries
            .iter()
            .rev()
            .find(|e| e.at.may_precede(now) && e.phase != "shutdown")
            .map(|e| e.phase.as_str())
    }

    /// The last phase entered before `now` by a marker that counts for the whole group.
    pub fn shared_at(&self, now: Moment) -> Option<&str> {
        self.entries
            .iter()
            .rev()
            .find(|e| e.at.may_precede(now) && e.shared && e.phase != "shutdown")
            .map(|e| e.phase.as_str())
    }

    /// The last phase entered before `now` by a marker that counts for those who have finished what they were doing.
    pub fn once_at(&self, now: Moment) -> Option<&str> {
        let mut entries = self.entries.iter().rev();
        entries
            .find(|e| e.at.may_precede(now) && e.once)
            .map(|e| e.phase.as_str())
    }

    /// Whether it is known to have finished the phase in which it is at `now`.
    pub fn has_finished(&self, now: Moment) -> bool {
        let phase = self.at(now);
        self.finished
            .iter()
            .any(|(at, done)| at.may_precede(now) && phase == Some(done.as_str()))
    }

    /// Whether it has begun to load its model, or got further.
    pub fn has_begun_to_load(&self, engine: Engine) -> bool {
        let load = engine.tier("weight-load");
        let began = |phase: &str| phase == "weight-load" || engine.tier(phase) > load && phase != "shutdown";
        self.entries.iter().any(|e| began(&e.phase))
    }

    /// The last phase.
    pub fn last(&self) -> Option<&str> {
        self.entries.last().map(|e| e.phase.as_str())
    }

    /// Whether the process is known to have got further after `then`. That it was started shows no step that it took.
    pub fn advanced_after(&self, then: Moment) -> bool {
        let steps = self.entries.iter().filter(|e| e.at.follows(then));
        steps
            .into_iter()
            .any(|e| e.phase != "shutdown" && e.phase != "process-start")
    }

    fn enter(&mut self, engine: Engine, at: Moment, phase: &str, marker: Marker) {
        let (now, next) = (self.last().map_or(0, |p| engine.tier(p)), engine.tier(phase));
        // Kernels compiled between sizing the cache and capturing are a phase of their own.
        let recompile = phase == "compile" && self.last() == Some("kv-cache");
        if self.last() == Some(phase) || next < now && !marker.back && !recompile {
            return;
        }
        self.entries.push(Entry {
            at,
            phase: phase.to_owned(),
            shared: marker.shared,
            once: marker.once,
        });
    }
}

/// What a marker counts for.
#[derive(Debug, Clone, Copy, Default)]
struct Marker {
    /// The whole group.
    shared: bool,
    /// Those of the group that have finished what they were doing.
    once: bool,
    /// Its phase may be entered from a later one.
    back: bool,
}

/// Runs the machines of all attempts.
pub fn run(catalog: &Catalog, engines: &[Engine], processes: &mut Processes, events: &[Placed]) -> Vec<Vec<Machine>> {
    let count = processes.all().len();
    let mut machines = vec![vec![Machine::default(); count]; engines.len()];
    for (index, placed) in events.iter().enumerate() {
        let engine = engines.get(placed.attempt).copied().unwrap_or_default();
        let Some(signature) = catalog.signature(placed.event.signature) else {
            continue;
        };
        let Some(machine) = machines
            .get_mut(placed.attempt)
            .and_then(|m| m.get_mut(placed.process.0))
        else {
            continue;
        };
        // "… while processing method load_model" is printed by the process that runs it.
        let method = placed
            .event
            .method
            .as_deref()
            .and_then(|m| catalog.structure().phase_of_method(m));
        if let Some(phase) = method.filter(|_| placed.event.victim.is_empty()) {
            // Its device is set up once: Ray may hand on the lines of a worker's two streams in another order.
            let again = engine.tier(phase) >= engine.tier("weight-load");
            let marker = Marker {
                back: again,
                ..Marker::default()
            };
            machine.enter(engine, placed.moment(index), phase, marker);
        }
        let def = &signature.def;
        let phase = match def.role {
            Role::Phase | Role::Launch => def
                .phase
                .as_deref()
                .or((def.role == Role::Launch).then_some("process-start")),
            Role::Ready if is_ready(engine, &def.program) => Some("serving"),
            Role::Ready => Some("serve-start"),
            Role::Stop => def.phase.as_deref(),
            _ => None,
        };
        if let Some(phase) = phase {
            let marker = Marker {
                shared: def.shared,
                once: def.once,
                back: def.back,
            };
            machine.enter(engine, placed.moment(index), phase, marker);
            if def.finishes {
                machine.finished.push((placed.moment(index), phase.to_owned()));
            }
        }
    }
    machines
}

/// Whether a ready line of `program` means that the engine serves: uvicorn's does for all but SGLang, which starts
/// its HTTP server before the model answers.
pub fn is_ready(engine: Engine, program: &str) -> bool {
    !(engine.is_sglang() && matches!(program, "uvicorn" | "vllm"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::InputId;

    fn path(engine: Engine, phases: &[&str]) -> Vec<String> {
        let mut machine = Machine::default();
        for (index, phase) in phases.iter().enumerate() {
            let at = Moment {
                index,
                input: InputId::default(),
                stretch: 0,
                dated: false,
            };
            machine.enter(engine, at, phase, Marker::default());
        }
        machine.entries().iter().map(|e| e.phase.clone()).collect()
    }

    #[test]
    fn generations_differ_in_what_may_follow_what() {
        // V1 compiles inside its profile run, and the run goes on afterwards; V0 does not.
        let profile = ["weight-load", "compile", "memory-profile", "kv-cache"];
        assert_eq!(path(Engine::Vllm, &profile), profile);
        assert_eq!(path(Engine::VllmV0, &profile), ["weight-load", "compile"]);
        // Only newer SGLang sizes its cache again after capture.
        let sized = ["kv-cache", "graph-capture", "kv-cache", "warmup"];
        assert_eq!(path(Engine::SglangPostCapture, &sized), sized);
        assert_eq!(path(Engine::Sglang, &sized), ["kv-cache", "graph-capture", "warmup"]);
    }

    #[test]
    fn configuration_lines_that_are_repeated_late_lead_nowhere() {
        assert_eq!(
            path(Engine::Vllm, &["config", "warmup", "config", "serving"]),
            ["config", "warmup", "serving"]
        );
    }
}
