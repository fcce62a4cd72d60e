//! Which of several Ray clusters a source is of.
//!
//! Owns the identity of clusters: a session is a cluster's life. Its files lie in one folder on each node, under the same
//! name, and its raylets and its GCS name the same cluster id. Never judges what a cluster did.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::files::{file_of, folder_of_launch, layout_keys, session_folder};
use super::relation::{Span, root, span, unite, widen};
use super::{Source, folders};

/// Setting that names a cluster.
const ID: &str = "ray_cluster";

/// Seconds for which the daemons of a cluster may outlive the launch that the next one follows.
const OUTLIVES: f64 = 10.0;

/// The sessions of one cluster.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// Indices of its sources.
    pub sources: Vec<usize>,
    /// First and last stamp.
    pub span: Option<Span>,
    /// Whether a source shows by itself which cluster it is of.
    named: bool,
}

impl Cluster {
    fn add(&mut self, at: usize, source: &Source) {
        self.sources.push(at);
        widen(&mut self.span, source);
        // There is one GCS in a cluster.
        self.named |= id(source).is_some()
            || folders::session(&source.name.replace('\\', "/")).is_some()
            || file_of(&source.name).starts_with("gcs_server.");
    }
}

/// The id of the cluster that a source names.
fn id(source: &Source) -> Option<&Arc<str>> {
    source.harvest.events.iter().find_map(|event| event.setting(ID))
}

/// The clusters that the sources show, each with all that lies in its sessions' folders; none where there is but one.
pub fn several(sources: &[Arc<Source>]) -> Vec<Cluster> {
    let mut of_key: HashMap<String, usize> = HashMap::new();
    let mut of: Vec<usize> = (0..sources.len()).collect();
    let mut within: Vec<(usize, &Source)> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let Some(base) = session_folder(&source.name) else {
            continue;
        };
        within.push((at, source));
        let mut keys = vec![format!("folder {base}")];
        keys.extend(folders::session(&base).map(|name| format!("session {name}")));
        keys.extend(id(source).map(|id| format!("id {id}")));
        for key in keys {
            unite(&mut of, *of_key.entry(key).or_insert(at), at);
        }
    }
    let mut clusters: BTreeMap<usize, Cluster> = BTreeMap::new();
    for &(at, source) in &within {
        clusters.entry(root(&of, at)).or_default().add(at, source);
    }
    clusters.retain(|_, cluster| cluster.named);
    if clusters.len() < 2 {
        return Vec::new();
    }
    // `X.log` holds what the driver of the session in `X.d` printed. What lies beside a session's files is of its time,
    // where stamps do not tell it: the kernel may count seconds since the machine's start.
    let outputs = |source: &Source| {
        layout_keys(&source.name)
            .into_iter()
            .filter(|key| key.starts_with("output "))
    };
    let inner = within
        .iter()
        .flat_map(|&(at, source)| outputs(source).map(move |key| (key, at)));
    let inner: HashMap<String, usize> = inner.map(|(key, at)| (key, root(&of, at))).collect();
    for (at, source) in sources.iter().enumerate() {
        if session_folder(&source.name).is_some() {
            continue;
        }
        let own = outputs(source).find_map(|key| inner.get(&key).copied());
        let beside = of_key.get(&format!("folder {}", folder_of_launch(&source.name)));
        let undated = |cluster: &Cluster| {
            let spans = cluster.span.as_ref().zip(span(source));
            spans.and_then(|(all, own)| overlap(all, &own)).is_none()
        };
        let beside = beside
            .map(|&first| root(&of, first))
            .filter(|of| clusters.get(of).is_some_and(undated));
        if let Some(cluster) = own.or(beside).and_then(|of| clusters.get_mut(&of)) {
            cluster.add(at, source);
        }
    }
    clusters.into_values().collect()
}

/// Whether two ran beside each other, and not one after the other; unknown without stamps that can be compared.
pub fn overlap(a: &Span, b: &Span) -> Option<bool> {
    let seconds = |from: &Span, to: &Span| to.1.seconds_since(&from.0);
    let length = seconds(a, a)?.min(seconds(b, b)?);
    let shared = seconds(a, b)?.min(seconds(b, a)?).min(length);
    Some(shared > OUTLIVES || shared >= length / 2.0)
}
