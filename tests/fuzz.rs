//! The fuzz targets of `fuzz/` on a stable toolchain: mutated logs of the corpus and mutated rule files.
//!
//! `CORONER_FUZZ_CASES` sets how many inputs each target gets. Where `CORONER_FUZZ_SEEDS` names a folder, the seeds and
//! the dictionary for libFuzzer are written there (`fuzz/README.md`).

#[path = "../fuzz/src/lib.rs"]
mod targets;

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use common::{Text, cases};
use coroner::catalog::Catalog;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

/// Largest input, bytes: as much as shows every limit of the targets.
const LARGEST: usize = 16 << 10;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 6] = [
    ("intake", targets::intake),
    ("envelope", targets::envelope),
    ("dialect", targets::dialect),
    ("traceback", targets::traceback),
    ("rules", targets::rules),
    ("whole", targets::whole),
];

/// What inputs of a target are made from.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let paths = cases().into_iter().filter_map(|case| case.log());
    let logs: Vec<Vec<u8>> = paths.map(|path| Text::read(path).bytes).collect();
    // The head of a log and its end, where it fails.
    let parts = logs.iter().flat_map(|log| {
        let end = log.len().saturating_sub(LARGEST);
        [log[..log.len().min(LARGEST)].to_vec(), log[end..].to_vec()]
    });
    match target {
        "rules" => rule_files(),
        "intake" => parts.enumerate().map(|(n, part)| packed(n, &part)).collect(),
        _ => parts.collect(),
    }
}

fn packed(n: usize, part: &[u8]) -> Vec<u8> {
    let gz = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    match n % 4 {
        0 => part.to_vec(),
        1 => gz(part),
        2 => gz(&zstd::stream::encode_all(part, 1).unwrap()),
        _ => String::from_utf8_lossy(part)
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect(),
    }
}

/// The entries of the rule files, some together.
fn rule_files() -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = fs::read_dir("src/catalog/data")
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    let mut entries = Vec::new();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "toml")) {
        let text = fs::read_to_string(file).unwrap();
        let starts: Vec<usize> = text.match_indices("\n[[").map(|(at, _)| at + 1).collect();
        for ends in starts.chunks(8).map(|c| (c[0], c[c.len() - 1])) {
            entries.push(text.as_bytes()[ends.0..ends.1].to_vec());
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries
}

/// The words that rules look for, and what grammars are made of.
fn dictionary() -> &'static [String] {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        const GRAMMAR: [&str; 14] = [
            "Traceback (most recent call last):\n",
            "  File \"a.py\", line 1, in f\n",
            "\n\nDuring handling of the above exception, another exception occurred:\n\n",
            "(EngineCore_DP0 pid=7) ",
            "[rank3]: ",
            "[2026-11-25 13:00:07 TP1] ",
            "2026-11-25T13:00:07.5Z stderr F ",
            "{\"log\":\"x\\n\",\"stream\":\"stdout\",\"time\":\"9999-12-31T23:59:60Z\"}",
            "node-a:1:2 [0] NCCL WARN ",
            "\u{1b}]0;x\u{7}",
            "\u{202e}\u{200b}",
            "1e309 GiB",
            "pid=-9223372036854775808",
            "\u{1}",
        ];
        let signatures = Catalog::shared().signatures();
        let mut words: Vec<String> = signatures.flat_map(|s| s.def.literal.clone()).collect();
        words.extend(GRAMMAR.map(str::to_owned));
        words.sort();
        words.dedup();
        words
    })
}

/// One step away from a log.
#[derive(Debug, Clone)]
enum Change {
    Put(Index, Vec<u8>),
    Word(Index, Index),
    Cut(Index, Index),
    Repeat(Index, Index, u8),
    Flip(Index, u8),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<Index>(), vec(any::<u8>(), 1..24)).prop_map(|(at, bytes)| Change::Put(at, bytes)),
        (any::<Index>(), any::<Index>()).prop_map(|(at, word)| Change::Word(at, word)),
        (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Change::Cut(a, b)),
        (any::<Index>(), any::<Index>(), 2_u8..20).prop_map(|(a, b, times)| Change::Repeat(a, b, times)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Flip(at, byte)),
    ]
}

fn changed(mut data: Vec<u8>, change: &Change) -> Vec<u8> {
    let span = |a: &Index, b: &Index, length: usize| {
        let (a, b) = (a.index(length + 1), b.index(length + 1));
        a.min(b)..a.max(b).min(a.min(b) + 2000)
    };
    match change {
        Change::Put(at, bytes) => {
            let at = at.index(data.len() + 1);
            data.splice(at..at, bytes.iter().copied());
        }
        Change::Word(at, word) => {
            let at = at.index(data.len() + 1);
            data.splice(at..at, word.get(dictionary()).bytes());
        }
        Change::Cut(a, b) => {
            data.drain(span(a, b, data.len()));
        }
        Change::Repeat(a, b, times) => {
            let part = data[span(a, b, data.len())].to_vec();
            let at = b.index(data.len() + 1);
            data.splice(at..at, part.repeat(usize::from(*times)));
        }
        Change::Flip(at, byte) if !data.is_empty() => {
            let at = at.index(data.len());
            data[at] ^= byte;
        }
        Change::Flip(..) => {}
    }
    data.truncate(2 * LARGEST);
    data
}

fn fuzzed(name: &str) {
    let cases = std::env::var("CORONER_FUZZ_CASES").ok().and_then(|n| n.parse().ok());
    let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).unwrap();
    let seeds = seeds(name);
    let config = Config {
        cases: cases.unwrap_or(48),
        failure_persistence: None,
        ..Config::default()
    };
    let input = (any::<Index>(), vec(change(), 0..12));
    let done = TestRunner::new(config).run(&input, |(seed, changes)| {
        target(&changes.iter().fold(seed.get(&seeds).clone(), changed));
        Ok(())
    });
    done.unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[test]
fn intake() {
    fuzzed("intake");
}

#[test]
fn envelope() {
    fuzzed("envelope");
}

#[test]
fn dialect() {
    fuzzed("dialect");
}

#[test]
fn traceback() {
    fuzzed("traceback");
}

#[test]
fn rules() {
    fuzzed("rules");
}

#[test]
fn whole() {
    fuzzed("whole");
}

/// What once went wrong.
#[test]
fn found_before() {
    for entry in fs::read_dir("tests/data/found").unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (_, target) = TARGETS.into_iter().find(|(known, _)| name.starts_with(known)).unwrap();
        target(&fs::read(&path).unwrap());
    }
}

#[test]
fn seeds_are_written_where_asked_for() {
    let Some(folder) = std::env::var_os("CORONER_FUZZ_SEEDS") else {
        return;
    };
    let folder = Path::new(&folder);
    for (target, _) in TARGETS {
        let below = folder.join("corpus").join(target);
        fs::create_dir_all(&below).unwrap();
        for (n, seed) in seeds(target).iter().enumerate() {
            fs::write(below.join(format!("seed-{n:04}")), seed).unwrap();
        }
    }
    let escaped = |word: &String| {
        let bytes = word.bytes().map(|b| match b {
            b'"' | b'\\' => format!("\\{}", char::from(b)),
            b' '..=b'~' => char::from(b).to_string(),
            _ => format!("\\x{b:02x}"),
        });
        format!("\"{}\"\n", bytes.collect::<String>())
    };
    // libFuzzer refuses longer words.
    let words = dictionary().iter().filter(|word| word.len() <= 60);
    fs::write(folder.join("dictionary"), words.map(escaped).collect::<String>()).unwrap();
}
