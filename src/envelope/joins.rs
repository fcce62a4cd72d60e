//! Lines that a transport cut into parts: CRI's `P` lines and Docker's 16 KiB objects.
//!
//! Owns the parts that wait for the rest of their line, one a container and stream, within fixed limits.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::record::Tag;
use crate::time::Stamp;

use super::Place;

/// Bytes kept of one joined line.
const LONGEST: usize = 1 << 20;
/// Lines that can wait at a time.
const MOST: usize = 64;

/// The beginning of a line.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub place: Place,
    pub text: String,
    pub tag: Arc<Tag>,
    pub stamp: Option<Stamp>,
}

/// The beginnings that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Joins {
    parts: VecDeque<Part>,
}

impl Joins {
    /// Whether any line waits.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds a part. Gives back the beginning that waited longest, when there are too many.
    pub fn add(&mut self, place: Place, text: &str, tag: Arc<Tag>, stamp: Option<Stamp>) -> Option<Part> {
        if let Some(part) = self.parts.iter_mut().find(|part| same(&part.tag, &tag)) {
            append(&mut part.text, text);
            return None;
        }
        let mut part = Part {
            place,
            text: String::new(),
            tag,
            stamp,
        };
        append(&mut part.text, text);
        self.parts.push_back(part);
        if self.parts.len() > MOST {
            self.parts.pop_front()
        } else {
            None
        }
    }

    /// The beginning of the line that `text` of the same stream ends.
    pub fn end(&mut self, text: &str, tag: &Tag) -> Option<Part> {
        let at = self.parts.iter().position(|part| same(&part.tag, tag))?;
        let mut part = self.parts.remove(at)?;
        append(&mut part.text, text);
        Some(part)
    }

    /// All beginnings whose end never came.
    pub fn drain(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts).into()
    }
}

/// Whether two parts come through the same pipe.
fn same(a: &Tag, b: &Tag) -> bool {
    (a.stream, &a.node, &a.container, &a.unit) == (b.stream, &b.node, &b.container, &b.unit)
}

fn append(text: &mut String, more: &str) {
    let room = LONGEST.saturating_sub(text.len());
    text.push_str(super::cut(more, room));
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Place = Place { line: 1, byte: 0 };

    fn tag(node: &str) -> Arc<Tag> {
        Arc::new(Tag {
            node: Some(node.into()),
            ..Tag::default()
        })
    }

    #[test]
    fn parts_are_joined_by_stream() {
        let mut joins = Joins::default();
        assert!(joins.add(AT, "a", tag("x"), None).is_none());
        assert!(joins.add(AT, "1", tag("y"), None).is_none());
        assert!(joins.add(AT, "b", tag("x"), None).is_none());
        assert_eq!(joins.end("c", &tag("x")).map(|p| p.text).as_deref(), Some("abc"));
        assert!(joins.end("c", &tag("x")).is_none());
        assert_eq!(joins.drain().len(), 1);
        assert!(joins.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut joins = Joins::default();
        let long = "é".repeat(LONGEST);
        for i in 0..MOST {
            assert!(joins.add(AT, "a", tag(&i.to_string()), None).is_none());
        }
        assert!(joins.add(AT, &long, tag("new"), None).is_some());
        assert!(
            joins
                .end("x", &tag("new"))
                .is_some_and(|part| part.text.len() <= LONGEST)
        );
    }
}
