//! By what names supervisors know the launch: of its unit, its pods and its containers.
//!
//! Owns the test whether a supervisor tells of another than the launch's. It needs proof: an engine that speaks under a
//! name of the same kind. Never looks at names of processes, nor at what became of whom.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::outcome::is_judged;
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::catalog::structure::{Origin, Structure};
use crate::event::{Event, Fact};
use crate::launch::Launches;
use crate::launch::names::{is_node_name, is_unit_of_launches, unit};

/// Units in which containers run: an engine may, whatever name it speaks under.
const RUNTIMES: &[&str] = &["docker", "containerd", "crio", "podman"];

/// The names, each found when it is first asked for: nearly no log needs them, and they take a look at all events.
#[derive(Default)]
pub struct OwnNames {
    /// The units in which engines speak, of those that are told of.
    units: OnceCell<BTreeSet<String>>,
    /// The containers in which engines speak.
    containers: OnceCell<BTreeSet<String>>,
    /// The pods of the launch.
    pods: OnceCell<BTreeSet<String>>,
}

impl OwnNames {
    /// Whether a supervisor tells of another unit, pod or container than that of the launch, of which one is known.
    /// `serves` says that the launch came up: only then a listing's row of a running engine is its own.
    pub fn tell_another(&self, catalog: &Catalog, launches: &Launches, event: &Event, serves: bool) -> bool {
        let signature = catalog.signature(event.signature).map(|s| &s.def);
        let program = signature.map(|def| def.program.as_str());
        if let Some(container) = event.setting("probed_container") {
            let own = self.containers(catalog, launches);
            return !own.is_empty() && !own.iter().any(|own| are_one_job(own, container));
        }
        let listed = signature.is_some_and(|def| LISTED.contains(&def.id.as_str()));
        let running = || listed && is_listed(launches, "running_container");
        let Some(label) = event.victim.label.as_deref() else {
            // What is said of a container that runs are the exit codes of its health check.
            return running() && (serves || !is_listed(launches, "ended_container"));
        };
        match program {
            Some("systemd") => self.is_another_unit(catalog, launches, label),
            Some("docker") => {
                let own = self.containers(catalog, launches);
                match own.is_empty() {
                    true => serves && running(),
                    false => !own.iter().any(|own| are_one_service(own, label, listed)),
                }
            }
            Some("k8s") => {
                let own = self.pods(catalog, launches, serves);
                !own.is_empty() && !own.iter().any(|own| are_one_set(own, label))
            }
            _ => false,
        }
    }

    fn containers(&self, catalog: &Catalog, launches: &Launches) -> &BTreeSet<String> {
        self.containers.get_or_init(|| {
            let speakers = engines(catalog, launches).filter_map(|event| event.speaker.container.as_deref());
            speakers.map(str::to_owned).collect()
        })
    }

    /// Those whose lines engines speak in, or that a listing shows to run one.
    fn pods(&self, catalog: &Catalog, launches: &Launches, serves: bool) -> &BTreeSet<String> {
        self.pods.get_or_init(|| {
            let speakers = engines(catalog, launches).map(|event| &event.speaker);
            let pods = speakers.filter_map(|s| s.node.as_ref().filter(|_| s.container.is_some()));
            let own: BTreeSet<String> = pods.map(|pod| pod.to_string()).collect();
            if !own.is_empty() || !serves {
                return own;
            }
            let listed = launches.events.iter().filter_map(|p| p.event.setting("running_pod"));
            listed.map(|pod| pod.to_string()).collect()
        })
    }

    /// A service under whose name no engine speaks, where one speaks under that of another that is told of. Any scope may
    /// be that of a container or a shell that the launch was started in, but those that desktops make for programs.
    fn is_another_unit(&self, catalog: &Catalog, launches: &Launches, label: &str) -> bool {
        let Some(name) = unit(label) else { return false };
        let service = label.ends_with(".service") || name.starts_with("app-");
        if !service || is_unit_of_launches(name) || RUNTIMES.contains(&template(name)) {
            return false;
        }
        let own = self.units.get_or_init(|| {
            let victims = launches.events.iter().filter_map(|p| p.event.victim.label.as_deref());
            let told: BTreeSet<&str> = victims.filter_map(unit).map(template).collect();
            let speakers = engines(catalog, launches).filter_map(|event| event.speaker.unit.as_deref());
            let own = speakers.map(|own| template(unit(own).unwrap_or(own)));
            own.filter(|own| told.contains(own)).map(str::to_owned).collect()
        });
        !own.is_empty() && !own.contains(template(name))
    }
}

/// `serve` of `serve@qwen`: under this name its program speaks.
fn template(unit: &str) -> &str {
    unit.split_once('@').map_or(unit, |(template, _)| template)
}

/// Signatures whose lines tell in a listing how a container ended.
const LISTED: &[&str] = &["compose.status", "docker.status", "docker.exit-code"];

/// Whether a listing shows what is named for an engine to run.
fn is_listed(launches: &Launches, setting: &str) -> bool {
    launches.events.iter().any(|p| p.event.setting(setting).is_some())
}

/// Whether two names can be of containers of one service: alike but for the number, and for the project in front, which
/// compose 1 prints of an end, and listings always. One that has not come to say a word may be one more of the same.
fn are_one_service(own: &str, told: &str, listed: bool) -> bool {
    let (a, b) = (service(own), service(told));
    let project = b.strip_suffix(a).or_else(|| a.strip_suffix(b));
    let joint = project.map(|project| project.chars().next_back());
    // A service may be named for another: `nginx-vllm-1`.
    match joint {
        Some(None) => true,
        Some(Some('_')) => own.contains('_'),
        Some(Some('-')) => listed || b.len() < a.len(),
        _ => false,
    }
}

/// Whether two containers can be of one job: named for the same thing, or for a part of one that runs on several nodes.
fn are_one_job(own: &str, told: &str) -> bool {
    fn thing(name: &str) -> Option<&str> {
        name.split('-').next()
    }
    own == told || thing(own) == thing(told) || is_node_name(told)
}

/// The name of a service without the number of its container.
fn service(container: &str) -> &str {
    container
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches(['-', '_'])
}

/// Whether two pods can be of one job: of one set, or a leader and its workers, whose names begin with the leader's or
/// with that of their cluster.
fn are_one_set(own: &str, told: &str) -> bool {
    fn set(pod: &str) -> Option<&str> {
        pod.rsplit_once('-').map(|(set, _)| set)
    }
    let below = |of: &str| told.strip_prefix(of).is_some_and(|rest| rest.starts_with('-'));
    let cluster = own.split_once("-head-").map(|(cluster, _)| cluster);
    own == told || set(own) == set(told) || below(own) || cluster.is_some_and(below)
}

/// What engines, or programs that one is made of, say.
fn engines<'l>(catalog: &'l Catalog, launches: &'l Launches) -> impl Iterator<Item = &'l Event> {
    launches
        .events
        .iter()
        .map(|p| &p.event)
        .filter(|event| is_engines(catalog, event))
}

/// Whether an engine, or a program that one is made of, says it.
fn is_engines(catalog: &Catalog, event: &Event) -> bool {
    let marks = |role: Role| matches!(role, Role::Launch | Role::Phase | Role::Ready);
    let own = catalog
        .signature(event.signature)
        .is_some_and(|s| marks(s.def.role) && s.def.program != "uvicorn");
    let raised = match &event.fact {
        Fact::Traceback(traceback) => traceback.chain.iter().any(|e| {
            let origin = Structure::deciding_origin(&e.frames);
            matches!(origin, Some(Origin::Engine | Origin::ModelCode))
        }),
        _ => false,
    };
    own || raised || is_judged(event.speaker.program)
}
