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
use crate::launch::names::{is_unit_of_launches, unit};

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
    pub fn tell_another(&self, catalog: &Catalog, launches: &Launches, event: &Event) -> bool {
        let program = catalog.signature(event.signature).map(|s| s.def.program.as_str());
        if let Some(container) = event.setting("probed_container") {
            let own = self.containers(catalog, launches);
            return !own.is_empty() && !own.contains(&**container);
        }
        let Some(label) = event.victim.label.as_deref() else {
            return false;
        };
        match program {
            Some("systemd") => self.is_another_unit(catalog, launches, label),
            Some("docker") => {
                let own = self.containers(catalog, launches);
                !own.is_empty() && !own.iter().any(|own| are_one_service(own, label))
            }
            Some("k8s") => {
                let own = self.pods(catalog, launches);
                !own.is_empty() && !own.iter().any(|own| own == label || set(own) == set(label))
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
    fn pods(&self, catalog: &Catalog, launches: &Launches) -> &BTreeSet<String> {
        self.pods.get_or_init(|| {
            let speakers = engines(catalog, launches).map(|event| &event.speaker);
            let pods = speakers.filter_map(|s| s.node.as_ref().filter(|_| s.container.is_some()));
            let own: BTreeSet<String> = pods.map(|pod| pod.to_string()).collect();
            if !own.is_empty() {
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

/// Whether two names can be of containers of one service: alike but for the number and the project in front. One that has
/// not come to say a word may be one more of the same.
fn are_one_service(a: &str, b: &str) -> bool {
    let (a, b) = (service(a), service(b));
    let of_project = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|project| project.is_empty() || project.ends_with(['-', '_']))
    };
    of_project(a, b) || of_project(b, a)
}

/// The name of a service without the number of its container.
fn service(container: &str) -> &str {
    container
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches(['-', '_'])
}

/// What the pods of a set have in common: all but the number or the random end.
fn set(pod: &str) -> Option<&str> {
    pod.rsplit_once('-').map(|(set, _)| set)
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
