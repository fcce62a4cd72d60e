//! The order of the inputs: by name, and of a rotated log the oldest part first.
//!
//! Owns the reading of rotation suffixes. Never looks into a file.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::InputSpec;

/// Endings under which a compressed log is stored.
const PACKED: [&str; 5] = [".gz", ".zst", ".xz", ".bz2", ".lz4"];

/// Endings that make `NAME.1` a rotated log even when `NAME` itself is not there.
const LOGS: [&str; 4] = [".log", ".out", ".err", ".txt"];

/// Age of a part of a rotated log; the order is that of time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// `x.log-20261125`, `x.log.2026-11-25`: by the date.
    Dated(String),
    /// `x.log.2`: the higher number is older.
    Numbered(Reverse<u64>),
    /// `x.log`.
    Current,
}

/// Sorts paths: folder by folder, names by their numbers, rotated logs in the order they were written.
pub fn sort(paths: &mut [PathBuf]) {
    sort_by_path(paths, PathBuf::clone);
}

/// Sorts inputs in the same way by their names, so that the order in which they are given tells nothing.
pub fn sort_inputs(inputs: &mut [InputSpec]) {
    sort_by_path(inputs, |input| PathBuf::from(&input.name));
}

fn sort_by_path<T>(items: &mut [T], path: impl Fn(&T) -> PathBuf) {
    let all: HashSet<PathBuf> = items.iter().map(&path).collect();
    items.sort_by_cached_key(|item| {
        let path = path(item);
        let (base, part) = split(&path, &all);
        (Natural(base), part, path)
    });
}

/// The log a path is a part of, and which part.
fn split(path: &Path, all: &HashSet<PathBuf>) -> (String, Part) {
    let full = path.to_string_lossy();
    let name = PACKED.iter().find_map(|p| full.strip_suffix(p)).unwrap_or(&full);
    let file_at = name.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let parts = name
        .match_indices(['.', '-', '_'])
        .filter(|(at, _)| *at > file_at)
        .filter_map(|(at, separator)| Some((name.get(..at)?, name.get(at + separator.len()..)?)))
        .find(|(base, suffix)| is_suffix(suffix) && is_base(base, all));
    match parts {
        None => (name.to_owned(), Part::Current),
        Some((base, suffix)) => match suffix.parse() {
            Ok(n) if suffix.len() < 6 => (base.to_owned(), Part::Numbered(Reverse(n))),
            _ => (base.to_owned(), Part::Dated(suffix.to_owned())),
        },
    }
}

/// Digits, perhaps with the separators of a date and time.
fn is_suffix(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let dated = digits >= 6 && text.bytes().all(|b| b.is_ascii_digit() || b"-_.:TZ".contains(&b));
    text.starts_with(|c: char| c.is_ascii_digit()) && (digits == text.len() || dated)
}

fn is_base(base: &str, all: &HashSet<PathBuf>) -> bool {
    LOGS.iter().any(|end| base.ends_with(end)) || all.contains(Path::new(base))
}

/// Text compared with its runs of digits as numbers: `rank-2` before `rank-10`.
#[derive(PartialEq, Eq)]
struct Natural(String);

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = (self.0.as_str(), other.0.as_str());
        loop {
            let ((x, rest_a), (y, rest_b)) = (piece(a), piece(b));
            let order = match (number(x), number(y)) {
                (Some(m), Some(n)) => m.len().cmp(&n.len()).then_with(|| m.cmp(n)),
                _ => x.cmp(y),
            };
            if order != Ordering::Equal || (rest_a.is_empty() && rest_b.is_empty()) {
                // `01` and `1` are equal as numbers, but not the same name.
                return order
                    .then_with(|| rest_a.len().cmp(&rest_b.len()))
                    .then_with(|| self.0.cmp(&other.0));
            }
            (a, b) = (rest_a, rest_b);
        }
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The first run of digits, or of anything else, and the rest.
fn piece(text: &str) -> (&str, &str) {
    let digit = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(text.len());
    text.split_at(end)
}

/// The digits of a piece without leading zeros, if it is one of digits.
fn number(piece: &str) -> Option<&str> {
    piece
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| piece.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&str]) -> Vec<String> {
        let mut paths: Vec<PathBuf> = names.iter().rev().map(PathBuf::from).collect();
        sort(&mut paths);
        paths.iter().map(|p| p.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn rotated_parts_come_oldest_first() {
        let want = ["d/x.log.10.gz", "d/x.log.2.gz", "d/x.log.1", "d/x.log", "d/y.log"];
        assert_eq!(sorted(&want), want);
        let want = ["0.log.20261124-010203.gz", "0.log.20261125-010203", "0.log", "1.log"];
        assert_eq!(sorted(&want), want);
        let want = ["serve.log-2026-11-24", "serve.log-2026-11-25", "serve.log"];
        assert_eq!(sorted(&want), want);
        let want = ["server.2", "server.1", "server"];
        assert_eq!(sorted(&want), want);
    }

    #[test]
    fn numbers_of_ranks_and_nodes_are_no_rotation() {
        let want = ["rank-0", "rank-1", "rank-2", "rank-10"];
        assert_eq!(sorted(&want), want);
        let want = ["a/node.0", "a/node.1", "b"];
        assert_eq!(sorted(&want), want);
        let want = ["rank-1/out.log", "rank-2/out.log", "rank-10/out.log"];
        assert_eq!(sorted(&want), want);
    }

    #[test]
    fn odd_names_have_a_total_order() {
        let names = [
            "",
            "-",
            ".1",
            "1",
            "01",
            "001",
            "1.",
            "x.log.",
            "x.log.1",
            "x.log.99999999999999999999999",
            "ä.1",
            "ä",
        ];
        let once = sorted(&names);
        let again: Vec<&str> = once.iter().map(String::as_str).collect();
        assert_eq!(sorted(&again), once);
        assert_eq!(once.len(), names.len());
    }
}
