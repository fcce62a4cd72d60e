//! The gates: short texts of which every tier-1 line holds one, and the search for them over whole blocks.
//!
//! Owns the list and the searcher. A gate says only that a line is worth reading; what it means is the reader's.

use std::sync::{Arc, OnceLock};

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, Input};

/// Texts of tier-1 lines as they stand in any transport: no quote, backslash, control or `<>&/` byte that an encoder
/// would change. At most 64, beyond which the packed search is not available; each is rare while a server serves.
const GATES: &[&str] = &[
    // Exceptions and levels.
    "Traceback (most",
    "Error",
    "ERROR",
    "Exception",
    "CRITICAL",
    "FATAL",
    "Fatal",
    "atal error",
    "error:",
    "ailed",
    "ailure",
    "annot ",
    "KeyboardInterrupt",
    "SystemExit",
    // Libraries.
    "NCCL WARN",
    "ut of memory",
    "Watchdog",
    "timed out",
    "Connection closed",
    "Check failed",
    "o space left",
    "not found",
    // Ends of processes.
    "Killed",
    "killed",
    "Killing",
    "SIGKILL",
    "SIGTERM",
    "SIGSEGV",
    "SIGABRT",
    "SIGBUS",
    "SIGILL",
    "SIGINT",
    "SIGQUIT",
    "sigquit",
    "egmentation",
    "egfault",
    "core dumped",
    "exited",
    "xit code",
    "xit Code",
    "xitcode",
    "xitCode",
    "erminat",
    " died",
    "is dead",
    "stopped (rc=",
    "hutting down",
    "CANCELLED",
    // The kernel, its drivers and the cluster.
    "OOMKill",
    "oom-kill",
    "NVRM: ",
    "Back-off",
    "Preempted",
    "low on resource",
    "Warning  ",
    // Where a launch begins, and where it is ready.
    "startup complete",
    "fired up",
    "non-default args",
    "server_args=",
    "  version ",
    "erver version",
    "Init START",
    "headless",
    "elastic_operator",
];

/// The texts that are searched for, and how this machine searches.
#[derive(Debug)]
pub struct Gates {
    search: Search,
    longest: usize,
}

#[derive(Debug)]
enum Search {
    /// With vector instructions.
    Packed(Searcher),
    /// Without, or with too many texts.
    Plain(AhoCorasick),
    /// Every line counts.
    Nothing,
}

impl Gates {
    /// The gates of the built-in rules.
    pub fn standard() -> Arc<Self> {
        static STANDARD: OnceLock<Arc<Gates>> = OnceLock::new();
        Arc::clone(STANDARD.get_or_init(|| Arc::new(Self::over(GATES))))
    }

    /// These and the literals of rules that a user adds. Where a literal has no part that survives every encoder,
    /// every line counts.
    pub fn with<'a>(literals: impl Iterator<Item = &'a str>) -> Arc<Self> {
        let mut texts = GATES.to_vec();
        let before = texts.len();
        for literal in literals {
            match plain_part(literal) {
                Some(part) => texts.push(part),
                None => {
                    return Arc::new(Self {
                        search: Search::Nothing,
                        longest: 1,
                    });
                }
            }
        }
        match texts.len() == before {
            true => Self::standard(),
            false => Arc::new(Self::over(&texts)),
        }
    }

    fn over(texts: &[&str]) -> Self {
        let packed = || {
            Config::new()
                .match_kind(MatchKind::LeftmostFirst)
                .builder()
                .extend(texts)
                .build()
        };
        let search = match packed() {
            Some(searcher) => Search::Packed(searcher),
            None => AhoCorasick::builder()
                .match_kind(aho_corasick::MatchKind::LeftmostFirst)
                .build(texts)
                .map_or(Search::Nothing, Search::Plain),
        };
        Self {
            search,
            longest: texts.iter().map(|text| text.len()).max().unwrap_or(0),
        }
    }

    /// Bytes of the longest gate.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The place of the first gate in `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        match &self.search {
            Search::Packed(searcher) => searcher.find(text).map(|found| found.start()),
            Search::Plain(automaton) => automaton.find(Input::new(text)).map(|found| found.start()),
            Search::Nothing => Some(0).filter(|_| !text.is_empty()),
        }
    }
}

/// Bytes that every encoder leaves as they are.
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~') && !matches!(c, '"' | '\'' | '\\' | '<' | '>' | '&' | '/')
}

/// The longest part of a literal that every encoder leaves as it is.
fn plain_part(literal: &str) -> Option<&str> {
    literal
        .split(|c| !is_plain(c))
        .max_by_key(|part| part.len())
        .filter(|part| part.trim().len() >= 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::catalog::schema::Role;

    fn find(text: &[u8]) -> Option<usize> {
        Gates::standard().find(text)
    }

    #[test]
    fn gates_survive_every_encoder_and_fit_the_packed_search() {
        assert!(GATES.len() <= 64, "{}", GATES.len());
        for gate in GATES {
            assert!(gate.len() >= 5, "{gate}");
            assert!(gate.chars().all(is_plain), "{gate}");
        }
    }

    #[test]
    fn the_search_finds_each_gate_where_it_stands() {
        for gate in GATES {
            let text = format!("{}{gate} and more", "-".repeat(100));
            assert_eq!(find(text.as_bytes()), Some(100), "{gate}");
        }
        assert_eq!(find(b"(APIServer pid=1) INFO: 10.0.0.1:5 - GET /health 200 OK"), None);
    }

    #[test]
    fn added_literals_are_gates_by_their_longest_plain_part() {
        let gates = Gates::with(["lease </vault> has expired", "Traceback (most"].into_iter());
        assert_eq!(gates.find(b"INFO: lease \\u003c/vault\\u003e has expired"), Some(30));
        assert_eq!(gates.find(b"an Error"), Some(3));
        assert_eq!(gates.find(b"nothing"), None);
        assert_eq!(Gates::with(["\u{6a21}\u{578b}"].into_iter()).find(b"anything"), Some(0));
        assert!(Arc::ptr_eq(&Gates::with(std::iter::empty()), &Gates::standard()));
    }

    /// Ends and the beginnings of launches have no level and no exception type that would let them in.
    #[test]
    fn no_launch_boundary_and_no_end_of_a_process_lacks_a_gate() {
        const OPEN: &[&str] = &[
            // Offline programs and test programs: their logs are short.
            "nccl-tests.start",
            "vllm.args-namespace",
        ];
        let catalog = Catalog::load().unwrap();
        let tier = |role| matches!(role, Role::Launch | Role::Exit);
        let lacking: Vec<_> = catalog
            .signatures()
            .iter()
            .filter(|s| tier(s.def.role) && !OPEN.contains(&s.def.id.as_str()))
            .flat_map(|s| s.def.matches.iter().map(move |sample| (&s.def.id, sample)))
            .filter(|(_, sample)| find(sample.as_bytes()).is_none())
            .collect();
        assert!(lacking.is_empty(), "{lacking:#?}");
    }

    /// What states a failure without a level or an exception type of its own: the kernel, supervisors and the cluster.
    #[test]
    fn failures_told_from_outside_have_gates() {
        let catalog = Catalog::load().unwrap();
        let outside = ["kernel", "systemd", "slurm", "k8s"];
        let told = catalog
            .signatures()
            .iter()
            .filter(|s| s.def.role == Role::Root && outside.contains(&s.def.program.as_str()));
        let samples: Vec<_> = told
            .flat_map(|s| s.def.matches.iter().map(move |sample| (&s.def.id, sample)))
            .collect();
        let lacking: Vec<_> = samples
            .iter()
            .filter(|(_, sample)| find(sample.as_bytes()).is_none())
            .collect();
        assert!(samples.len() > 20, "{}", samples.len());
        assert!(lacking.is_empty(), "{lacking:#?}");
    }
}
