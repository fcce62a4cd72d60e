//! The gates: short texts of which every tier-1 line holds one, and the search for them over whole blocks.
//!
//! Owns the list and the searcher. A gate says only that a line is worth reading; what it means is the reader's.

use std::sync::OnceLock;

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

/// Bytes of the longest gate.
pub(super) fn longest() -> usize {
    GATES.iter().map(|gate| gate.len()).max().unwrap_or(0)
}

/// The place of the first gate in `text`.
pub(super) fn find(text: &[u8]) -> Option<usize> {
    match search() {
        Search::Packed(searcher) => searcher.find(text).map(|found| found.start()),
        Search::Plain(automaton) => automaton.find(Input::new(text)).map(|found| found.start()),
        Search::Nothing => Some(0).filter(|_| !text.is_empty()),
    }
}

/// How this machine searches.
enum Search {
    /// With vector instructions.
    Packed(Searcher),
    /// Without.
    Plain(AhoCorasick),
    /// No search could be built: every line counts.
    Nothing,
}

fn search() -> &'static Search {
    static SEARCH: OnceLock<Search> = OnceLock::new();
    SEARCH.get_or_init(|| {
        let packed = Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .builder()
            .extend(GATES)
            .build();
        match packed {
            Some(searcher) => Search::Packed(searcher),
            None => AhoCorasick::builder()
                .match_kind(aho_corasick::MatchKind::LeftmostFirst)
                .build(GATES)
                .map_or(Search::Nothing, Search::Plain),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::catalog::schema::Role;

    #[test]
    fn gates_survive_every_encoder_and_fit_the_packed_search() {
        assert!(GATES.len() <= 64, "{}", GATES.len());
        for gate in GATES {
            assert!(gate.len() >= 5, "{gate}");
            assert!(
                gate.bytes()
                    .all(|b| (b' '..0x7f).contains(&b) && !b"\"'\\<>&/".contains(&b)),
                "{gate}"
            );
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
