//! Where one launch ends and the next begins.
//!
//! Owns the splitting of restarts. A launch line is a restart only when the launch before it got somewhere or failed,
//! its processes are not heard again, and it follows that launch in time; two servers side by side are one attempt. The
//! parts of a rotated log, and the two streams of one program, are one output; launches in outputs of their own are told
//! apart by `rounds`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::files::output;
use super::processes::{ProcessId, Processes};
use super::relation::{Span, both};
use super::rounds::Rounds;
use super::servers::Servers;
use super::{Placed, Source};
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::{Fact, InputId, TracebackKind};

/// Events of an earlier process that may still trail behind a restart (buffered output of the dying one).
const TRAILING: usize = 12;

/// Writes the attempt into every event and gives the number of attempts.
pub fn split(
    catalog: &Catalog,
    sources: &[Arc<Source>],
    rounds: &Rounds,
    (processes, servers): (&Processes, &Servers),
    events: &mut [Placed],
) -> usize {
    let mut outputs: HashMap<String, Output> = HashMap::new();
    let mut names: HashMap<InputId, String> = HashMap::new();
    for (at, source) in sources.iter().enumerate() {
        let name = output(&source.name);
        names.insert(source.input, name.clone());
        let own = outputs.entry(name).or_default();
        own.round = own.round.or(rounds.round(at));
    }
    for (i, placed) in events.iter().enumerate() {
        let name = names.get(&placed.event.place.input);
        if let Some(own) = name.and_then(|name| outputs.get_mut(name)) {
            own.events.push(i);
            own.dated |= placed.dated;
        }
    }
    let mut outputs: Vec<Output> = outputs.into_values().collect();
    for own in &mut outputs {
        own.starts = boundaries(catalog, (processes, servers), events, &own.events);
    }
    drop_lone_restarts(catalog, events, &mut outputs);
    // Where no file of its own tells one launch from the next, all outputs are of one round.
    let in_rounds = rounds.count() > 1;
    let mut attempts_of: Vec<usize> = vec![1; rounds.count()];
    for own in &outputs {
        let round = if in_rounds { own.round } else { Some(0) };
        if let Some(most) = round.and_then(|r| attempts_of.get_mut(r)) {
            *most = (*most).max(own.starts.len() + 1);
        }
    }
    let attempts: usize = attempts_of.iter().sum();
    if attempts == 1 {
        return attempts;
    }
    // Where a cluster outlived a launch, its daemons were there all the time.
    let outlived = |round: usize| rounds.by_cluster() && attempts_of.get(round).is_some_and(|n| *n > 1);
    let (placed, others): (Vec<&Output>, Vec<&Output>) = outputs.iter().partition(|own| {
        let shows = !own.starts.is_empty();
        let all = shows && (!in_rounds || own.starts.len() + 1 == attempts);
        own.round.map_or(all, |round| shows || !outlived(round))
    });
    for own in placed {
        let round = own.round.filter(|_| in_rounds).unwrap_or(0);
        let before: usize = attempts_of.iter().take(round).sum();
        let of_round = attempts_of.get(round).copied().unwrap_or(1);
        // A source with fewer launches than another joined late: its last launch is the last attempt.
        let offset = before + of_round.saturating_sub(own.starts.len() + 1);
        for &index in &own.events {
            let passed = own.starts.partition_point(|&start| start <= index);
            if let Some(placed) = events.get_mut(index) {
                placed.attempt = passed + offset;
            }
        }
    }
    by_time(&others, attempts, events);
    attempts
}

/// A node that joins a launch and restarts while the node that leads it, which has an output of its own, does not, is in
/// the same launch again.
fn drop_lone_restarts(catalog: &Catalog, events: &[Placed], outputs: &mut [Output]) {
    let launches = |own: &Output, joining: bool| {
        let all = own.events.iter().filter_map(|&i| events.get(i));
        let engine = |p: &&Placed| {
            let def = catalog.signature(p.event.signature).map(|s| &s.def);
            def.is_some_and(|d| d.role == Role::Launch && !matches!(d.program.as_str(), "nccl" | "torch"))
        };
        all.into_iter().filter(engine).any(|p| is_joining(p) == joining)
    };
    let heads = || outputs.iter().filter(|own| launches(own, false));
    if heads().any(|own| !own.starts.is_empty()) {
        return;
    }
    let Some(led_from) = heads().filter_map(|own| own.events.first().copied()).min() else {
        return;
    };
    for own in outputs
        .iter_mut()
        .filter(|own| launches(own, true) && !launches(own, false))
    {
        own.starts.retain(|start| *start < led_from);
    }
}

/// What shows no launch, such as a raylet's or the kernel's log, was there all the time: an event in it is of the
/// attempt that was under way. Without stamps, or where these are of another time, it is of the last.
fn by_time(others: &[&Output], attempts: usize, events: &mut [Placed]) {
    let own: HashSet<usize> = others.iter().flat_map(|o| &o.events).copied().collect();
    let mut starts: Vec<usize> = vec![usize::MAX; attempts];
    let mut end = 0;
    for (index, placed) in events.iter().enumerate() {
        if placed.dated && !own.contains(&index) {
            end = index;
            if let Some(start) = starts.get_mut(placed.attempt) {
                *start = (*start).min(index);
            }
        }
    }
    let begin = starts.iter().min().copied().unwrap_or(usize::MAX);
    for output in others {
        let meets = output.dated && output.events.iter().any(|i| (begin..=end).contains(i));
        for &index in &output.events {
            let begun = starts.iter().rposition(|&start| start <= index).unwrap_or(0);
            if let Some(placed) = events.get_mut(index) {
                placed.attempt = if meets { begun } else { attempts - 1 };
            }
        }
    }
}

/// The events of one output.
#[derive(Default)]
struct Output {
    round: Option<usize>,
    events: Vec<usize>,
    /// Where a new attempt begins.
    starts: Vec<usize>,
    /// Whether any of it has a stamp.
    dated: bool,
}

/// The events of one output at which a new attempt begins; the first launch is no boundary.
fn boundaries(
    catalog: &Catalog,
    (processes, servers): (&Processes, &Servers),
    events: &[Placed],
    own: &[usize],
) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut current: Option<Started> = None;
    let mut to_come: HashMap<ProcessId, usize> = HashMap::new();
    for placed in own.iter().filter_map(|&index| events.get(index)) {
        *to_come.entry(placed.process).or_default() += 1;
    }
    // The nodes of a launch of several that have begun in the current attempt.
    let mut begun: HashSet<String> = HashSet::new();
    // The same of servers that do not meet.
    let mut others: HashSet<usize> = HashSet::new();
    let mut hours = Hours::default();
    let mut agents = Agents::of(catalog, events, own);
    for (at, &index) in own.iter().enumerate() {
        let Some(placed) = events.get(index) else { continue };
        to_come.entry(placed.process).and_modify(|n| *n -= 1);
        if agents.begin_again(catalog, placed) {
            starts.push(index);
            (begun, current, hours) = (HashSet::new(), None, Hours::default());
            others.clear();
        }
        let role = catalog
            .signature(placed.event.signature)
            .map(|s| (s.def.role, s.def.program.as_str()));
        if let Some((Role::Launch, program)) = role {
            if program == "nccl" || program == "torch" {
                current.get_or_insert_with(|| Started::new(placed.process, program, false));
                continue;
            }
            let from_here = own.get(at..).unwrap_or_default();
            let node = node_of_several(events, from_here);
            let another = node.is_some_and(|node| begun.insert(node)) && begun.len() > 1;
            let server = servers.get(&placed.event);
            let beside = server.is_some_and(|server| others.insert(server)) && others.len() > 1;
            let joins = is_joining(placed);
            let part = current.as_mut().is_some_and(|started| started.takes(joins));
            match &current {
                // One more node of the same launch, or one more server, in a stream that holds them all, one behind the
                // other or mixed.
                Some(_) if part || another || beside || hours.run_on(events, from_here) => {}
                // The bare NCCL start of an engine launch is not a launch of its own.
                Some(started) if started.progressed && started.engine => {
                    let old = started.process;
                    let other = old != placed.process && processes.get(old).explicit;
                    let heard = to_come.get(&old).copied().unwrap_or(0);
                    if !other || heard <= TRAILING {
                        starts.push(first_words(catalog, events, own, at).unwrap_or(index));
                        begun = node_of_several(events, from_here).into_iter().collect();
                        others = server.into_iter().collect();
                        current = Some(Started::new(placed.process, program, joins));
                        hours = Hours::default();
                    }
                }
                Some(started) if started.engine => {}
                _ => current = Some(Started::new(placed.process, program, joins)),
            }
        } else if let Some(started) = &mut current {
            started.progressed |= match role.map(|r| r.0) {
                Some(Role::Phase) => far(catalog, placed),
                Some(Role::Ready | Role::Stop | Role::Wrapper | Role::Exit | Role::Root) => true,
                _ => is_failure(&placed.event.fact),
            };
        }
        hours.add(placed);
    }
    starts
}

/// Agents that start the processes of their nodes anew when one has failed, as torchrun's do. They do so together.
#[derive(Default)]
struct Agents {
    /// Of each agent, how many failures of its processes it tells of.
    failures: HashMap<ProcessId, usize>,
    /// Of each agent, how often it has said so far that it starts anew, and told of such a failure.
    restarts: HashMap<ProcessId, usize>,
    failed: HashMap<ProcessId, usize>,
    /// How often all have begun again.
    begun: usize,
}

impl Agents {
    fn of(catalog: &Catalog, events: &[Placed], own: &[usize]) -> Self {
        let mut agents = Self::default();
        for placed in own.iter().filter_map(|&index| events.get(index)) {
            // Without a pid it may be one of several.
            if step(catalog, placed) == Some("group-failed") && placed.event.speaker.pid.is_some() {
                *agents.failures.entry(placed.process).or_default() += 1;
            }
        }
        agents
    }

    /// Whether the processes of a new try begin with this event: where their agent sets out to start them, or where one
    /// begins of those that it tells of the failure of later, as an agent does that keeps to warnings.
    fn begin_again(&mut self, catalog: &Catalog, placed: &Placed) -> bool {
        match step(catalog, placed) {
            Some("restart") => *self.restarts.entry(placed.process).or_default() += 1,
            Some("group-failed") => *self.failed.entry(placed.process).or_default() += 1,
            _ => {}
        }
        let times = |of: &HashMap<ProcessId, usize>, agent: &ProcessId| of.get(agent).copied().unwrap_or(0);
        let told = times(&self.restarts, &placed.process) > self.begun;
        let quiet = |agent: &ProcessId| {
            let failed = times(&self.failed, agent);
            *agent != placed.process && failed > self.begun && failed < times(&self.failures, agent)
        };
        let begins = told || self.restarts.is_empty() && self.failures.keys().any(quiet);
        let role = catalog.signature(placed.event.signature).map(|s| s.def.role);
        let begins = begins && role == Some(Role::Phase);
        self.begun += usize::from(begins);
        begins
    }
}

fn step<'c>(catalog: &'c Catalog, placed: &Placed) -> Option<&'c str> {
    catalog.signature(placed.event.signature)?.def.step.as_deref()
}

/// Seconds by which lines of one program may be out of order.
const DISORDER: f64 = 1.0;

/// From when to when an attempt has been heard, by its stamps.
#[derive(Default)]
struct Hours(Option<Span>);

impl Hours {
    fn add(&mut self, placed: &Placed) {
        let Some(now) = &placed.event.place.time else { return };
        let now = (now.clone(), now.clone());
        self.0 = Some(match self.0.take() {
            Some(heard) => both(heard, now),
            None => now,
        });
    }

    /// Whether the launch that begins with the first of these events ran beside what was heard so far: it began before
    /// that ended and was heard after that began. A restart follows what it restarts.
    fn run_on(&self, events: &[Placed], from: &[usize]) -> bool {
        let Some((first, last)) = &self.0 else { return false };
        let mut times = from
            .iter()
            .take(SETTINGS_WITHIN)
            .filter_map(|i| events.get(*i)?.event.place.time.as_ref());
        let begins = times.next();
        begins.is_some_and(|begins| last.seconds_since(begins).is_some_and(|seconds| seconds > DISORDER))
            && begins
                .into_iter()
                .chain(times)
                .any(|time| time.seconds_since(first).is_some_and(|seconds| seconds >= 0.0))
    }
}

/// Events after the first line of a launch among which its settings are looked for.
const SETTINGS_WITHIN: usize = 64;

/// Which node of a launch on several begins at the first of these events, as it says of itself.
fn node_of_several(events: &[Placed], from: &[usize]) -> Option<String> {
    let process = events.get(*from.first()?)?.process;
    let mut near = from.iter().take(SETTINGS_WITHIN).filter_map(|i| events.get(*i));
    near.find_map(|p| {
        let nodes = p.event.setting("nnodes").and_then(|n| n.parse::<u32>().ok());
        let several = p.process == process && nodes.is_some_and(|n| n > 1);
        several.then(|| p.event.setting("node_rank").map_or("0", |rank| rank).to_owned())
    })
}

/// Whether a node says that it joins the launch that another one leads.
fn is_joining(placed: &Placed) -> bool {
    placed.event.settings.iter().any(|(name, _)| &**name == "head_node")
}

/// The event with which the launch begins that is known as one from the event at `at`: what its process says of its
/// configuration may go before.
fn first_words(catalog: &Catalog, events: &[Placed], own: &[usize], at: usize) -> Option<usize> {
    let process = events.get(*own.get(at)?)?.process;
    let config = |index: &&usize| {
        events.get(**index).is_some_and(|placed| {
            let role = catalog.signature(placed.event.signature).map(|s| s.def.role);
            placed.process == process && role == Some(Role::Phase) && !far(catalog, placed)
        })
    };
    own.get(..at)?.iter().rev().take_while(config).last().copied()
}

struct Started {
    process: ProcessId,
    engine: bool,
    progressed: bool,
    /// Whether the node that leads it has begun, and one that joins it.
    head: bool,
    joined: bool,
}

impl Started {
    fn new(process: ProcessId, program: &str, joins: bool) -> Self {
        let engine = !matches!(program, "nccl" | "torch");
        Self {
            process,
            engine,
            progressed: false,
            head: engine && !joins,
            joined: joins,
        }
    }

    /// Whether a node that begins is a part of this launch, as it says of itself: one that joins what another leads, or
    /// the one that others have joined already.
    fn takes(&mut self, joins: bool) -> bool {
        let part = if joins { self.head } else { self.joined && !self.head };
        self.joined |= part && joins;
        self.head |= part && !joins;
        part
    }
}

/// Phases beyond reading the configuration show that the launch was under way.
fn far(catalog: &Catalog, placed: &Placed) -> bool {
    let phase = catalog
        .signature(placed.event.signature)
        .and_then(|s| s.def.phase.as_deref());
    !matches!(phase, None | Some("process-start" | "config"))
}

fn is_failure(fact: &Fact) -> bool {
    matches!(fact, Fact::Traceback(t) if t.kind != TracebackKind::Ignored)
}
