//! Dotted versions and the ranges in which a flag exists.
//!
//! Owns parsing (`0.6.3.post1`, `0.11.0rc2`, `0.5.13.dev1+gabc`) and `a..b` ranges, both ends included. Never knows
//! what a version contains: the ranges stand in the data.

use std::cmp::Ordering;
use std::fmt;

/// A version, as far as it decides which flags exist.
///
/// A pre-release or development build counts as the release it leads to: nightlies are used for what the next
/// release brings, and a range that ends just before it must not leave them without either spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    release: Vec<u64>,
    post: u64,
}

impl Version {
    /// Reads a version as printed. `None` for text without a release number and for the `0.1.dev…` that builds
    /// from a source tree without tags call themselves, which says nothing of the code.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches(['v', 'V']);
        let text = text.split('+').next().unwrap_or_default();
        let mut release = Vec::new();
        let mut post = 0;
        let mut untagged = false;
        for part in text.split(['.', '-', '_']) {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, suffix) = part.split_at(digits);
            if let Some(after) = suffix.strip_prefix("post") {
                post = after.parse().unwrap_or(0);
            }
            untagged |= suffix.starts_with("dev");
            match number.parse() {
                Ok(number) if release.len() < 8 => release.push(number),
                _ => break,
            }
            if !suffix.is_empty() {
                break;
            }
        }
        while release.last() == Some(&0) && release.len() > 1 {
            release.pop();
        }
        let nothing_said = untagged && matches!(release.as_slice(), [0] | [0, 1]);
        (!release.is_empty() && !nothing_said).then_some(Self { release, post })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release: Vec<String> = self.release.iter().map(u64::to_string).collect();
        f.write_str(&release.join("."))?;
        match self.post {
            0 => Ok(()),
            post => write!(f, ".post{post}"),
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.release.len().max(other.release.len());
        let at = |version: &Self, i: usize| version.release.get(i).copied().unwrap_or(0);
        (0..length)
            .map(|i| at(self, i).cmp(&at(other, i)))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| self.post.cmp(&other.post))
    }
}

/// A range of versions, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first version.
    pub from: Option<Version>,
    /// The last version.
    pub to: Option<Version>,
}

impl Range {
    /// Reads `a..b`, `a..`, `..b` or nothing, which means all versions.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Some(Self { from: None, to: None });
        }
        let (from, to) = text.split_once("..")?;
        let end = |text: &str| match text.trim() {
            "" => Some(None),
            text => Version::parse(text).map(Some),
        };
        Some(Self {
            from: end(from)?,
            to: end(to)?,
        })
    }

    /// Whether the range has the version. An unknown one is taken for the newest: people who do not pin a version
    /// have a recent one.
    pub fn has(&self, version: Option<&Version>) -> bool {
        match version {
            None => self.to.is_none(),
            Some(version) => {
                self.from.as_ref().is_none_or(|from| from <= version) && self.to.as_ref().is_none_or(|to| version <= to)
            }
        }
    }
}

/// Whether a version as printed lies in a range as written; a range that cannot be read admits nothing.
pub fn admits(range: &str, version: Option<&str>) -> bool {
    let version = version.and_then(Version::parse);
    Range::parse(range).is_some_and(|range| range.has(version.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_released() {
        let ordered = [
            "0.4.3",
            "0.6.3",
            "0.6.3.post1",
            "0.6.4",
            "0.10.1",
            "0.10.1.1",
            "0.10.2",
            "0.11.0",
            "1",
        ];
        for pair in ordered.windows(2) {
            assert!(Version::parse(pair[0]) < Version::parse(pair[1]), "{pair:?}");
        }
        assert_eq!(Version::parse("v0.11"), Version::parse("0.11.0"));
    }

    #[test]
    fn pre_releases_count_as_their_release() {
        for text in [
            "0.11.0rc2",
            "0.11.0.dev1+g12ab",
            "0.11.0rc1.dev1201+gd08e.d20260717",
            "0.11.0+cu128",
            "0.11.0-rc.1",
        ] {
            assert_eq!(Version::parse(text), Version::parse("0.11.0"), "{text}");
        }
        assert_eq!(
            Version::parse("0.6.6.post2.dev332+g16366ee8"),
            Version::parse("0.6.6.post2")
        );
    }

    #[test]
    fn a_build_without_tags_has_no_version() {
        for text in ["0.1.dev16040+g93ea1fcd5", "dev", "", "nightly", "0.0.0.dev0"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
        assert!(Version::parse("0.1.0").is_some());
    }

    #[test]
    fn ranges_include_their_ends() {
        assert!(admits("0.9.0..0.12.0", Some("0.9.0")));
        assert!(admits("0.9.0..0.12.0", Some("0.12.0")));
        assert!(!admits("0.9.0..0.12.0", Some("0.12.1")));
        assert!(admits("..0.17.0", Some("0.4.3")));
        assert!(!admits("..0.17.0", Some("0.17.0.post1")));
        assert!(admits("0.20..", Some("0.33.0")));
        assert!(admits("", Some("0.1.0")) && admits("", None));
    }

    #[test]
    fn an_unknown_version_is_the_newest() {
        assert!(admits("0.20..", None));
        assert!(!admits("0.4.3..0.17.0", None));
        assert!(admits("0.20..", Some("0.1.dev3+gabc")));
    }

    #[test]
    fn a_broken_range_admits_nothing() {
        assert!(!admits("0.20", Some("0.20.0")));
        assert!(!admits("new..", Some("0.20.0")));
    }
}
