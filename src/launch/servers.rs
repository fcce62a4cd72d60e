//! Which server a line is of, where the logs of one incident hold several: replicas, each with a file of its own or pod
//! by pod, or container by container, in one stream.
//!
//! Owns the telling apart of launches that do not meet, so that what one does says nothing of another. Nodes that give
//! one meeting point are one; a line that belongs to none for sure is not told apart from any.

use std::collections::HashMap;
use std::sync::Arc;

use super::Source;
use super::relation::{Own, launch_of};
use crate::catalog::Catalog;
use crate::event::{Event, InputId};

/// The servers of an incident.
#[derive(Debug, Clone, Default)]
pub(super) struct Servers {
    /// By input, and by node or container where the input is a stream of several.
    of: HashMap<(InputId, Option<Arc<str>>), usize>,
    meetings: HashMap<Arc<str>, usize>,
    count: usize,
}

impl Servers {
    /// The server that a line is of, if that is known.
    pub(super) fn get(&self, event: &Event) -> Option<usize> {
        let node = (event.place.input, part(event).cloned());
        let whole = || self.of.get(&(event.place.input, None));
        self.of.get(&node).or_else(whole).copied()
    }

    /// Notes inputs that hold the launch `own`; `alone` where nothing says that it is one of several nodes.
    pub(super) fn add(&mut self, inputs: impl Iterator<Item = InputId>, own: &Own, alone: bool) {
        if let Some(server) = self.server(own, alone) {
            self.of.extend(inputs.map(|input| ((input, None), server)));
        }
    }

    /// Tells the launches apart that stand in one stream under the names of their nodes.
    pub(super) fn add_streams(&mut self, catalog: &Catalog, sources: &[Arc<Source>]) {
        for source in sources {
            let mut nodes: HashMap<&Arc<str>, Vec<&Event>> = HashMap::new();
            for event in &source.harvest.events {
                if let Some(node) = part(event) {
                    nodes.entry(node).or_default().push(event);
                }
            }
            if nodes.len() < 2 {
                continue;
            }
            for (node, events) in nodes {
                let own = launch_of(catalog, events.iter().copied(), None);
                if let Some(server) = own.and_then(|own| self.server(&own, own.place().is_empty())) {
                    self.of.insert((source.input, Some(node.clone())), server);
                }
            }
        }
    }

    fn server(&mut self, own: &Own, alone: bool) -> Option<usize> {
        let new = self.count;
        let server = match &own.meeting {
            _ if alone => new,
            Some(meeting) => *self.meetings.entry(meeting.clone()).or_insert(new),
            None => return None,
        };
        self.count += usize::from(server == new);
        Some(server)
    }
}

/// The part of a stream that a line stands in.
fn part(event: &Event) -> Option<&Arc<str>> {
    event.speaker.node.as_ref().or(event.speaker.container.as_ref())
}
