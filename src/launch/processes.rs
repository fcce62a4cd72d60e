//! Who is who: speakers of all sources joined into processes.
//!
//! Owns identity. Links what the log allows to be linked (pid, label, rank, node; `joins`) and guesses nothing.

mod joins;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::Source;
use super::files::{FileHint, file_of, hints};
use super::links;
use super::names::is_ip;
use super::rounds::Rounds;
use crate::catalog::Catalog;
use crate::catalog::captures::Identity;
use crate::dialect::header::coords_of_label;
use crate::dialect::reader::Heard;
use crate::event::{Coords, Event, InputId, Program, Speaker, Victim};
use crate::time::Stamp;

/// Index of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub usize);

/// Label of vLLM's process on a node that only joins a launch; no other of its processes is ever called so.
const MAIN_OF_ENGINES: &str = "MainProcess";
/// Label of Ray's daemon of a node.
pub(super) const RAYLET: &str = "raylet";

/// What a process does in the launch, outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProcessRole {
    /// Kernel, kubelet, Slurm: tells of others.
    Observer,
    /// Raylet, GCS, autoscaler and their agents.
    RayDaemon,
    /// The process whose lines carry no label: a script, a launcher, an unlabelled server.
    Main,
    /// torchrun's agent, a Ray driver.
    Driver,
    /// HTTP front end.
    ApiServer,
    /// vLLM's engine core, SGLang's data-parallel controller.
    EngineCore,
    /// A worker, scheduler, Ray actor or rank: the one that holds a device.
    Worker,
}

impl ProcessRole {
    /// The id used in reports.
    pub fn id(self) -> &'static str {
        match self {
            Self::Observer => "observer",
            Self::RayDaemon => "ray-daemon",
            Self::Main => "main",
            Self::Driver => "driver",
            Self::ApiServer => "api-server",
            Self::EngineCore => "engine-core",
            Self::Worker => "worker",
        }
    }

    /// Whether such a process holds a device.
    pub fn is_worker_like(self) -> bool {
        matches!(self, Self::Worker)
    }

    /// Whether an engine's launch runs in it.
    pub fn is_engine(self) -> bool {
        matches!(self, Self::Worker | Self::EngineCore | Self::ApiServer)
    }
}

/// A process.
#[derive(Debug, Clone)]
pub struct Process {
    /// Id for the report, unique.
    pub id: String,
    /// Role.
    pub role: ProcessRole,
    /// Last label.
    pub label: Option<Arc<str>>,
    /// Node.
    pub node: Option<Arc<str>>,
    /// Container.
    pub container: Option<Arc<str>>,
    /// Process id.
    pub pid: Option<i64>,
    /// Global rank.
    pub rank: Option<u32>,
    /// Coordinates.
    pub coords: Coords,
    /// CUDA device.
    pub device: Option<u32>,
    /// Sizes, versions and models it named.
    pub identity: Identity,
    /// First and last stamp.
    pub first: Option<Stamp>,
    /// Last stamp.
    pub last: Option<Stamp>,
    /// Last line and its input.
    pub last_line: (InputId, u64),
    /// Whether its lines name it (rather than merely standing in its file or stream).
    pub explicit: bool,
    /// Whether the name of its file identifies it.
    pub by_file: bool,
    /// Whether it is a worker of Ray's that has files of its own. What its code prints there it may have caught: what
    /// ends a task Ray reports elsewhere.
    pub ray_worker: bool,
    /// Whether it turned out to be another entry of the table.
    pub absorbed: bool,
    /// The round it is of, where pids may come again in another.
    scope: Option<usize>,
}

impl Process {
    /// Whether a speaker under the same pid must be another process, as their names or ranks say.
    fn is_another(&self, heard: &Heard) -> bool {
        let differ = |a: Option<u32>, b: Option<u32>| a.zip(b).is_some_and(|(a, b)| a != b);
        let (world, its_world) = (self.identity.world_size, heard.identity.world_size);
        let ranked = world == its_world && differ(self.rank, heard.speaker.rank.or(heard.identity.rank));
        let (Some(own), Some(label)) = (&self.label, &heard.speaker.label) else {
            return ranked && world.is_some();
        };
        let (a, b) = (&self.coords, &heard.speaker.coords);
        let placed = differ(a.dp, b.dp) || differ(a.pp, b.pp) || differ(a.tp, b.tp) || differ(a.ep, b.ep);
        let main = |label: &str| label == MAIN_OF_ENGINES;
        placed || ranked || main(own) != main(label)
    }

    /// Whether it may be on a node, as far as both are known.
    pub fn may_be_on(&self, node: Option<&Arc<str>>) -> bool {
        self.node.as_ref().zip(node).is_none_or(|(own, node)| own == node)
    }

    /// What stands for its node in what nodes are started with: where lines name none, the container, one for each.
    pub(super) fn place(&self) -> Option<&Arc<str>> {
        self.node.as_ref().or(self.container.as_ref())
    }

    /// Whether it may be one that a round tells of.
    fn may_be_of(&self, round: Option<usize>) -> bool {
        self.scope.is_none() || round.is_none() || self.scope == round
    }
}

/// Addresses that a node gives as its own, and the node's name.
pub(super) type Aliases = HashMap<Arc<str>, Arc<str>>;

/// All processes.
#[derive(Debug, Clone)]
pub struct Processes {
    aliases: Aliases,
    /// Pids of a host's namespace that its kernel tells of, and the process that each of them is.
    host_pids: HashMap<(Option<Arc<str>>, i64), ProcessId>,
    list: Vec<Process>,
    by_speaker: HashMap<(InputId, Arc<Speaker>), ProcessId>,
    /// What to call the inputs by, where nothing else tells processes apart.
    files: HashMap<InputId, String>,
    /// The rounds of the inputs, where pids may come again in another.
    scopes: HashMap<InputId, usize>,
    fallback: ProcessId,
    /// Ranks of the launches at most, where they say so.
    most_ranks: Option<u32>,
    /// Ranks of a tensor-parallel group, where all launches say the same.
    tensor: Option<u32>,
    /// The first ranks of nodes that say which of the launch's nodes they are.
    first_of_nodes: HashMap<Option<Arc<str>>, u32>,
    /// The attempts in which each process is heard, where there are several.
    heard_in: HashMap<ProcessId, BTreeSet<usize>>,
}

/// Who tells of a process: an input, in an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Teller {
    /// The input.
    pub input: InputId,
    /// The attempt; 0 where attempts are not yet told apart.
    pub attempt: usize,
}

impl From<InputId> for Teller {
    fn from(input: InputId) -> Self {
        Self { input, attempt: 0 }
    }
}

/// Key by which speakers are the same process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Pid(Option<usize>, Option<Arc<str>>, i64),
    Label(Option<usize>, Option<Arc<str>>, Arc<str>),
    Rank(Option<usize>, u32),
    /// A rank within a node.
    Local(InputId, Option<Arc<str>>, u32),
    Main(InputId, Option<Arc<str>>),
    /// A pid of one input alone.
    PidHere(InputId, i64),
    /// A pid under one name alone.
    PidOf(Option<usize>, Arc<str>, i64),
}

impl Key {
    /// The key of the same pid in one input.
    fn apart(&self, input: InputId) -> Self {
        match self {
            Self::Pid(.., pid) => Self::PidHere(input, *pid),
            other => other.clone(),
        }
    }

    /// The key of the same pid under the name of its speaker.
    fn labelled(&self, speaker: &Speaker) -> Self {
        match (self, &speaker.label) {
            (Self::Pid(scope, _, pid), Some(label)) => Self::PidOf(*scope, label.clone(), *pid),
            (other, _) => other.clone(),
        }
    }
}

impl Processes {
    /// Joins the speakers of all sources.
    pub fn build(catalog: &Catalog, sources: &[Arc<Source>], rounds: &Rounds) -> Self {
        let files = hints(catalog, sources, rounds);
        let mut table = Self {
            aliases: links::addresses(sources, &files),
            host_pids: HashMap::new(),
            list: Vec::new(),
            by_speaker: HashMap::new(),
            files: short_names(sources),
            scopes: HashMap::new(),
            fallback: ProcessId(0),
            most_ranks: None,
            tensor: None,
            first_of_nodes: HashMap::new(),
            heard_in: HashMap::new(),
        };
        let mut tensor: BTreeSet<u32> = BTreeSet::new();
        for (source, file) in sources.iter().zip(&files) {
            let Some(sizes) = links::sizes(source) else { continue };
            table.most_ranks = table.most_ranks.max(Some(sizes.most));
            tensor.insert(sizes.tensor);
            if let Some(first) = sizes.first.filter(|_| file.node.is_some() || sources.len() == 1) {
                table.first_of_nodes.insert(file.node.clone(), first);
            }
        }
        table.tensor = tensor.first().copied().filter(|_| tensor.len() == 1);
        for (at, source) in sources.iter().enumerate() {
            table.scopes.extend(rounds.scope(at).map(|scope| (source.input, scope)));
        }
        let mut by_key: HashMap<Key, ProcessId> = HashMap::new();
        // A pid that only one node has is that process, also where a line names no node.
        let mut nodes_of_pid: HashMap<(Option<usize>, i64), Vec<Arc<str>>> = HashMap::new();
        for (source, file) in sources.iter().zip(&files) {
            for heard in &source.harvest.heard {
                let node = table.node_of(&heard.speaker, file);
                if let (Some(pid), Some(node)) = (heard.speaker.pid.or(file.pid), node) {
                    let scope = table.scope(source.input);
                    let nodes = nodes_of_pid.entry((scope, pid)).or_default();
                    if !nodes.contains(&node) {
                        nodes.push(node);
                    }
                }
            }
        }
        for (source, file) in sources.iter().zip(&files) {
            let ranks = table.ranks_of_pids(source, file);
            for heard in &source.harvest.heard {
                let node = table.node_of(&heard.speaker, file);
                let scope = table.scope(source.input);
                let here = heard.speaker.label.is_some() && heard.speaker.node.is_none();
                let only_node = |pid: i64| {
                    let own = ranks.get(&(pid, None)).filter(|_| here);
                    let other = |node: &Arc<str>| ranks.get(&(pid, Some(node.clone())));
                    let can_be = |node: &&Arc<str>| own.zip(other(node)).is_none_or(|(a, b)| a == b);
                    let mut nodes = nodes_of_pid.get(&(scope, pid)).into_iter().flatten().filter(can_be);
                    nodes.next().filter(|_| nodes.next().is_none()).cloned()
                };
                let key = key(&heard.speaker, file, (source.input, scope), node, only_node);
                let other = |key: &Key| by_key.get(key).is_some_and(|id| table.get(*id).is_another(heard));
                // Nodes that no line tells apart may have the same pids.
                let key = [key.clone(), key.apart(source.input), key.labelled(&heard.speaker)]
                    .into_iter()
                    .find(|key| !other(key))
                    .unwrap_or(key);
                let id = *by_key
                    .entry(key)
                    .or_insert_with(|| table.add(&heard.speaker, file, source.input));
                table.update(id, &heard.speaker, file, &heard.identity);
                if let Some(process) = table.list.get_mut(id.0) {
                    process.first = process.first.take().or_else(|| heard.first.clone());
                    process.last = heard.last.clone().or(process.last.take());
                    process.last_line = process.last_line.max((source.input, heard.last_line));
                }
                table.by_speaker.insert((source.input, heard.speaker.clone()), id);
            }
        }
        if table.list.is_empty() {
            table.add(&Speaker::default(), &FileHint::default(), InputId(0));
        }
        table.link_ranks();
        for (source, file) in sources.iter().zip(&files) {
            for heard in &source.harvest.heard {
                table.add_ranks(heard, file, source.input);
            }
        }
        table.join_by_rank();
        table.join_daemons();
        for (teller, pair) in links::ranks_with_pids(sources) {
            table.join_pair(&pair, teller.into());
        }
        table.link_ranks();
        table.join_by_pid();
        table.link_kernel_pids(catalog, sources);
        table.leave_pids_to_labels();
        table.leave_ranks_to_labels();
        table.join_only_rank(sources);
        table.name();
        table
    }

    /// The node of a speaker, by the name its other lines use.
    fn node_of(&self, speaker: &Speaker, file: &FileHint) -> Option<Arc<str>> {
        let node = links::node_name(speaker, file)?;
        Some(self.aliases.get(&node).cloned().unwrap_or(node))
    }

    /// The ranks of the processes that a source labels, by pid and by the node that it names with it. Ray names a node
    /// where it is another than the driver's, whose output this is: one of the same pid without a node is another one if
    /// its rank says so.
    fn ranks_of_pids(&self, source: &Source, file: &FileHint) -> HashMap<(i64, Option<Arc<str>>), u32> {
        let labelled = source.harvest.heard.iter().filter(|h| h.speaker.label.is_some());
        let rank = |heard: &Heard| {
            let speaker = &heard.speaker;
            let node = speaker.node.as_ref().and_then(|_| self.node_of(speaker, file));
            Some(((speaker.pid?, node), speaker.rank.or(heard.identity.rank)?))
        };
        labelled.filter_map(rank).collect()
    }

    /// The round that an input is of, where pids may come again in another.
    fn scope(&self, input: InputId) -> Option<usize> {
        self.scopes.get(&input).copied()
    }

    /// All processes in order of first appearance.
    pub fn all(&self) -> &[Process] {
        &self.list
    }

    /// One process.
    #[expect(
        clippy::indexing_slicing,
        reason = "ids come from this table alone, which never shrinks and has a first entry from the start"
    )]
    pub fn get(&self, id: ProcessId) -> &Process {
        &self.list[id.0]
    }

    /// The node of a process. Among raylets that no name tells apart, it is the address that one gives as its own.
    pub fn node(&self, id: ProcessId) -> Option<&Arc<str>> {
        let nameless = |p: &&Process| p.node.is_none() && p.label.as_deref() == Some(RAYLET);
        let own = self.get(id);
        let host = || own.identity.host.as_ref().filter(|_| nameless(&own));
        let among = |host: &&Arc<str>| {
            let mut raylets = self.list.iter().filter(nameless).filter(|p| !p.absorbed);
            raylets.any(|p| p.identity.host.as_ref().is_some_and(|other| other != *host))
        };
        own.node.as_ref().or_else(|| host().filter(among))
    }

    /// The processes whose lines Ray hands on in these inputs with the address of their node, which it leaves out for those
    /// of the driver's own.
    pub(super) fn foreign_in<'a>(&'a self, inputs: &'a BTreeSet<InputId>) -> impl Iterator<Item = &'a Process> {
        let foreign = |speaker: &Speaker| speaker.label.is_some() && speaker.node.as_deref().is_some_and(is_ip);
        let here = self.by_speaker.iter();
        let here = here.filter(move |((input, speaker), _)| foreign(speaker) && inputs.contains(input));
        here.map(|(_, id)| self.get(*id))
    }

    /// The node that gives an address as its own, else the address.
    pub fn node_at<'a>(&'a self, address: &'a Arc<str>) -> &'a Arc<str> {
        self.aliases.get(address).unwrap_or(address)
    }

    /// One process, to note what is learnt later.
    pub fn get_mut(&mut self, id: ProcessId) -> Option<&mut Process> {
        self.list.get_mut(id.0)
    }

    /// Notes the pid of a process.
    pub fn note_pid(&mut self, id: ProcessId, pid: i64) {
        if let Some(process) = self.list.get_mut(id.0) {
            process.pid = Some(pid);
            self.name();
        }
    }

    /// The node whose kernel or supervisor an observer is, if a process of the launch is known to be there; else it may
    /// call a node otherwise than the launch does.
    pub fn observed_node(&self, observer: ProcessId) -> Option<&Arc<str>> {
        let node = self.get(observer).node.as_ref()?;
        let there = |p: &Process| p.role != ProcessRole::Observer && p.node.as_ref() == Some(node);
        self.list.iter().any(there).then_some(node)
    }

    /// The process that printed an event.
    pub fn of(&self, event: &Event) -> ProcessId {
        self.by_speaker
            .get(&(event.place.input, event.speaker.clone()))
            .copied()
            .unwrap_or(self.fallback)
    }

    /// Notes in which attempts a process is heard: a restart brings new processes with the names of the old ones.
    pub(super) fn note_attempts(&mut self, heard: impl Iterator<Item = (ProcessId, usize)>) {
        for (process, attempt) in heard {
            self.heard_in.entry(process).or_default().insert(attempt);
        }
    }

    /// The process that a line tells of, if exactly one fits what it names.
    pub fn find(&self, victim: &Victim, teller: Teller) -> Option<ProcessId> {
        let fitting = self.fitting(victim, teller);
        let on_node = |id: &&ProcessId| self.get(**id).node == victim.node;
        let one = |ids: &[ProcessId]| match ids {
            [id] => Some(*id),
            _ => None,
        };
        let named: Vec<ProcessId> = fitting.iter().filter(on_node).copied().collect();
        one(&named).or_else(|| one(&fitting))
    }

    /// All processes that could be the one a line tells of: what either does not name cannot differ.
    fn fitting(&self, victim: &Victim, teller: Teller) -> Vec<ProcessId> {
        if victim.is_empty() {
            return Vec::new();
        }
        let scope = self.scope(teller.input);
        let told = victim.node.as_ref().map(|n| self.aliases.get(n).unwrap_or(n));
        let fits = |p: &Process| {
            let node = p.may_be_on(told) && p.may_be_of(scope);
            if let Some(pid) = victim.pid {
                return node && p.pid == Some(pid);
            }
            let rank = victim.rank.is_some() && p.rank == victim.rank;
            let label = victim
                .label
                .as_deref()
                .is_some_and(|l| p.label.as_deref().is_some_and(|own| same_label(own, l)));
            // A runtime tells of the container, whose first process is the one that ended.
            let first = p.role == ProcessRole::Main && p.label.is_none() && p.rank.is_none();
            let container = first && victim.label.is_some() && p.container == victim.label;
            let label = label
                || container
                || executor_rank(victim.label.as_deref()).is_some_and(|r| p.label.is_some() && p.rank == Some(r));
            let local = victim.coords.local.is_some() && p.coords.local == victim.coords.local;
            let tp = victim.coords.tp.is_some() && p.coords.tp == victim.coords.tp;
            let core = p.role == ProcessRole::EngineCore;
            let dp = victim.coords.dp.is_some() && core && p.coords.dp == victim.coords.dp;
            node && (rank || label || victim.rank.is_none() && victim.label.is_none() && (local || tp || dp))
        };
        let all = self.list.iter().enumerate().filter(|(_, p)| !p.absorbed);
        let fitting: Vec<ProcessId> = all.filter(|(_, p)| fits(p)).map(|(i, _)| ProcessId(i)).collect();
        if fitting.is_empty() {
            let of_host = victim.pid.map(|pid| (told.cloned(), pid));
            let linked = of_host.and_then(|pid| self.host_pids.get(&pid));
            let linked = linked.filter(|id| self.get(**id).may_be_of(scope));
            return linked.copied().into_iter().collect();
        }
        if victim.pid.is_some() || self.heard_in.is_empty() {
            return fitting;
        }
        let attempts = |id: &ProcessId| self.heard_in.get(id);
        let (here, others): (Vec<_>, Vec<_>) = fitting
            .into_iter()
            .partition(|id| attempts(id).is_some_and(|all| all.contains(&teller.attempt)));
        if !here.is_empty() {
            return here;
        }
        others.into_iter().filter(|id| attempts(id).is_none()).collect()
    }

    /// The process a line tells of, added to the table if no line of its own is in the log. None where several fit:
    /// one more of the same name would only hide them.
    pub fn find_or_add(&mut self, victim: &Victim, teller: Teller) -> Option<ProcessId> {
        if let Some(found) = self.find(victim, teller) {
            return Some(found);
        }
        let nameless = !victim.is_named() && victim.coords.dp.is_none();
        if nameless || !self.fitting(victim, teller).is_empty() {
            return None;
        }
        if let Some(found) = self.of_local_rank(victim, teller) {
            self.name();
            return Some(found);
        }
        let speaker = Speaker {
            node: victim.node.clone(),
            label: victim.label.clone().or_else(|| engine_core(victim)),
            pid: victim.pid,
            rank: victim.rank,
            coords: victim.coords,
            explicit: true,
            ..Speaker::default()
        };
        let scope = self.scope(teller.input);
        let id = self.add(&speaker, &FileHint::default(), InputId(0));
        if !self.heard_in.is_empty() {
            self.note_attempts([(id, teller.attempt)].into_iter());
        }
        if let Some(process) = self.list.get_mut(id.0) {
            process.scope = scope;
            if !matches!(process.role, ProcessRole::RayDaemon | ProcessRole::EngineCore) {
                process.role = process.role.max(ProcessRole::Worker);
            }
            process.rank = victim.rank.or_else(|| executor_rank(victim.label.as_deref()));
        }
        self.link_ranks();
        self.name();
        Some(id)
    }

    fn add(&mut self, speaker: &Speaker, file: &FileHint, input: InputId) -> ProcessId {
        let role = role_of(speaker, file);
        self.list.push(Process {
            id: String::new(),
            role,
            label: None,
            node: None,
            container: speaker.container.clone(),
            pid: None,
            rank: None,
            coords: Coords::default(),
            device: None,
            identity: Identity::default(),
            first: None,
            last: None,
            last_line: (input, 0),
            explicit: speaker.explicit,
            by_file: file.label.is_some() || file.rank.is_some() || file.local.is_some(),
            ray_worker: false,
            absorbed: false,
            scope: self.scope(input),
        });
        let id = ProcessId(self.list.len() - 1);
        self.update(id, speaker, file, &Identity::default());
        id
    }

    /// Adds the processes that a speaker's lines are of, where these are several: who wrote which is not known, but each
    /// of the ranks is there, if under no other name.
    fn add_ranks(&mut self, heard: &Heard, file: &FileHint, input: InputId) {
        for &rank in &heard.ranks {
            if self
                .list
                .iter()
                .any(|p| p.rank == Some(rank) && p.may_be_of(self.scope(input)))
            {
                continue;
            }
            let speaker = Speaker {
                rank: Some(rank),
                ..(*heard.speaker).clone()
            };
            let id = self.add(&speaker, file, input);
            if let Some(process) = self.list.get_mut(id.0) {
                process.identity.world_size = heard.identity.world_size;
                process.first.clone_from(&heard.first);
                process.last.clone_from(&heard.last);
                process.last_line = (input, heard.last_line);
            }
        }
    }

    fn update(&mut self, id: ProcessId, speaker: &Speaker, file: &FileHint, identity: &Identity) {
        let node = self.node_of(speaker, file);
        let Some(process) = self.list.get_mut(id.0) else { return };
        process.role = process.role.max(role_of(speaker, file));
        process.explicit |= speaker.explicit;
        process.ray_worker |= file.is_ray_worker();
        // A refined label (`Worker` → `Worker_TP1`) replaces the plain one.
        if let Some(label) = speaker.label.as_ref().or(file.label.as_ref()) {
            let better = process
                .label
                .as_ref()
                .is_none_or(|old| label.len() >= old.len() || &**old == "ray-worker");
            if better {
                process.label = Some(label.clone());
            }
        }
        process.node = process.node.take().or(node);
        process.pid = process.pid.or(speaker.pid).or(file.pid).or(identity.pid);
        let (rank, local) = file.places(speaker);
        let named = speaker.rank.or(rank);
        let by_identity = process.identity.rank;
        process.identity.place_among(identity);
        // A rank that lines of the process carry is none that it was given in a part of the launch.
        if process.rank.is_none() || named.is_none() && process.rank == by_identity {
            process.rank = named.or(process.identity.rank);
        }
        process.coords.fill_from(&speaker.coords);
        if let (None, Some(label), false) = (&speaker.label, &file.label, file.ray_session) {
            process.coords.fill_from(&coords_of_label(label));
        }
        process.coords.local = process.coords.local.or(local);
        process.coords.fill_from(&identity.coords);
        process.device = process.device.or(identity.device);
        let known = &mut process.identity;
        known.version = known.version.take().or_else(|| identity.version.clone());
        known.model = known.model.take().or_else(|| identity.model.clone());
        known.host = known.host.take().or_else(|| identity.host.clone());
    }

    /// In one world without data parallelism, a rank follows from the place in the tensor and pipeline groups. A local
    /// rank is counted from the first rank of its node.
    fn link_ranks(&mut self) {
        let one_world = self.list.iter().all(|p| p.coords.dp.unwrap_or(0) == 0) || self.has_data_parallel_attention();
        let staged = self.list.iter().any(|p| p.coords.pp.unwrap_or(0) > 0);
        let tensor = self.tensor.filter(|_| staged);
        let open = |p: &&mut Process| p.role == ProcessRole::Worker && p.rank.is_none();
        for process in self.list.iter_mut().filter(open).filter(|_| one_world) {
            let stage = process.coords.pp.filter(|_| staged);
            process.rank = match (process.coords.tp, stage) {
                (Some(tp), Some(pp)) => tensor.and_then(|size| pp.checked_mul(size)?.checked_add(tp)),
                (tp, None) => tp.filter(|_| !staged),
                (None, Some(_)) => None,
            };
        }
        let first = self.first_ranks();
        for process in self.list.iter_mut().filter(open) {
            let local = process.coords.local.zip(first.get(&process.node).copied());
            let rank = local.and_then(|(local, first)| local.checked_add(first));
            process.rank = rank.filter(|rank| self.most_ranks.is_none_or(|most| *rank < most));
        }
    }

    /// Whether the data-parallel groups share one tensor-parallel group, as SGLang's do whose attention alone is data
    /// parallel: no two of its schedulers then have the same place in it.
    fn has_data_parallel_attention(&self) -> bool {
        let placed = |p: &&Process| p.coords.tp.is_some() && p.coords.dp.is_some() && !p.absorbed;
        let mut group_of: HashMap<(Option<u32>, Option<u32>), Option<u32>> = HashMap::new();
        let apart = self.list.iter().filter(placed).all(|p| {
            let group = group_of.entry((p.coords.pp, p.coords.tp)).or_insert(p.coords.dp);
            *group == p.coords.dp
        });
        let groups: BTreeSet<&Option<u32>> = group_of.values().collect();
        let of_vllm = |p: &Process| p.label.as_deref().is_some_and(|label| label.contains("Worker"));
        apart && groups.len() > 1 && !self.list.iter().filter(placed).any(of_vllm)
    }

    /// Gives each process an id that says who it is, unique within the report.
    fn name(&mut self) {
        let mut used: HashMap<(Option<usize>, String), usize> = HashMap::new();
        let main = ProcessRole::Main.id();
        let several = self
            .list
            .iter()
            .filter_map(|p| p.node.as_ref())
            .collect::<std::collections::HashSet<_>>()
            .len()
            > 1;
        for process in &mut self.list {
            let mut name = match (&process.label, process.rank) {
                (Some(label), _) => label.to_string(),
                (None, Some(rank)) => format!("rank {rank}"),
                (None, None) => process.role.id().to_owned(),
            };
            if let Some(pid) = process.pid {
                name = format!("{name} pid={pid}");
            }
            if let Some(node) = process.node.as_ref().filter(|_| several || process.label.is_none()) {
                name = format!("{name} @{node}");
            } else if let Some(container) = process.container.as_ref().filter(|_| name == main) {
                name = format!("{name} in {container}");
            } else if let Some(file) = self.files.get(&process.last_line.0).filter(|_| name == main) {
                name = format!("{name} in {file}");
            }
            // A report is on one round, and so are the names in it.
            let count = used.entry((process.scope, name.clone())).or_default();
            *count += 1;
            process.id = if *count > 1 { format!("{name} #{count}") } else { name };
        }
    }
}

/// The names of several inputs, without their folders where that tells them apart.
fn short_names(sources: &[Arc<Source>]) -> HashMap<InputId, String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for source in sources {
        *count.entry(file_of(&source.name)).or_default() += 1;
    }
    let name = |source: &Arc<Source>| {
        let file = file_of(&source.name);
        let name = if count.get(file) == Some(&1) {
            file
        } else {
            &source.name
        };
        (source.input, name.to_owned())
    };
    let several = sources.len() > 1;
    sources.iter().filter(|_| several).map(name).collect()
}

/// What a speaker is known by; `only_node` tells the node of a pid that it can have on one node only.
fn key(
    speaker: &Speaker,
    file: &FileHint,
    (input, scope): (InputId, Option<usize>),
    node: Option<Arc<str>>,
    only_node: impl Fn(i64) -> Option<Arc<str>>,
) -> Key {
    // A line without a pid in a process's own file is that process's, whatever label it carries.
    let own_file = file.pid.filter(|_| speaker.pid.is_none());
    if let Some(pid) = speaker.pid.or(own_file) {
        return Key::Pid(scope, only_node(pid).or(node), pid);
    }
    if let Some(label) = &speaker.label {
        return Key::Label(scope, node.or_else(|| speaker.container.clone()), label.clone());
    }
    if let Some(rank) = speaker.rank.or(file.places(speaker).0) {
        return Key::Rank(scope, rank);
    }
    if let Some(label) = &file.label {
        return Key::Label(scope, node, label.clone());
    }
    if let Some(local) = speaker.coords.local {
        return Key::Local(input, node, local);
    }
    Key::Main(input, node.or_else(|| speaker.container.clone()))
}

/// The rank of vLLM's `VllmWorker-3`, which calls itself `Worker_TP3` in its own lines.
fn executor_rank(label: Option<&str>) -> Option<u32> {
    label?.strip_prefix("VllmWorker-")?.parse().ok()
}

/// The name of a data-parallel engine of which nothing but the number is told.
fn engine_core(victim: &Victim) -> Option<Arc<str>> {
    let dp = victim.coords.dp.filter(|_| !victim.is_named())?;
    Some(format!("EngineCore_DP{dp}").into())
}

/// Kernel and Ray cut process names; a cut one is a prefix of the whole.
pub(crate) fn same_label(own: &str, told: &str) -> bool {
    let (own, told) = (bare_label(own), bare_label(told));
    own == told || told.len() >= 8 && own.starts_with(told)
}

/// A name without whose process it is.
fn bare_label(name: &str) -> &str {
    name.trim_start_matches("VLLM::").trim_start_matches("ray::")
}

fn role_of(speaker: &Speaker, file: &FileHint) -> ProcessRole {
    let label = speaker.label.as_deref().or(file.label.as_deref()).unwrap_or("");
    let is = |prefix: &str| label.starts_with(prefix);
    if file.observer || matches!(speaker.program, Program::Kernel | Program::Supervisor) {
        ProcessRole::Observer
    } else if is("Worker") || is("VllmWorker") || is("RayWorker") || is("ray-worker") || is("sglang::scheduler") {
        ProcessRole::Worker
    } else if is("EngineCore") || is("DPEngineCore") || is("DPMoEEngineCore") || is("DPSupervisor") || is("VLLM_DP") {
        ProcessRole::EngineCore
    } else if is("APIServer") || is("ApiServer") {
        ProcessRole::ApiServer
    } else if matches!(
        label,
        "raylet" | "gcs_server" | "autoscaler" | "monitor" | "log_monitor" | "ray_client_server"
    ) || is("dashboard")
        || is("runtime_env")
    {
        ProcessRole::RayDaemon
    } else if label == "driver" {
        ProcessRole::Driver
    } else if holds_device(speaker, file, label) {
        ProcessRole::Worker
    } else {
        ProcessRole::Main
    }
}

/// Who names a rank or a coordinate, speaks NCCL, or runs under a label of its own is one of the workers.
fn holds_device(speaker: &Speaker, file: &FileHint, label: &str) -> bool {
    let (rank, local) = file.places(speaker);
    let placed = speaker.rank.or(rank).or(local).is_some() || !speaker.coords.is_empty();
    let named = speaker.explicit && speaker.pid.is_some() && !label.is_empty() && label != "MainProcess";
    placed || named || speaker.program == Program::Nccl
}
