//! The gates: short texts of which every tier-1 line holds one, and the search for them over whole blocks.
//!
//! Owns the list and the searcher. A gate says only that a line is worth reading; what it means is the reader's.

use std::sync::{Arc, OnceLock};

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, Input};

/// Texts of tier-1 lines as they stand in any transport: no quote, backslash, control or `<>&/` byte that an encoder
/// would change. Few, because the packed search gets slower with each (it takes 64 at most); each is rare while a
/// server serves.
const GATES: &[&str] = &[
    // Exceptions and levels.
    "Traceback (most",
    "Error",
    "ERROR",
    " error",
    "error:",
    "ailed",
    "ailure",
    "annot ",
    // Libraries.
    "NCCL WARN",
    "ut of memory",
    "OUT_OF_MEMORY",
    "atchdog",
    "imed out",
    "o space left",
    "oo many open",
    "not found",
    "No available",
    " not registered",
    // Ends of processes.
    "illed",
    "Killing",
    "ignal",
    "*** SIG",
    " fault",
    "core dumped",
    "exited",
    "xit code",
    "erminat",
    " died",
    " dead",
    "stopped (rc=",
    "hutting down",
    // The kernel's driver.
    "NVRM: ",
    // Where a launch begins, and where it is ready.
    "startup complete",
    "fired up",
    "non-default args",
    "server_args=",
    " version ",
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
    pub fn find(&self, text: &[u8]) -> Option<usize> {
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
    use crate::catalog::matcher::Signature;
    use crate::catalog::schema::{Role, Site};

    fn find(text: &[u8]) -> Option<usize> {
        Gates::standard().find(text)
    }

    #[test]
    fn gates_survive_every_encoder_and_are_few() {
        assert!(GATES.len() <= 40, "{}", GATES.len());
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

    /// Tier-1 rules whose own line may hold no gate, with a line that its program prints within reach of it.
    const BESIDE: &[(&str, &str)] = &[
        (
            "cxx.no-thread",
            "terminate called after throwing an instance of 'std::system_error'",
        ),
        ("docker.exit-code", "\"Status\": \"exited\","),
        ("earlyoom.kill", "process 5531 exited after 0.3 seconds"),
        (
            "hub.",
            "OSError: You are trying to access a gated repo. Make sure to have access to it",
        ),
        (
            "kernel.oom-",
            "Memory cgroup out of memory: Killed process 8812 (python3) total-vm:1kB",
        ),
        (
            "hydra.rank-ended",
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 9\nKilled (signal 9)",
        ),
        (
            "mpi.first-to-fail",
            "mpirun detected that one or more processes exited with non-zero status, thus causing",
        ),
        (
            "mpi.aborted",
            "mpirun has exited due to process rank 3 with PID 7103 on",
        ),
        ("ray.too-many-files", "OSError: [Errno 24] Too many open files"),
        ("rocm.hardware-exception", "Fatal Python error: Aborted"),
        ("sglang.logging-config", "Traceback (most recent call last):"),
        ("sglang.worker-ports-timeout", "Traceback (most recent call last):"),
        ("triton.", "Traceback (most recent call last):"),
        ("libc.heap-damage", "Fatal Python error: Aborted"),
        ("nvcc.", "RuntimeError: Ninja build failed. Ninja output:"),
        (
            "nvswitch.",
            "NVRM: Xid (PCI:0000:c5:00): 74, pid=4127, NVLink: fatal error detected",
        ),
        (
            "ray.monitor-kill-gcs-actor",
            "Worker aa11 on node 5f3a9c0d exits, type=NODE_OUT_OF_MEMORY, has creation_task_exception = 0",
        ),
        (
            "ray.runtime-env-no-pip",
            "ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment.",
        ),
        (
            "ray.ip-expects",
            "Exception: The current node timed out during startup.",
        ),
        (
            "ray.worker-register-failed",
            "Failed to register worker 0100ffff to Raylet.",
        ),
        (
            "torchrun.summary-",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        ),
        ("triton.", "Traceback (most recent call last):"),
        ("tvm-ffi.segfault", "Segmentation fault (core dumped)"),
        (
            "vllm.pydantic-",
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
        ),
    ];

    /// Those whose log is short, or of which nothing but a short log is left: a program that never began, an offline
    /// program, a test program, a launcher's own word, what a cluster prints of its objects.
    const SHORT: &[&str] = &[
        "compose.status",
        "docker.status",
        "k8s.evicted",
        "k8s.exit-code",
        "launcher.ready",
        "mpi.exec-failed",
        "mpi.no-slots",
        "nccl-tests.",
        "python.no-module-to-run",
        "python.no-script",
        "shell.no-such-file",
        "shell.not-executable",
        "vllm.args-namespace",
        "vllm.offline-progress",
    ];

    /// A sample as its program prints it.
    fn printed(signature: &Signature, sample: &str) -> String {
        let def = &signature.def;
        match (def.role, def.program.as_str()) {
            _ if def.exception.is_some() || def.at == Site::Exception => {
                format!("Traceback (most recent call last):\n{sample}")
            }
            (Role::Root, "nccl") => format!("node-a:1:2 [0] init.cc:1 NCCL WARN {sample}"),
            _ => sample.to_owned(),
        }
    }

    #[test]
    fn no_tier_1_rule_lacks_a_gate() {
        let catalog = Catalog::built_in();
        let known = |id: &str| {
            SHORT
                .iter()
                .chain(BESIDE.iter().map(|(id, _)| id))
                .any(|own| id.starts_with(own))
        };
        let tier = |role| matches!(role, Role::Launch | Role::Ready | Role::Exit | Role::Root);
        let signatures = || catalog.signatures().filter(|s| tier(s.def.role));
        let lacking: Vec<_> = signatures()
            .filter(|s| !known(&s.def.id))
            .flat_map(|s| s.def.matches.iter().map(move |sample| (&s.def.id, printed(s, sample))))
            .filter(|(_, sample)| find(sample.as_bytes()).is_none())
            .collect();
        assert!(signatures().count() > 500);
        assert!(lacking.is_empty(), "{lacking:#?}");
    }

    #[test]
    fn what_stands_beside_a_rule_without_a_gate_has_one_and_nothing_is_excused_in_vain() {
        let catalog = Catalog::built_in();
        for (id, line) in BESIDE {
            assert!(find(line.as_bytes()).is_some(), "{id}: {line}");
        }
        let lacks = |s: &&Signature| {
            s.def
                .matches
                .iter()
                .any(|text| find(printed(s, text).as_bytes()).is_none())
        };
        let lacking: Vec<&str> = catalog.signatures().filter(lacks).map(|s| s.def.id.as_str()).collect();
        let excused = SHORT.iter().chain(BESIDE.iter().map(|(id, _)| id));
        let vain: Vec<_> = excused
            .filter(|own| !lacking.iter().any(|id| id.starts_with(**own)))
            .collect();
        assert!(vain.is_empty(), "{vain:?}");
    }
}
