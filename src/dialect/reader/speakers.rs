//! Who speaks a line, and what its lines say of it.
//!
//! Owns the table of a source's speakers. Never joins the speakers of two sources: those are processes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Announced, Heard, RECENT, Reader};
use crate::catalog::captures::{self, Captured, Identity};
use crate::catalog::matcher::Hit;
use crate::dialect::header::Header;
use crate::event::{self, Coords, Program, Speaker};
use crate::record::Record;
use crate::time::Stamp;

/// Speakers kept apart in one source; further ones share one entry.
pub(super) const MAX_SPEAKERS: usize = 8192;

impl Reader<'_> {
    /// What a match says, in its groups and by being printed at all.
    pub(super) fn captured(&self, hit: &Hit<'_>) -> Captured {
        let mut captured = captures::sort(&hit.captures);
        let rank = self.catalog.signature(hit.id).and_then(|s| s.def.of_rank);
        captured.identity.rank = captured.identity.rank.or(rank);
        captured
    }

    pub(super) fn learn(&mut self, speaker: usize, captured: &Captured) {
        let Some(heard) = self.heard.get_mut(speaker) else {
            return;
        };
        let (known, new) = (&mut heard.identity, &captured.identity);
        // A stream without names may be of several processes: what they say of themselves is then nobody's.
        let differs = |a: Option<u32>, b: Option<u32>| a.is_some() && b.is_some() && a != b;
        // NCCL ranks a process anew in each group; an engine's worker has one rank.
        let one_rank = heard.speaker.label.is_some() && known.world_size == new.world_size;
        if (!heard.speaker.explicit || one_rank) && differs(known.rank, new.rank) {
            heard.mixed = true;
            heard.ranks.extend(known.rank.filter(|_| one_rank));
        }
        if heard.mixed {
            heard.ranks.extend(new.rank.filter(|_| heard.speaker.label.is_some()));
            (known.rank, known.coords, known.device) = (None, Coords::default(), None);
            known.world_size = known.world_size.or(new.world_size);
            return;
        }
        known.pid = known.pid.or(new.pid);
        known.place_among(new);
        known.coords.fill_from(&new.coords);
        known.device = known.device.or(new.device);
        known.host = known.host.take().or_else(|| new.host.clone());
        known.version = known.version.take().or_else(|| new.version.clone());
        known.model = known.model.take().or_else(|| new.model.clone());
    }

    pub(super) fn note_heard(&mut self, speaker: usize, line: u64, stamp: Option<Stamp>) {
        let Some(heard) = self.heard.get_mut(speaker) else {
            return;
        };
        heard.lines += 1;
        heard.last_line = line;
        if stamp.is_some() {
            if heard.first.is_none() {
                heard.first.clone_from(&stamp);
            }
            heard.last = stamp;
        }
    }

    pub(super) fn speaker(&mut self, record: &Record<'_>, head: &Header<'_>) -> usize {
        let tag = &record.tag;
        let ray = tag.ray.as_ref();
        let label = head.label.or_else(|| ray.map(|r| &*r.name).filter(|n| !n.is_empty()));
        let node = head
            .host
            .or_else(|| ray.and_then(|r| r.ip.as_deref()))
            .or(tag.node.as_deref());
        // A service manager gives the process that opened the log, and its children write to it too.
        let unnamed = head.label.is_none() && head.coords.is_empty();
        let owner = tag
            .pid
            .filter(|_| unnamed && head.rank.or(tag.rank).or(tag.local).is_none());
        let pid = head
            .pid
            .or_else(|| ray.and_then(|r| r.pid))
            .or(owner)
            .and_then(event::pid);
        let task = tag.task.and_then(event::rank);
        let printed = tag.rank.filter(|_| unnamed);
        let rank = head.rank.or(printed).and_then(event::rank);
        let program = match (head.program, ray) {
            (Program::Unknown, Some(r)) if r.is_daemon() => Program::Ray,
            (program, _) => program,
        };
        // NCCL's device is that of the calling thread and may be wrong: it is no identity.
        let mut coords = if head.program == Program::Nccl {
            Coords::default()
        } else {
            head.coords
        };
        coords.local = coords
            .local
            .or(tag.local.filter(|_| head.label.is_none()).and_then(event::rank));
        let same = |heard: &Heard| {
            let s = &heard.speaker;
            s.label.as_deref() == label
                && s.pid == pid
                && s.rank == rank
                && s.task == task
                && s.program == program
                && s.node.as_deref() == node
                && s.container == tag.container
                && s.unit == tag.unit
                && s.coords == coords
        };
        // Streams of many processes alternate: the last one in this slot mostly is the one.
        let slot = slot(label, node, pid, rank.or(task));
        let recent = self.recent.get(slot).copied();
        for index in [Some(self.last_speaker), recent].into_iter().flatten() {
            if self.heard.get(index).is_some_and(same) {
                self.last_speaker = index;
                return index;
            }
        }
        let speaker = Speaker {
            program,
            node: node.map(Into::into),
            container: tag.container.clone(),
            unit: tag.unit.clone(),
            label: label.map(Into::into),
            pid,
            rank,
            task,
            coords,
            explicit: label.is_some() || pid.is_some() || rank.is_some() || task.is_some() || !coords.is_empty(),
        };
        self.last_speaker = match self.speakers.get(&speaker) {
            Some(&index) => index,
            None if self.heard.len() >= MAX_SPEAKERS => 0,
            None => {
                let speaker = Arc::new(speaker);
                self.heard.push(Heard {
                    speaker: speaker.clone(),
                    first_line: record.line,
                    last_line: record.line,
                    first: None,
                    last: None,
                    identity: Identity {
                        // NCCL's host name behind Ray's address: two names of one node.
                        host: head.host.and(ray.and_then(|r| r.ip.clone())),
                        ..Identity::default()
                    },
                    lines: 0,
                    mixed: false,
                    ranks: BTreeSet::new(),
                });
                self.speakers.insert(speaker, self.heard.len() - 1);
                self.heard.len() - 1
            }
        };
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = self.last_speaker;
        }
        self.last_speaker
    }

    /// Notes a line that says whose traceback follows.
    pub(super) fn announce(&mut self, line: u64, key: u64, message: &str) {
        let Some(name) = child_name(message) else { return };
        let mut own = (0..self.heard.len()).filter(|&i| {
            let label = self.heard.get(i).and_then(|h| h.speaker.label.as_deref());
            label == Some(name)
        });
        // Several processes of one name, or none that was heard of: whose it is is not known by that name.
        if let (Some(speaker), None) = (own.next(), own.next()) {
            self.announced = Some(Announced { speaker, key, line });
        }
    }

    /// Whose traceback begins here, if the line before says so.
    pub(super) fn announced_speaker(&mut self, line: u64, key: u64, begins: bool) -> Option<usize> {
        let announced = self.announced.take()?;
        (begins && announced.line + 1 == line && announced.key == key).then_some(announced.speaker)
    }
}

/// The name in the line that multiprocessing prints above the traceback of a child, `Process EngineCore:`. The names that
/// it gives by itself (`Process-1`, `SpawnProcess-1:2`) are nobody's.
fn child_name(message: &str) -> Option<&str> {
    let name = message.trim_end().strip_prefix("Process ")?.strip_suffix(':')?;
    let number = name.rsplit_once("Process-").map(|(_, number)| number);
    let given = number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b':'));
    (!given && !name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

/// Which slot of the recent speakers one goes to.
fn slot(label: Option<&str>, node: Option<&str>, pid: Option<i64>, rank: Option<u32>) -> usize {
    let [label, node] = [label, node].map(|word| xxhash_rust::xxh3::xxh3_64(word.unwrap_or_default().as_bytes()));
    let numbers = pid.unwrap_or(0).cast_unsigned() ^ u64::from(rank.unwrap_or(0)) << 32;
    let mixed = (label ^ node.rotate_left(21) ^ numbers).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> 32).unwrap_or(0) % RECENT
}

#[cfg(test)]
mod tests {
    use super::child_name;

    #[test]
    fn a_child_is_known_by_a_name_of_its_own() {
        assert_eq!(child_name("Process EngineCore_DP1:"), Some("EngineCore_DP1"));
        for nobodys in [
            "Process SpawnProcess-1:",
            "Process Process-1:2:",
            "Process 4 died:",
            "Process :",
        ] {
            assert_eq!(child_name(nobodys), None, "{nobodys}");
        }
    }
}
