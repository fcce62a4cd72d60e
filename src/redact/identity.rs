//! Finds who and where: hosts, addresses, users, home folders, e-mail addresses, buckets, models.
//!
//! Owns what counts as a name. Some are known by their shape; the others are learned where a field or a phrase says
//! what they are, and then found in every text. Loopback and wildcard addresses and accounts that every image has
//! name nobody and stay.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::walk::Field;
use super::{Kind, Level, Span, secrets};

/// Names learned at most: a report is bounded, and so is this.
const MOST_KNOWN: usize = 4096;

/// Accounts, hosts and words that name nobody.
const COMMON: [&str; 42] = [
    "root",
    "ubuntu",
    "admin",
    "ray",
    "vllm",
    "sglang",
    "user",
    "nobody",
    "app",
    "jovyan",
    "node",
    "docker",
    "runner",
    "test",
    "dev",
    "ec2-user",
    "azureuser",
    "debian",
    "localhost",
    "head",
    "worker",
    "master",
    "server",
    "client",
    "host",
    "gpu",
    "none",
    "null",
    "unknown",
    "this",
    "the",
    "not",
    "and",
    "for",
    "name",
    "kernel",
    "systemd",
    "slurm",
    "default",
    "shared",
    "public",
    "rank",
];

/// Hosts that are everybody's.
const PUBLIC: [&str; 20] = [
    "huggingface.co",
    "hf.co",
    "hf-mirror.com",
    "github.com",
    "githubusercontent.com",
    "gitlab.com",
    "pypi.org",
    "pythonhosted.org",
    "pytorch.org",
    "nvidia.com",
    "docker.io",
    "docker.com",
    "ghcr.io",
    "quay.io",
    "gcr.io",
    "modelscope.cn",
    "vllm.ai",
    "ray.io",
    "python.org",
    "amazonaws.com",
];

/// Names by their shape.
static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?P<email>[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})",
        r"|(?P<mac>\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b)",
        r"|(?P<ip>\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b)",
        r"|\b(?:s3a?|s3n|gs|gcs|oss|cos|obs|tos|r2|az|abfss?|wasbs?|hdfs)://(?P<bucket>[^\s/?#\x22'<>()]+)",
        r"|\b(?P<bucket_host>[a-z0-9][a-z0-9.-]+)\.(?:s3[a-z0-9.-]*\.amazonaws\.com|blob\.core\.windows\.net|storage\.googleapis\.com|oss-[a-z0-9-]+\.aliyuncs\.com)",
        r"|\b(?:s3[a-z0-9.-]*\.amazonaws\.com|storage\.googleapis\.com)/(?P<bucket_path>[A-Za-z0-9._-]+)",
        r"|\b(?P<node>ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}\b(?:\.[a-z0-9-]+)*)",
        r"|\b(?P<fqdn>[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*\.(?:internal|local|lan|corp|intra|intranet|localdomain|cluster|svc|home|private)\b(?:\.[a-z0-9-]+)*)",
    ))
    .ok()
});

/// What may be an IPv6 address. Apart from the others, since it must not swallow the start of an IPv4 address.
static COLONS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}").ok());

/// Home folders and the folders below them.
static HOME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?:/home/|/Users/|/export/home/|[A-Za-z]:\\Users\\|/data/users/)(?P<user>[^\s/\\:"'<>|,;()\[\]{}]+)(?P<below>(?:[/\\][^\s/\\:"'<>|,;()\[\]{}]+)*)"#).ok()
});

/// Phrases that say what a name is.
static PHRASE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        // NCCL: `host:pid:tid [dev] NCCL …`; syslog: `stamp host program[pid]:`; a shell's prompt.
        r"(?P<node>\b[A-Za-z0-9][A-Za-z0-9.-]*):\d+:\d+ \[\d+\] NCCL",
        r"|^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\dT\S+) (?P<syslog>[A-Za-z0-9][A-Za-z0-9.-]*) [A-Za-z0-9_./-]+(?:\[\d+\])?: ",
        r"|(?P<at>\b[a-z_][a-z0-9_-]{1,31})@(?P<prompt>[A-Za-z][A-Za-z0-9-]*)[:\s]",
        // `host=x`, `MASTER_ADDR: x`, `--dist-init-addr x:1`, `tcp://x:1`, c10d's `[x]:1` and `(x, 1)`.
        r#"|(?i:(?:\b|--)(?:[a-z_-]*host[_-]?name|host|[a-z_-]*master[_-]addr(?:ess)?|dist[_-]init[_-]addr|[a-z_-]*node[_-]?name|head[_-]node)["']?(?:\s*=\s*["']?(?P<host>[a-z0-9][a-z0-9.-]*[a-z0-9])|\s*:\s*["']?(?P<label>[a-z0-9][a-z0-9.-]*[a-z0-9])))"#,
        r"|--(?:host|master[_-]addr|dist[_-]init[_-]addr|head[_-]node|node[_-]name)[ ,]\s*(?P<flag>[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9])",
        r"|\b(?:tcp|https?|grpc|ssh|redis|zmq|nats)://(?:[^\s/@]*@)?(?P<url>[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9])(?:[:/]|$)",
        r"|\[(?P<socket>[A-Za-z][A-Za-z0-9.-]*)\]:\d{2,5}\b",
        r"|\((?P<pair>[A-Za-z][A-Za-z0-9.-]*), ?\d{2,5}\)",
        r#"|\b(?:USER|LOGNAME|USERNAME|SUDO_USER|username|user(?:[_-]name)?)(?:["']?\s*=\s*["']?|["']\s*:\s*["'])(?P<user>[A-Za-z_][A-Za-z0-9._-]*)"#,
        r#"|\b[Bb]ucket(?:[_-]?[Nn]ame)?["']?\s*[=: ]\s*["']?(?P<bucket>[a-z0-9][a-z0-9.-]{4,62})"#,
    ))
    .ok()
});

/// `--model x`, `vllm serve x`, `model='x'`, and the folder of the hub's cache.
static MODEL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?:--(?:model|model-path|served-model-name|tokenizer|tokenizer-path)["']?[=,\s]\s*["']?|vllm serve |\b(?:model|model_path|model_tag|served_model_name|tokenizer|tokenizer_path|model_name)["']?\s*[=:]\s*\[?["'])(?P<name>[A-Za-z0-9/][^\s"',\])]*)"#,
        r"|models--(?P<cached>[A-Za-z0-9._-]+)",
        r"|huggingface\.co/(?:api/models/)?(?P<hub>[A-Za-z0-9._-]+/[A-Za-z0-9._-]+)",
    ))
    .ok()
});

/// Names learned from a report.
#[derive(Default)]
pub struct Known {
    names: BTreeMap<String, Kind>,
}

impl Known {
    /// Learns what a text, which has secrets there, says of names.
    pub fn learn(&mut self, level: Level, field: &Field<'_>, text: &str, secrets: &[Span]) {
        for secret in secrets::worth_knowing(text, secrets) {
            self.add(Kind::Secret, secret);
        }
        if level >= Level::Identity {
            self.people_and_places(field, text);
        }
        if level >= Level::All {
            self.models(field, text);
        }
    }

    fn people_and_places(&mut self, field: &Field<'_>, text: &str) {
        if let Field::Node = field {
            self.host(text);
        }
        for found in PHRASE.iter().flat_map(|phrase| phrase.captures_iter(text)) {
            for group in [
                "node", "syslog", "prompt", "host", "flag", "url", "label", "socket", "pair",
            ] {
                if let Some(name) = found.name(group).map(|m| m.as_str())
                    // Behind these a word of prose can stand.
                    && (!matches!(group, "label" | "socket" | "pair") || distinct(name))
                {
                    self.host(name);
                }
            }
            for group in ["user", "at"] {
                if let Some(name) = found.name(group).filter(|m| m.len() > 2) {
                    self.add_uncommon(Kind::User, name.as_str());
                }
            }
            if let Some(name) = found.name("bucket").filter(|m| distinct(m.as_str())) {
                self.add_uncommon(Kind::Bucket, name.as_str());
            }
        }
        for found in HOME.iter().flat_map(|home| home.captures_iter(text)) {
            if let Some(name) = found.name("user").filter(|m| m.len() > 2) {
                self.add_uncommon(Kind::User, name.as_str());
            }
        }
    }

    /// A host; what follows its first dot goes with it.
    fn host(&mut self, name: &str) {
        let number = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let public = PUBLIC
            .iter()
            .any(|p| name == *p || name.strip_suffix(p).is_some_and(|rest| rest.ends_with('.')));
        let file = [
            ".py", ".cc", ".cpp", ".cu", ".h", ".log", ".json", ".so", ".out", ".err",
        ]
        .iter()
        .any(|ending| name.ends_with(ending));
        if name.len() < 2 || number(name) || public || file || name.contains(':') {
            return;
        }
        self.add_uncommon(Kind::Node, name);
        if let Some((short, _)) = name.split_once('.')
            && short.len() > 2
            && !number(short)
        {
            self.add_uncommon(Kind::Node, short);
        }
    }

    fn models(&mut self, field: &Field<'_>, text: &str) {
        let mut model = |name: &str| {
            let name = name.trim_end_matches('/');
            let parts = name.rsplit('/').next().into_iter().chain([name]);
            for part in parts.filter(|part| part.len() > 3) {
                self.add_uncommon(Kind::Model, part);
            }
            if let [owner, model] = name.split('/').collect::<Vec<_>>()[..] {
                self.add_uncommon(Kind::Model, &format!("{owner}--{model}"));
            }
        };
        match field {
            Field::Model => model(text),
            // Not `model_impl: auto` and its like.
            Field::Value(name)
                if (name.contains("model") || name.contains("tokenizer"))
                    && (text.contains('/') || text.bytes().any(|b| b.is_ascii_digit()))
                    && text.bytes().any(|b| b.is_ascii_alphabetic()) =>
            {
                model(text);
            }
            _ => {}
        }
        for found in MODEL.iter().flat_map(|phrase| phrase.captures_iter(text)) {
            for group in found.iter().skip(1).flatten() {
                model(group.as_str());
            }
        }
    }

    fn add_uncommon(&mut self, kind: Kind, name: &str) {
        let name = name.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
        if !COMMON.iter().any(|common| name.eq_ignore_ascii_case(common)) {
            self.add(kind, name);
        }
    }

    fn add(&mut self, kind: Kind, name: &str) {
        if !name.is_empty() && self.names.len() < MOST_KNOWN {
            // The first word on a name stands, but a secret is a secret.
            let slot = self.names.entry(name.to_owned()).or_insert(kind);
            *slot = (*slot).min(kind);
        }
    }

    /// Ready to be looked for.
    pub fn compile(self) -> Compiled {
        let (names, kinds): (Vec<String>, Vec<Kind>) = self.names.into_iter().unzip();
        // Most reports name nobody, and even an automaton of nothing takes its time to build.
        let search = (!names.is_empty()).then(|| AhoCorasick::new(&names).ok());
        Compiled {
            search: search.flatten(),
            kinds,
        }
    }
}

/// Learned names, ready to be looked for.
pub struct Compiled {
    search: Option<AhoCorasick>,
    kinds: Vec<Kind>,
}

impl Compiled {
    /// Finds whole words that are learned names.
    pub fn find(&self, text: &str, spans: &mut Vec<Span>) {
        let word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        let bytes = text.as_bytes();
        for found in self.search.iter().flat_map(|search| search.find_overlapping_iter(text)) {
            let Some(kind) = self.kinds.get(found.pattern().as_usize()) else {
                continue;
            };
            let whole =
                !word(found.start().checked_sub(1).and_then(|at| bytes.get(at))) && !word(bytes.get(found.end()));
            if whole || *kind == Kind::Secret {
                spans.push(Span {
                    start: found.start(),
                    end: found.end(),
                    kind: *kind,
                });
            }
        }
    }
}

/// Whether a name is none of the words of a sentence.
fn distinct(name: &str) -> bool {
    name.bytes().any(|b| matches!(b, b'-' | b'.' | b'0'..=b'9'))
}

/// Finds names by their shape.
pub fn find(text: &str, spans: &mut Vec<Span>) {
    for found in SHAPE.iter().flat_map(|shape| shape.captures_iter(text)) {
        let kinds = [
            ("email", Kind::Email),
            ("mac", Kind::Mac),
            ("ip", Kind::Ip),
            ("bucket", Kind::Bucket),
            ("bucket_host", Kind::Bucket),
            ("bucket_path", Kind::Bucket),
            ("node", Kind::Node),
            ("fqdn", Kind::Node),
        ];
        for (group, kind) in kinds {
            let Some(part) = found.name(group) else { continue };
            let counts = match group {
                "ip" => is_ip(text, part.start(), part.end()),
                // `localhost.localdomain` is every host.
                "fqdn" => !part.as_str().starts_with("localhost"),
                _ => true,
            };
            if counts {
                spans.push(Span {
                    start: part.start(),
                    end: part.end(),
                    kind,
                });
            }
        }
    }
    for found in COLONS.iter().flat_map(|colons| colons.find_iter(text)) {
        if is_ip6(text, found.start(), found.end()) {
            spans.push(Span {
                start: found.start(),
                end: found.end(),
                kind: Kind::Ip,
            });
        }
    }
    homes(text, spans);
}

/// The user of a home folder, and the folders between it and a file or an installed package.
fn homes(text: &str, spans: &mut Vec<Span>) {
    for found in HOME.iter().flat_map(|home| home.captures_iter(text)) {
        let (Some(user), Some(below)) = (found.name("user"), found.name("below")) else {
            continue;
        };
        let common = COMMON.iter().any(|common| user.as_str() == *common);
        if !common {
            spans.push(Span {
                start: user.start(),
                end: user.end(),
                kind: Kind::User,
            });
        }
        let told = below.as_str();
        let packages = ["site-packages", "dist-packages"]
            .iter()
            .find_map(|folder| told.find(folder))
            .and_then(|at| at.checked_sub(1));
        let tail = packages.or_else(|| told.rfind(['/', '\\'])).unwrap_or(0);
        if tail > 1 && !common {
            spans.push(Span {
                start: below.start() + 1,
                end: below.start() + tail,
                kind: Kind::Path,
            });
        }
    }
}

/// An IPv4 address that is somebody's. Versions have four numbers too: those stand behind `==` or a word that says
/// so, and behind a dash unless the network is a private one.
fn is_ip(text: &str, start: usize, end: usize) -> bool {
    let (before, rest) = (
        text.get(..start).unwrap_or_default(),
        text.get(end..).unwrap_or_default(),
    );
    let octets: Vec<u32> = text
        .get(start..end)
        .unwrap_or_default()
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect();
    let [first, second, _, last] = octets[..] else {
        return false;
    };
    let private = first == 10 || (first == 172 && (16..32).contains(&second)) || (first == 192 && second == 168);
    let lead = before.trim_end_matches([' ', '"', '\'', '(', ':', '=']);
    let tail = lead
        .get(lead.len().saturating_sub(12)..)
        .unwrap_or(lead)
        .to_ascii_lowercase();
    let versioned = ["version", "cudnn", "cublas", "nccl", "driver", "release"]
        .iter()
        .any(|word| tail.ends_with(word));
    let nobody = first == 0 || first == 127 || (first == 255 && last == 255) || octets.iter().any(|o| *o > 255);
    !nobody
        && !versioned
        && !before.ends_with("==")
        && !before.ends_with('.')
        && (private || !before.ends_with(['-', '_']))
        && !rest.starts_with('+')
        && !(rest.starts_with('.') && rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit))
}

/// An IPv6 address that is somebody's. Times and C++ names have colons too.
fn is_ip6(text: &str, start: usize, end: usize) -> bool {
    let near = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':'));
    let bytes = text.as_bytes();
    if near(start.checked_sub(1).and_then(|at| bytes.get(at))) || near(bytes.get(end)) {
        return false;
    }
    let told = text.get(start..end).unwrap_or_default();
    let groups = told.split(':').filter(|group| !group.is_empty()).count();
    let Ok(address) = told.parse::<Ipv6Addr>() else {
        return false;
    };
    // An IPv4 address in IPv6 clothes: its numbers are found as such.
    let mapped = bytes.get(end) == Some(&b'.');
    !mapped && !address.is_loopback() && !address.is_unspecified() && groups >= 3
        || (groups >= 2 && (address.segments()[0] & 0xffc0 == 0xfe80 || address.segments()[0] & 0xfe00 == 0xfc00))
}
