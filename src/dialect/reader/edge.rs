//! Where the lines of a source end at the edge of a terminal from which they were copied.
//!
//! Owns the width that the lines so far show. Never joins lines: a source of which many are broken is undone before.

/// Characters of a terminal's line.
const COLUMNS: std::ops::RangeInclusive<usize> = 80..=500;

/// The longest lines so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Edge {
    /// Characters of the longest one.
    width: usize,
    /// Whether several are as long.
    several: bool,
    /// Whether the last one is.
    last: bool,
}

impl Edge {
    /// Notes the next line.
    pub fn note(&mut self, line: &str) {
        // Most lines are shorter, also in bytes, and need no counting.
        let length = if line.len() < self.width {
            0
        } else {
            line.chars().count()
        };
        self.last = length >= self.width;
        if self.last {
            self.several = length == self.width;
            self.width = length;
        }
    }

    /// Whether the last line reaches the edge: none is longer, and another one is as long.
    pub fn reached(&self) -> bool {
        self.last && self.several && COLUMNS.contains(&self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_is_where_several_lines_end_and_none_goes_beyond() {
        let reached = |widths: &[usize]| {
            let mut edge = Edge::default();
            widths.iter().for_each(|width| edge.note(&"x".repeat(*width)));
            edge.reached()
        };
        assert!(reached(&[30, 120, 12, 120]));
        assert!(!reached(&[30, 120, 12]), "a shorter one");
        assert!(!reached(&[30, 120]), "the only one");
        assert!(!reached(&[121, 120, 120]), "another is longer");
        assert!(!reached(&[60, 60]), "no terminal is so narrow");
    }
}
