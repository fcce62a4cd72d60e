//! What the layers of one line have said, and the tags made of it.
//!
//! Owns the gathering of fields while a line is peeled, and the sharing of equal tags. Knows no transport.

use std::sync::Arc;

use crate::record::{RayTag, Stream, Tag};
use crate::time::Stamp;

/// Tags kept for reuse: as many processes as commonly write in turns.
const KEPT_TAGS: usize = 32;

/// Ray's driver prefix, borrowed from the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RaySaid<'a> {
    pub name: &'a str,
    pub pid: Option<i64>,
    pub ip: Option<&'a str>,
}

/// The fields of a [`Tag`], borrowed from the line. An inner layer overrides an outer one.
#[derive(Debug, Clone, Default)]
pub(super) struct Said<'a> {
    pub node: Option<&'a str>,
    pub container: Option<&'a str>,
    pub unit: Option<&'a str>,
    pub pid: Option<i64>,
    pub rank: Option<u32>,
    pub local: Option<u32>,
    pub task: Option<u32>,
    pub stream: Option<Stream>,
    pub ray: Option<RaySaid<'a>>,
    pub level: Option<&'static str>,
    pub stamp: Option<Stamp>,
    /// The line goes on in the next one of the same stream.
    pub partial: bool,
}

impl<'a> Said<'a> {
    /// What an earlier line said. The level stays behind: no transport that cuts lines has one.
    pub fn of(tag: &'a Tag, stamp: Option<Stamp>) -> Self {
        Self {
            node: tag.node.as_deref(),
            container: tag.container.as_deref(),
            unit: tag.unit.as_deref(),
            pid: tag.pid,
            rank: tag.rank,
            local: tag.local,
            task: tag.task,
            stream: tag.stream,
            ray: tag.ray.as_ref().map(|ray| RaySaid {
                name: &ray.name,
                pid: ray.pid,
                ip: ray.ip.as_deref(),
            }),
            level: None,
            stamp,
            partial: false,
        }
    }
}

impl Said<'_> {
    /// Takes an inner layer's stamp, unless the one at hand knows its zone or year and the new one does not.
    pub fn at(&mut self, stamp: Stamp) {
        let known = |s: &Stamp| (s.offset.is_some(), s.year_known);
        if self.stamp.as_ref().is_none_or(|old| known(&stamp) >= known(old)) {
            self.stamp = Some(stamp);
        }
    }

    fn is(&self, tag: &Tag) -> bool {
        self.pid == tag.pid
            && self.rank == tag.rank
            && self.local == tag.local
            && self.task == tag.task
            && self.stream == tag.stream
            && self.level == tag.level.as_deref()
            && self.node == tag.node.as_deref()
            && self.container == tag.container.as_deref()
            && self.unit == tag.unit.as_deref()
            && match (&self.ray, &tag.ray) {
                (None, None) => true,
                (Some(a), Some(b)) => a.pid == b.pid && a.name == &*b.name && a.ip == b.ip.as_deref(),
                _ => false,
            }
    }

    fn tag(&self) -> Tag {
        Tag {
            node: self.node.map(Arc::from),
            container: self.container.map(Arc::from),
            unit: self.unit.map(Arc::from),
            pid: self.pid,
            rank: self.rank,
            local: self.local,
            task: self.task,
            stream: self.stream,
            ray: self.ray.map(|ray| RayTag {
                name: ray.name.into(),
                pid: ray.pid,
                ip: ray.ip.map(Arc::from),
            }),
            level: self.level.map(Arc::from),
        }
    }
}

/// The tags last used, most recent first.
#[derive(Debug, Clone, Default)]
pub(super) struct Tags {
    recent: Vec<Arc<Tag>>,
}

impl Tags {
    /// The tag that says what `said` says; the same allocation as long as it is among the recent ones.
    pub fn of(&mut self, said: &Said<'_>) -> Arc<Tag> {
        match self.recent.iter().position(|tag| said.is(tag)) {
            Some(0) => {}
            Some(at) => {
                let tag = self.recent.remove(at);
                self.recent.insert(0, tag);
            }
            None => {
                self.recent.truncate(KEPT_TAGS - 1);
                self.recent.insert(0, Arc::new(said.tag()));
            }
        }
        self.recent.first().map_or_else(|| Arc::new(said.tag()), Arc::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_tags_are_shared() {
        let mut tags = Tags::default();
        let a = Said {
            node: Some("a"),
            ..Said::default()
        };
        let b = Said {
            node: Some("b"),
            rank: Some(3),
            ..Said::default()
        };
        let first = tags.of(&a);
        assert_eq!(tags.of(&b).rank, Some(3));
        assert!(Arc::ptr_eq(&first, &tags.of(&a)));
    }

    #[test]
    fn a_zoned_stamp_is_kept_before_one_without() {
        let mut said = Said::default();
        let zoned = Stamp::zoned("2026-11-25T13:00:00".parse().unwrap(), 0);
        said.at(zoned.clone());
        said.at(Stamp::yearless(11, 25, 14, 0, 0, 0).unwrap());
        assert_eq!(said.stamp, Some(zoned));
    }
}
