//! Which inputs are the logs of one incident.
//!
//! Owns the grouping of inputs. Inputs belong together unless they show that they do not: two whole launches of
//! different engines, versions or models, or far apart in time. A rank's file, a node's file, a kernel log or a Ray
//! session is no launch of its own and stays with the launch that it fits, if it fits one. Never judges a launch.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::clusters::{self, Cluster};
use super::files::{layout_keys, tells_of_others};
use super::{Launches, Source};
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::{Event, Fact, TracebackKind};
use crate::time::Stamp;

/// Seconds between the end of one launch and the start of the next beyond which they are no attempts of one incident.
/// A supervisor that backs off waits minutes.
const FAR: f64 = 3600.0;
/// The same for stamps without a zone, which may be up to 14 hours off in either direction.
const FAR_WITHOUT_ZONE: f64 = 29.0 * 3600.0;
/// Seconds around a launch in which a log that names nothing in common with it may yet be of it, where there are other
/// launches it may be of.
const AROUND: f64 = 120.0;
/// Launches of a group that a further one is compared with.
const MAX_COMPARED: usize = 64;
/// Settings that name the meeting point of a launch on several nodes.
const MEETING_POINTS: &[&str] = &["dist_init_addr", "master_addr", "data_parallel_address", "ray_address"];

/// Inputs that belong together.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Indices of the sources.
    pub members: Vec<usize>,
    /// The launches that its inputs show, as many as are compared.
    owns: Vec<Own>,
    /// Which of several Ray clusters its inputs are of, and when these ran.
    clusters: BTreeMap<usize, Option<Span>>,
    hosts: BTreeSet<Arc<str>>,
    span: Option<Span>,
    failed: bool,
    lines: u64,
    /// Whether its inputs tell nothing of a launch: notes, labels, other programs' logs.
    mute: bool,
    /// Whether its inputs are those of kernels and supervisors, which only tell of others.
    around: bool,
}

/// First and last stamp.
pub(super) type Span = (Stamp, Stamp);

/// A whole launch that one input shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Own {
    /// The program, as the catalog names it: `vllm`, `sglang`, `torch`.
    pub program: Arc<str>,
    /// Version.
    pub version: Option<Arc<str>>,
    /// Model.
    pub model: Option<Arc<str>>,
    /// First and last stamp.
    pub span: Option<Span>,
    /// Whether it says that it is one of several nodes or servers.
    shared: bool,
    /// Which of them, as far as it says.
    node_rank: Option<Arc<str>>,
    /// The address at which its nodes meet, if it names one.
    pub(super) meeting: Option<Arc<str>>,
}

impl Own {
    /// `vLLM 0.25.1 with /models/m, from 11-29T14:22:47`, as much of it as is known.
    pub fn describe(&self) -> String {
        let mut out = match &*self.program {
            "vllm" => "vLLM".to_owned(),
            "sglang" => "SGLang".to_owned(),
            "torch" => "a torchrun job".to_owned(),
            other => other.to_owned(),
        };
        if let Some(version) = &self.version {
            out.push_str(&format!(" {version}"));
        }
        if let Some(model) = &self.model {
            out.push_str(&format!(" with {model}"));
        }
        if let Some((start, _)) = &self.span {
            out.push_str(&format!(", from {}", start.printed()));
        }
        out
    }

    /// Which of the nodes or servers of a launch it is; nothing for one that stands alone.
    pub(super) fn place(&self) -> String {
        match (self.shared, &self.node_rank) {
            (false, _) => String::new(),
            (true, rank) => format!("node {}", rank.as_deref().unwrap_or("0")),
        }
    }

    /// Whether they are of engines that have nothing to do with each other.
    fn is_other_engine(&self, other: &Self) -> bool {
        // The agents of a torchrun job tell of no engine.
        let engine = |own: &Self| &*own.program != "torch";
        self.program != other.program && engine(self) && engine(other)
    }

    /// Whether the two cannot be of one incident.
    fn conflicts(&self, other: &Self) -> bool {
        if far(self.span.as_ref(), other.span.as_ref()) {
            return true;
        }
        let differ = |a: &Option<Arc<str>>, b: &Option<Arc<str>>| a.is_some() && b.is_some() && a != b;
        let unlike =
            self.program != other.program || differ(&self.version, &other.version) || differ(&self.model, &other.model);
        // Nodes that run different versions are a fault of one launch, not two launches.
        unlike && !(self.shared && other.shared) || self.is_other_engine(other)
    }
}

/// The incidents that the sources hold, the largest first; of equally large ones, one that failed goes first, and the
/// latest. Inputs that tell of no launch come last.
pub fn groups(catalog: &Catalog, sources: &[Arc<Source>]) -> Vec<Group> {
    let mut views: Vec<View> = sources.iter().map(|s| View::of(catalog, s)).collect();
    let clusters = clusters::several(sources);
    for (number, cluster) in clusters.iter().enumerate() {
        for &at in &cluster.sources {
            if let Some(view) = views.get_mut(at) {
                view.cluster = Some(number);
                view.keys.push(format!("cluster {number}"));
            }
        }
    }
    let mut parts = linked(&views, &clusters);
    // Parts with a launch of their own come first: the others go where they fit.
    parts.sort_by_key(|part| (part.mute, part.owns.is_empty(), part.clusters.is_empty()));
    let mut groups: Vec<Group> = Vec::new();
    for part in parts {
        let fit = if part.owns.is_empty() {
            best_fit(&groups, &part)
        } else {
            groups.iter().position(|g| !g.conflicts(&part))
        };
        match fit.and_then(|at| groups.get_mut(at)) {
            Some(group) => group.take(part),
            None => groups.push(part),
        }
    }
    for group in &mut groups {
        group.members.sort_unstable();
    }
    let base = groups.iter().find_map(|g| g.span.clone()).map(|(first, _)| first);
    let last = |g: &Group| g.span.as_ref()?.1.seconds_since(base.as_ref()?);
    groups.sort_by(|a, b| {
        let size = |g: &Group| (!g.mute, !g.around, g.members.len(), g.failed);
        let time = |g: &Group| last(g).unwrap_or(f64::MIN);
        let first = |g: &Group| g.members.first().copied();
        size(b)
            .cmp(&size(a))
            .then(time(b).total_cmp(&time(a)))
            .then(b.lines.cmp(&a.lines))
            .then(first(a).cmp(&first(b)))
    });
    groups
}

impl Group {
    /// What the group's launch says of itself, if one of its inputs shows it.
    pub fn launch(&self) -> Option<&Own> {
        self.owns.first()
    }

    /// Whether its inputs tell of no launch at all.
    pub fn is_mute(&self) -> bool {
        self.mute
    }

    /// Whether its inputs only tell of others.
    pub fn is_around(&self) -> bool {
        self.around
    }

    /// Whether anything in it reads like a failure.
    pub fn looks_failed(&self) -> bool {
        self.failed
    }

    /// Whether a stamp says when it was.
    pub fn is_dated(&self) -> bool {
        self.span.is_some()
    }

    fn conflicts(&self, other: &Self) -> bool {
        let mut owns = self.owns.iter().flat_map(|a| other.owns.iter().map(move |b| (a, b)));
        let clusters = &other.clusters;
        let mut clusters = self.clusters.iter().flat_map(|a| clusters.iter().map(move |b| (a, b)));
        // Clusters one after the other are attempts; what runs beside another cluster is another launch.
        let apart = |a: Option<&Span>, b: Option<&Span>| {
            let beside = a.zip(b).and_then(|(a, b)| clusters::overlap(a, b));
            beside.unwrap_or(true) || far(a, b)
        };
        owns.any(|(a, b)| a.conflicts(b)) || clusters.any(|((n, a), (m, b))| n != m && apart(a.as_ref(), b.as_ref()))
    }

    fn take(&mut self, other: Self) {
        self.members.extend(other.members);
        let room = MAX_COMPARED.saturating_sub(self.owns.len());
        self.owns.extend(other.owns.into_iter().take(room));
        self.clusters.extend(other.clusters);
        self.hosts.extend(other.hosts);
        self.span = match (self.span.take(), other.span) {
            (Some(a), Some(b)) => Some(both(a, b)),
            (a, b) => a.or(b),
        };
        self.mute &= other.mute;
        self.around &= other.around;
        self.failed |= other.failed;
        self.lines += other.lines;
    }
}

/// The span that holds two.
pub(super) fn both(a: Span, b: Span) -> Span {
    (earlier(a.0, b.0), later(a.1, b.1))
}

/// Makes a span hold that of one more source.
pub(super) fn widen(all: &mut Option<Span>, source: &Source) {
    *all = all.take().into_iter().chain(span(source)).reduce(both);
}

fn earlier(a: Stamp, b: Stamp) -> Stamp {
    if b.seconds_since(&a).is_some_and(|s| s < 0.0) {
        b
    } else {
        a
    }
}

fn later(a: Stamp, b: Stamp) -> Stamp {
    if b.seconds_since(&a).is_some_and(|s| s > 0.0) {
        b
    } else {
        a
    }
}

/// What one source says that tells whose it is.
struct View {
    own: Option<Own>,
    /// Which of several Ray clusters it is of.
    cluster: Option<usize>,
    span: Option<Span>,
    keys: Vec<String>,
    hosts: BTreeSet<Arc<str>>,
    failed: bool,
    lines: u64,
    mute: bool,
    around: bool,
}

impl View {
    fn of(catalog: &Catalog, source: &Source) -> Self {
        let span = span(source);
        let mut keys = layout_keys(&source.name);
        let mut hosts = BTreeSet::new();
        for heard in &source.harvest.heard {
            if let Some(node) = &heard.speaker.node {
                hosts.insert(node.clone());
                keys.extend(heard.speaker.pid.map(|pid| format!("process {node}:{pid}")));
            }
        }
        let points = settings(&source.harvest.events).filter(|(name, _)| MEETING_POINTS.contains(&&**name));
        keys.extend(
            points
                .filter(|(_, at)| names_a_host(at))
                .map(|(_, at)| format!("meeting {at}")),
        );
        keys.sort();
        keys.dedup();
        Self {
            own: own_launch(catalog, source),
            cluster: None,
            mute: source.harvest.events.is_empty(),
            around: tells_of_others(catalog, source),
            span,
            keys,
            hosts,
            failed: source.harvest.events.iter().any(|e| looks_failed(catalog, e)),
            lines: source.harvest.lines,
        }
    }
}

/// The launch that a source shows from its beginning.
pub(super) fn own_launch(catalog: &Catalog, source: &Source) -> Option<Own> {
    launch_of(catalog, source.harvest.events.iter(), span(source))
}

/// The launch that events show, within this span.
pub(super) fn launch_of<'e>(
    catalog: &Catalog,
    events: impl Iterator<Item = &'e Event> + Clone,
    span: Option<Span>,
) -> Option<Own> {
    let program = events.clone().find_map(|e| {
        let def = &catalog.signature(e.signature?)?.def;
        let engine = def.role == Role::Launch && matches!(def.program.as_str(), "vllm" | "sglang");
        // No engine starts its workers through torchrun.
        let agent = matches!(def.role, Role::Launch | Role::Exit) && def.program == "torch";
        (engine || agent).then(|| def.program.clone())
    })?;
    let setting = |wanted: &[&str]| {
        let mut all = events.clone().flat_map(|e| &e.settings);
        all.find(|(name, _)| wanted.contains(&&**name))
            .map(|(_, value)| value.clone())
    };
    let number = |name: &str| setting(&[name]).and_then(|v| v.parse::<u32>().ok());
    let several = |name: &str| number(name).is_some_and(|n| n > 1);
    Some(Own {
        program: program.into(),
        version: setting(&["engine_version"]),
        model: setting(&["model", "model_path"]),
        span,
        shared: several("nnodes") || several("data_parallel_size") || setting(&["headless", "head_node"]).is_some(),
        node_rank: setting(&[
            "node_rank",
            "data_parallel_start_rank",
            "data_parallel_rank",
            "head_node",
        ]),
        meeting: setting(MEETING_POINTS).filter(|address| names_a_host(address)),
    })
}

fn settings(events: &[Event]) -> impl Iterator<Item = &(Arc<str>, Arc<str>)> {
    events.iter().flat_map(|e| &e.settings)
}

/// Whether an address is more than this machine's own or none.
pub(super) fn names_a_host(address: &str) -> bool {
    let own = ["None", "auto", "local", "localhost", "127.", "0.0.0.0", "[::]", "::"];
    let address = address.split_once("://").map_or(address, |(_, host)| host);
    !address.is_empty() && own.iter().all(|o| !address.starts_with(o))
}

fn looks_failed(catalog: &Catalog, event: &Event) -> bool {
    let role = Launches::role(catalog, event);
    match &event.fact {
        Fact::Traceback(t) => t.kind != TracebackKind::Ignored && role != Some(Role::Benign),
        _ => matches!(role, Some(Role::Root | Role::Wrapper)),
    }
}

pub(super) fn span(source: &Source) -> Option<Span> {
    let heard = &source.harvest.heard;
    let first = heard.iter().filter_map(|h| h.first.clone()).reduce(earlier)?;
    let last = heard.iter().filter_map(|h| h.last.clone()).reduce(later)?;
    Some((first, last))
}

/// Seconds between two spans; 0 where they overlap, unknown where one has no stamps.
fn gap(a: Option<&Span>, b: Option<&Span>) -> Option<f64> {
    let ((a_first, a_last), (b_first, b_last)) = (a?, b?);
    let after = a_first.seconds_since(b_last)?;
    let before = b_first.seconds_since(a_last)?;
    Some(after.max(before).max(0.0))
}

fn far(a: Option<&Span>, b: Option<&Span>) -> bool {
    let zoned = |s: Option<&Span>| s.is_some_and(|(first, _)| first.offset.is_some());
    let limit = if zoned(a) && zoned(b) { FAR } else { FAR_WITHOUT_ZONE };
    gap(a, b).is_some_and(|gap| gap > limit)
}

/// Sources that name the same process, meeting point or folder of one launch.
fn linked(views: &[View], clusters: &[Cluster]) -> Vec<Group> {
    let mut of: Vec<usize> = (0..views.len()).collect();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, view) in views.iter().enumerate() {
        for key in &view.keys {
            let &mut other = first.entry(key).or_insert(index);
            // A session, or a log in parts, may last for months; pids, addresses and names of nodes come again.
            let lasts = ["session ", "cluster ", "output "].iter().any(|of| key.starts_with(of));
            let unlike = |o: &View| {
                let owns = o.own.as_ref().zip(view.own.as_ref());
                let clusters = o.cluster.zip(view.cluster);
                owns.is_some_and(|(a, b)| a.is_other_engine(b)) || clusters.is_some_and(|(a, b)| a != b)
            };
            let apart = |o: &View| !lasts && far(o.span.as_ref(), view.span.as_ref()) || unlike(o);
            let apart = views.get(other).is_some_and(apart);
            if other != index && !apart {
                unite(&mut of, other, index);
            }
        }
    }
    let mut parts: HashMap<usize, Group> = HashMap::new();
    for (index, view) in views.iter().enumerate() {
        let none = || Group {
            mute: true,
            around: true,
            ..Group::default()
        };
        parts.entry(root(&of, index)).or_insert_with(none).take(Group {
            members: vec![index],
            owns: view.own.iter().cloned().collect(),
            clusters: (view.cluster.into_iter())
                .filter_map(|number| Some((number, clusters.get(number)?.span.clone())))
                .collect(),
            hosts: view.hosts.clone(),
            span: view.span.clone(),
            failed: view.failed,
            lines: view.lines,
            mute: view.mute,
            around: view.around,
        });
    }
    let mut parts: Vec<Group> = parts.into_values().collect();
    parts.sort_by_key(|p| p.members.first().copied());
    parts
}

/// The first of those that one is united with.
pub(super) fn root(of: &[usize], mut at: usize) -> usize {
    while let Some(&up) = of.get(at).filter(|up| **up != at) {
        at = up;
    }
    at
}

/// Unites two, and all that either is united with.
pub(super) fn unite(of: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(of, a), root(of, b));
    if let Some(slot) = of.get_mut(a.max(b)) {
        *slot = a.min(b);
    }
}

/// Where inputs without a launch of their own go: to the launch on their host, else to the one that is nearest in time.
/// Where neither tells, and there are several launches, to none.
fn best_fit(groups: &[Group], part: &Group) -> Option<usize> {
    let near = |group: &Group| !far(group.span.as_ref(), part.span.as_ref());
    let on_host = |group: &Group| !group.hosts.is_disjoint(&part.hosts);
    if let [only] = groups {
        return (part.mute || near(only) && !only.conflicts(part)).then_some(0);
    }
    let fits = |group: &Group| !part.mute && near(group) && !group.conflicts(part);
    let rated = groups.iter().enumerate().filter(|(_, g)| fits(g));
    let mut rated: Vec<(bool, f64, usize)> = rated
        .map(|(at, group)| {
            let gap = gap(group.span.as_ref(), part.span.as_ref());
            (!on_host(group), gap.unwrap_or(f64::MAX), at)
        })
        .collect();
    rated.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
    match rated.as_slice() {
        [] => None,
        // Of several on its host, or of several at its time, none is more likely than the next.
        [first, second, ..] if first.0 == second.0 && first.1 == second.1 => None,
        [(true, gap, _), ..] if *gap > AROUND => None,
        [(.., at), ..] => Some(*at),
    }
}
