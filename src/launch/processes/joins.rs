//! Several entries of the table that are one process.
//!
//! Owns the joining of entries by rank, by records that name both, and by what the kernel tells. Where several could be
//! meant, none is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::super::names::is_of_launches;
use super::super::{Source, links, only};
use super::{Process, ProcessId, ProcessRole, Processes, Teller, bare_label, executor_rank, same_label};
use crate::catalog::Catalog;
use crate::event::{Coords, Event, Victim};
use crate::time::Stamp;

impl Processes {
    /// A record that names rank and pid of one process joins what is known under either.
    pub(super) fn join_pair(&mut self, pair: &Victim, teller: Teller) {
        let (Some(pid), Some(rank)) = (pair.pid, pair.rank) else {
            return;
        };
        let one = |fits: &dyn Fn(&Process) -> bool| {
            let found = self.list.iter().enumerate().filter(|(_, p)| !p.absorbed && fits(p));
            let mut found: Vec<(Option<usize>, usize)> = found.map(|(i, p)| (p.scope, i)).collect();
            found.sort_unstable();
            // Of several rounds the last is meant: a record at the end of a job is on that.
            let apart = found
                .windows(2)
                .all(|two| matches!(two, [(a, _), (b, _)] if a.is_some() && a < b));
            (found.last().map(|(_, i)| *i), !apart)
        };
        let scope = self.scope(teller.input);
        let node = |p: &Process| p.may_be_on(pair.node.as_ref()) && p.may_be_of(scope);
        let (by_pid, pids) = one(&|p| p.pid == Some(pid) && node(p) && p.rank.is_none_or(|r| r == rank));
        let (by_rank, ranks) = one(&|p| p.rank == Some(rank) && node(p) && p.pid.is_none_or(|p| p == pid));
        if pids || ranks {
            return;
        }
        // Of one that has only its place within the node so far, the record tells both.
        let local = pair.coords.local;
        let open = |p: &Process| p.pid.is_none() && p.rank.is_none() && p.label.is_none();
        let (by_local, locals) = one(&|p| local.is_some() && p.coords.local == local && open(p) && node(p));
        let by_rank = by_rank.or(by_local.filter(|_| !locals));
        match (by_pid, by_rank) {
            (Some(a), Some(b)) if a != b => self.absorb(&[(b, a)]),
            (None, None) => {
                self.find_or_add(pair, teller);
                return;
            }
            _ => {}
        }
        if let Some(process) = by_pid.or(by_rank).and_then(|i| self.list.get_mut(i)) {
            process.pid = Some(pid);
            process.rank = Some(rank);
            process.role = process.role.max(ProcessRole::Worker);
            process.coords.fill_from(&pair.coords);
        }
    }

    /// The process of which only the rank is known, where a line gives its pid with the local rank. One of a file of its
    /// own is of the attempt that is told of.
    pub(super) fn of_local_rank(&mut self, victim: &Victim, teller: Teller) -> Option<ProcessId> {
        let (pid, local) = (victim.pid?, victim.coords.local?);
        let first = self.first_ranks();
        let rank = first.get(&victim.node).and_then(|first| first.checked_add(local));
        let of_attempt = |i: usize| {
            let heard = self.heard_in.get(&ProcessId(i));
            heard.is_some_and(|attempts| attempts.contains(&teller.attempt))
        };
        let fits = |(i, p): &(usize, &Process)| {
            let open = !p.absorbed && p.pid.is_none() && p.rank.is_some();
            let counted = p.node == victim.node && p.rank == rank && p.coords.local.is_none_or(|own| own == local);
            open && (counted || p.node.is_none() && p.coords.local == Some(local) && of_attempt(*i))
        };
        let found = only(self.list.iter().enumerate().filter(fits).map(|(i, _)| i))?;
        let process = self.list.get_mut(found)?;
        process.pid = Some(pid);
        process.coords.fill_from(&victim.coords);
        Some(ProcessId(found))
    }

    /// The first rank of each node, where the logs prove it: a process of the node gives both of its ranks, the node
    /// says which of the launch's nodes it is, has rank 0 or the rank after another node's last, or all is of one node
    /// with as many local ranks as there are ranks.
    pub(super) fn first_ranks(&self) -> HashMap<Option<Arc<str>>, u32> {
        let all = || self.list.iter().filter(|p| !p.absorbed && p.role.is_worker_like());
        let mut told: HashMap<Option<Arc<str>>, BTreeSet<u32>> = HashMap::new();
        for process in all() {
            let both = process.rank.zip(process.coords.local);
            if let Some(first) = both.and_then(|(rank, local)| rank.checked_sub(local)) {
                told.entry(process.node.clone()).or_default().insert(first);
            }
        }
        // Two processes with one local rank are of two nodes that no line tells apart.
        let two = |node: &Option<Arc<str>>| {
            let own = || all().filter(move |p| p.node == *node && p.pid.is_some());
            let locals: Vec<u32> = own().filter_map(|p| p.coords.local).collect();
            let distinct: BTreeSet<&u32> = locals.iter().collect();
            distinct.len() < locals.len()
        };
        let mut first: HashMap<Option<Arc<str>>, u32> = HashMap::new();
        for (node, told) in told.into_iter().filter(|(node, _)| !two(node)) {
            if let (Some(&rank), 1) = (told.first(), told.len()) {
                first.insert(node, rank);
            }
        }
        let nodes: BTreeSet<&Option<Arc<str>>> = all().map(|p| &p.node).collect();
        let world = all().filter_map(|p| p.identity.world_size).max();
        for &node in &nodes {
            let own = || all().filter(|p| p.node == *node);
            let distinct: BTreeSet<u32> = own().filter_map(|p| p.coords.local).collect();
            let one = !two(node);
            if let Some(&stated) = self.first_of_nodes.get(node).filter(|_| one) {
                first.entry(node.clone()).or_insert(stated);
            }
            let whole = nodes.len() == 1 && world.is_some_and(|world| world as usize == distinct.len());
            if one && (whole || own().any(|p| p.rank == Some(0))) {
                first.entry(node.clone()).or_insert(0);
            }
            // Ranks lie on nodes in blocks: one that follows the last rank of another node is the first of its own.
            let lowest = own().filter_map(|p| p.rank).min();
            let others = || all().filter(|p| p.node != *node).filter_map(|p| p.rank);
            if let Some(lowest) = lowest.filter(|lowest| others().any(|rank| rank + 1 == *lowest)) {
                first.entry(node.clone()).or_insert(lowest);
            }
        }
        first
    }

    /// The kernel counts processes of a container otherwise than the container does. Whom it tells of is the one process
    /// that has the name it gives, or the one to which, as others tell, the same happened; where several could be meant,
    /// none.
    pub(super) fn link_kernel_pids(&mut self, catalog: &Catalog, sources: &[Arc<Source>]) {
        let stricken: Vec<(links::Stricken, Option<Arc<str>>)> = links::stricken(catalog, sources)
            .into_iter()
            .map(|told| {
                let kernel = self.by_speaker.get(&(told.input, told.speaker.clone()));
                let node = kernel.and_then(|id| self.observed_node(*id)).cloned();
                (told, node)
            })
            .collect();
        let known = |(told, node): &&(links::Stricken, Option<Arc<str>>)| {
            self.list
                .iter()
                .any(|p| p.pid == Some(told.pid) && p.may_be_on(node.as_ref()))
        };
        let unknown: Vec<_> = stricken.iter().filter(|told| !known(told)).collect();
        if unknown.is_empty() {
            return;
        }
        let others: Vec<(ProcessId, &[links::Fate], Option<Stamp>)> = links::told_by_others(catalog, sources)
            .filter_map(|(event, fates)| Some((self.whom(event)?, fates, event.place.own_stamp().cloned())))
            .collect();
        for (told, node) in &unknown {
            let scope = self.scope(told.input);
            let may_be = |id: &ProcessId| {
                let process = self.get(*id);
                let other = || stricken.iter().any(|(s, _)| process.pid == Some(s.pid));
                process.may_be_of(scope) && process.may_be_on(node.as_ref()) && !other()
            };
            let named: Vec<ProcessId> = self.named_like(told).into_iter().filter(may_be).collect();
            let alike = unknown.iter().filter(|(o, n)| o.fate == told.fate && n == node).count();
            let target = match named.as_slice() {
                [only] if !self.is_numbered(*only, told) => Some(*only),
                // Several are told of, and no name says which is which.
                _ if alike > 1 || !told.label.as_deref().is_none_or(is_of_launches) => None,
                _ => {
                    let fits = |(id, fates, time): &&(ProcessId, &[links::Fate], Option<Stamp>)| {
                        let name = named.is_empty() || named.contains(id) || self.may_be_called(*id, told);
                        fates.contains(&told.fate) && told.fits(time.as_ref()) && may_be(id) && name
                    };
                    let ids: BTreeSet<usize> = others.iter().filter(fits).map(|(id, ..)| id.0).collect();
                    only(ids.into_iter()).map(ProcessId)
                }
            };
            if let Some(id) = target {
                self.host_pids.insert((node.clone(), told.pid), id);
            }
        }
    }

    /// Whether its name, as far as its own lines tell it, is not the one that the kernel gives, but may have become it:
    /// `Worker`, later `Worker_TP3`, is `VllmWorker-3` to its parent.
    fn may_be_called(&self, id: ProcessId, told: &links::Stricken) -> bool {
        let Some(own) = self.get(id).label.as_deref() else {
            return false;
        };
        let name = told.label.as_deref().map(bare_label);
        executor_rank(Some(own)).is_some() || name.is_some_and(|name| name.starts_with(own))
    }

    /// Whether the kernel cut the number off that tells processes of one name apart.
    fn is_numbered(&self, id: ProcessId, told: &links::Stricken) -> bool {
        let own = self.get(id).label.as_deref().unwrap_or("");
        let name = told.label.as_deref().map(bare_label).unwrap_or("");
        let rest = own.strip_prefix(name).unwrap_or("");
        !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())
    }

    /// The process that an event tells of, its own where it names no other.
    fn whom(&mut self, event: &Event) -> Option<ProcessId> {
        let own = self.of(event);
        if event.victim.is_empty() {
            return Some(own);
        }
        let mut victim = event.victim.clone();
        victim.node = victim.node.or_else(|| self.get(own).node.clone());
        self.find_or_add(&victim, event.place.input.into())
    }

    /// The processes whose own label is the name that the kernel gives. `python` is nobody's name.
    fn named_like(&self, told: &links::Stricken) -> Vec<ProcessId> {
        let Some(name) = told.label.as_deref() else {
            return Vec::new();
        };
        let all = self
            .list
            .iter()
            .enumerate()
            .filter(|(_, p)| !p.absorbed && p.role.is_engine());
        let fits = |p: &Process| p.label.as_deref().is_some_and(|own| same_label(own, name));
        all.filter(|(_, p)| fits(p)).map(|(i, _)| ProcessId(i)).collect()
    }

    /// A pid that unlabelled lines name, as uvicorn's do, is left to the process that has it in its label: unlabelled
    /// lines may be anybody's.
    pub(super) fn leave_pids_to_labels(&mut self) {
        let labelled = |p: &&Process| p.explicit || p.by_file;
        let labelled = self.list.iter().filter(labelled);
        let pids: Vec<_> = labelled.filter_map(|p| Some((p.scope, p.pid?))).collect();
        for bare in self.list.iter_mut().filter(|p| !p.explicit && !p.by_file) {
            let taken = |pid: &i64| pids.iter().any(|(scope, own)| own == pid && bare.may_be_of(*scope));
            bare.pid = bare.pid.filter(|pid| !taken(pid));
        }
    }

    /// Entries of one rank under different names are one process: lines that name only the rank (`[rank3]: `), those of
    /// a label that tells it (`TP3`), and those of the pid that NCCL or torch names with it.
    pub(super) fn join_by_rank(&mut self) {
        let bare = |p: &Process| p.pid.is_none() && p.label.is_none() && p.explicit | p.by_file;
        // Those that have a name or a pid first: whose the lines with the rank alone are follows from them.
        let named = self.by_rank().into_values().filter_map(|mut own| {
            own.retain(|i| self.list.get(*i).is_some_and(|p| !bare(p)));
            self.label_and_pid(&own).or_else(|| self.two_nodes(&own))
        });
        let named: Vec<(usize, usize)> = named.collect();
        self.absorb(&named);
        let mut joined: Vec<(usize, usize)> = Vec::new();
        for mut own in self.by_rank().into_values() {
            for from in own.clone() {
                let Some(nameless) = self.list.get(from).filter(|p| bare(p)) else {
                    continue;
                };
                let fits = |p: &Process| {
                    let named = p.pid.is_some() || !p.explicit || p.label.is_some();
                    named && (nameless.node.is_none() || p.node == nameless.node)
                };
                // Each input in which the rank's lines stand without a name has an entry for them.
                let twin = |i: &usize| {
                    let twin = self
                        .list
                        .get(*i)
                        .filter(|p| !p.explicit && p.pid.is_none() && p.label.is_none());
                    *i != from && twin.is_some_and(|p| p.node == nameless.node)
                };
                let twins: Vec<usize> = own.iter().copied().filter(twin).collect();
                if twins.len() > 1 {
                    own.retain(|i| !twins.contains(i));
                    joined.extend(twins.into_iter().map(|twin| (twin, from)));
                }
                let others = || own.iter().copied().filter(|i| *i != from);
                let fitting = || others().filter(|i| self.list.get(*i).is_some_and(fits));
                // A line that names a rank in passing, as Gloo's do, is nobody beside the process that has it.
                let has_name = |i: &usize| {
                    let process = self.list.get(*i);
                    process.is_some_and(|p| p.pid.is_some() || p.label.is_some())
                };
                if let Some(to) = only(fitting().filter(has_name)).or_else(|| only(fitting())) {
                    joined.push((from, to));
                    own.retain(|i| *i != from);
                }
            }
            joined.extend(self.label_and_pid(&own).or_else(|| self.two_nodes(&own)));
        }
        self.absorb(&joined);
    }

    /// The entries of each rank of each round.
    fn by_rank(&self) -> BTreeMap<(Option<usize>, u32), Vec<usize>> {
        let mut by_rank: BTreeMap<(Option<usize>, u32), Vec<usize>> = BTreeMap::new();
        for (index, process) in self.list.iter().enumerate().filter(|(_, p)| !p.absorbed) {
            if let Some(rank) = process.rank {
                by_rank.entry((process.scope, rank)).or_default().push(index);
            }
        }
        by_rank
    }

    /// An entry that has a name and was told its pid, and the one that has only this pid, on one node.
    pub(super) fn join_by_pid(&mut self) {
        let all = || self.list.iter().enumerate().filter(|(_, p)| !p.absorbed);
        let named = |bare: &Process| {
            let same = |p: &Process| {
                let place = p.pid == bare.pid && p.node == bare.node && p.scope == bare.scope;
                let rank = p.rank.zip(bare.rank).is_none_or(|(a, b)| a == b);
                place && rank && p.label.is_some() && p.role.is_worker_like()
            };
            only(all().filter(|(_, p)| same(p)).map(|(i, _)| i))
        };
        let bare = |p: &Process| p.pid.is_some() && p.label.is_none() && p.role.is_worker_like();
        let joined: Vec<(usize, usize)> = all()
            .filter(|(_, p)| bare(p))
            .filter_map(|(from, p)| Some((from, named(p)?)))
            .collect();
        self.absorb(&joined);
    }

    /// Lines without a header in the file of one of Ray's daemons are of the daemon whose pid its other lines give.
    pub(super) fn join_daemons(&mut self) {
        let daemon = |p: &Process| !p.absorbed && p.role == ProcessRole::RayDaemon && p.label.is_some();
        let all = || self.list.iter().enumerate().filter(|(_, p)| daemon(p));
        let of_pid = |bare: &Process| {
            let same =
                |p: &Process| p.pid.is_some() && p.label == bare.label && p.node == bare.node && p.scope == bare.scope;
            only(all().filter(|(_, p)| same(p)).map(|(i, _)| i))
        };
        let joined: Vec<(usize, usize)> = all()
            .filter(|(_, p)| p.pid.is_none() && p.by_file)
            .filter_map(|(from, bare)| Some((from, of_pid(bare)?)))
            .collect();
        self.absorb(&joined);
    }

    /// The entry that has only a pid and the one that has only a label, where no other of the rank could be meant.
    fn label_and_pid(&self, own: &[usize]) -> Option<(usize, usize)> {
        let [a, b] = own else { return None };
        let (a, b) = ((*a, self.list.get(*a)?), (*b, self.list.get(*b)?));
        let labelled = |p: &Process| p.label.is_some() && p.pid.is_none();
        let (from, to) = match (labelled(a.1), labelled(b.1)) {
            (true, false) => (b, a),
            (false, true) => (a, b),
            _ => return None,
        };
        let worker = from.1.role.is_worker_like() && to.1.role.is_worker_like() && from.1.label.is_none();
        // A rank of NCCL's is one of its group, which may be a part of the launch.
        let world = self.list.iter().filter_map(|p| p.identity.world_size).max();
        let whole = from.1.identity.world_size.is_none_or(|size| Some(size) == world);
        (worker && whole && (from.1.node == to.1.node || to.1.node.is_none())).then_some((from.0, to.0))
    }

    /// The entry that has only a pid and the one that has a label and the same pid: NCCL may call the node otherwise than
    /// whoever carried the lines.
    fn two_nodes(&self, own: &[usize]) -> Option<(usize, usize)> {
        let [a, b] = own else { return None };
        let (one, other) = (self.list.get(*a)?, self.list.get(*b)?);
        let same = one.pid.is_some() && one.pid == other.pid && one.node != other.node;
        match (one.label.is_some(), other.label.is_some()) {
            (true, false) if same => Some((*b, *a)),
            (false, true) if same => Some((*a, *b)),
            _ => None,
        }
    }

    /// A rank that unlabelled lines name is left to the process that has it under a label of its own: they may be
    /// anybody's, and one that tells its rank says nothing of the others.
    pub(super) fn leave_ranks_to_labels(&mut self) {
        let labelled = |p: &&Process| !p.absorbed && p.explicit && p.label.is_some();
        let ranks: Vec<_> = self
            .list
            .iter()
            .filter(labelled)
            .map(|p| (p.scope, p.rank, p.node.clone()))
            .collect();
        for bare in self.list.iter_mut() {
            let unnamed = !bare.explicit && !bare.by_file && bare.label.is_none() && bare.pid.is_none();
            let taken = |(scope, rank, node): &(Option<usize>, Option<u32>, Option<Arc<str>>)| {
                *rank == bare.rank && bare.may_be_on(node.as_ref()) && bare.may_be_of(*scope)
            };
            if unnamed && bare.rank.is_some() && ranks.iter().any(taken) {
                (bare.rank, bare.coords) = (None, Coords::default());
                bare.role = ProcessRole::Main;
            }
        }
    }

    /// In a launch of one rank the engine core holds the device: what torch prints of that rank is of it.
    pub(super) fn join_only_rank(&mut self, sources: &[Arc<Source>]) {
        let all = || self.list.iter().enumerate().filter(|(_, p)| !p.absorbed);
        let ranked = only(all().filter(|(_, p)| p.rank.is_some()).map(|(i, _)| i));
        let core = only(all().filter(|(_, p)| p.role == ProcessRole::EngineCore).map(|(i, _)| i));
        let (Some(rank), Some(core)) = (ranked, core) else {
            return;
        };
        let bare = |p: &Process| p.rank == Some(0) && p.explicit && p.pid.is_none() && p.label.is_none();
        if self.list.get(rank).is_some_and(bare) && rank != core && links::is_of_one_rank(sources) {
            self.absorb(&[(rank, core)]);
        }
    }

    /// Makes entries of the table parts of others.
    fn absorb(&mut self, joined: &[(usize, usize)]) {
        if joined.is_empty() {
            return;
        }
        let now: HashMap<usize, usize> = joined.iter().copied().collect();
        for id in self.by_speaker.values_mut() {
            // What became part of an entry that became part of another is part of that.
            while let Some(to) = now.get(&id.0) {
                *id = ProcessId(*to);
            }
        }
        for &(from, to) in joined {
            let Some(gone) = self.list.get_mut(from) else { continue };
            gone.absorbed = true;
            let gone = gone.clone();
            if let Some(kept) = self.list.get_mut(to) {
                take(kept, gone);
            }
        }
    }
}

fn take(kept: &mut Process, gone: Process) {
    kept.rank = kept.rank.or(gone.rank);
    kept.pid = kept.pid.or(gone.pid);
    kept.node = kept.node.take().or(gone.node);
    kept.label = kept.label.take().or(gone.label);
    kept.device = kept.device.or(gone.device);
    kept.coords.fill_from(&gone.coords);
    kept.role = kept.role.max(gone.role);
    kept.explicit |= gone.explicit;
    kept.ray_worker |= gone.ray_worker;
    kept.last_line = kept.last_line.max(gone.last_line);
    kept.identity.world_size = kept.identity.world_size.or(gone.identity.world_size);
    kept.identity.host = kept.identity.host.take().or(gone.identity.host);
    let before = |a: &Stamp, b: &Stamp| a.seconds_since(b).is_some_and(|s| s < 0.0);
    kept.first = match (kept.first.take(), gone.first) {
        (Some(a), Some(b)) => Some(if before(&b, &a) { b } else { a }),
        (a, b) => a.or(b),
    };
    kept.last = match (kept.last.take(), gone.last) {
        (Some(a), Some(b)) => Some(if before(&a, &b) { b } else { a }),
        (a, b) => a.or(b),
    };
}
