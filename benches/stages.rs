//! Each stage for itself: intake, envelopes, dialects, the gates, the verdict, and the whole.
//!
//! `cargo bench --bench stages` prints times, and bytes or lines per second.

#[expect(dead_code, reason = "`throughput` uses the rest")]
mod shapes;

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::sync::Arc;

use coroner::catalog::Catalog;
use coroner::dialect::header;
use coroner::dialect::reader::Reader;
use coroner::envelope::{Peeler, Profile};
use coroner::event::InputId;
use coroner::examine::{Examiner, Options, examine};
use coroner::intake::{InputSpec, Limits, LineReader, Source as Input};
use coroner::launch::{Launches, Source};
use coroner::report::{Format, Style, render};
use coroner::territory::Gates;
use coroner::verdict;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use shapes::{Shape, capture_failure, loading, ready};

fn main() {
    divan::main();
}

fn catalog() -> &'static Catalog {
    Catalog::shared()
}

/// A launch, 90 KB of serving, and a launch that dies in graph capture: 200 KB.
fn launch() -> String {
    let mut log = loading(1, 200, "11-25 11:58") + &ready(1, 200, "11-25 11:58");
    log.push_str(&served(90_000));
    log + &loading(7, 900, "11-25 13:00") + &capture_failure(7, 900, "11-25 13:00")
}

/// Serving, without the launch in front and the one behind.
fn served(bytes: usize) -> String {
    let mut log = Vec::new();
    Shape::Refusals
        .write(&mut log, bytes)
        .expect("memory takes what is written");
    String::from_utf8(log).expect("text")
}

/// What a transport makes of a line.
type Wrap = fn(&str) -> String;

const WRAPS: [(&str, Wrap); 7] = [
    ("bare", str::to_owned),
    ("docker", |line| {
        format!(
            r#"{{"log":"{}\n","stream":"stderr","time":"2026-11-25T12:00:00.123456789Z"}}"#,
            line.replace('\\', "\\\\").replace('"', "\\\"")
        )
    }),
    ("cri", |line| format!("2026-11-25T12:00:00.123456789Z stderr F {line}")),
    ("compose", |line| format!("engine-1  | {line}")),
    ("journald", |line| format!("Nov 25 12:00:00 node-a vllm[4711]: {line}")),
    ("ray", |line| {
        format!("\x1b[36m(RayWorkerWrapper pid=288, ip=10.0.0.2)\x1b[0m {line}")
    }),
    ("slurm", |line| format!("3: {line}")),
];

#[divan::bench(args = ["plain", "gzip"])]
fn intake(bencher: Bencher<'_, '_>, stored: &str) {
    let text = served(4_000_000).into_bytes();
    let bytes = match stored {
        "gzip" => {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            packer.write_all(&text).expect("memory takes what is written");
            packer.finish().expect("memory takes what is written")
        }
        _ => text.clone(),
    };
    bencher.counter(BytesCount::new(text.len())).bench(|| {
        let limits = Limits::default();
        let source = Input::new(Cursor::new(bytes.clone()), &limits).expect("it opens");
        let mut lines = LineReader::new(source, &limits);
        while let Ok(Some(line)) = lines.next() {
            divan::black_box(line);
        }
    });
}

#[divan::bench(args = WRAPS.map(|(name, _)| name))]
fn envelope(bencher: Bencher<'_, '_>, transport: &str) {
    let wrap = WRAPS
        .iter()
        .find(|(name, _)| *name == transport)
        .expect("a transport")
        .1;
    let text: String = launch().lines().map(|line| wrap(line) + "\n").collect();
    bencher.counter(BytesCount::new(text.len())).bench(|| {
        let mut peeler = Peeler::new(Profile::of(text.as_bytes()));
        for (no, line) in (1..).zip(text.lines()) {
            peeler.line(no, 0, line.as_bytes(), &mut |record| _ = divan::black_box(record));
        }
    });
}

const HEADERS: [(&str, &str); 7] = [
    (
        "vllm",
        "(EngineCore pid=200) INFO 11-25 12:00:00 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: model='/models/llama-8b'",
    ),
    (
        "sglang",
        "[2026-11-25 12:00:00 TP3] Decode batch. #running-req: 12, #token: 4711, token usage: 0.12",
    ),
    (
        "ray",
        "[2026-11-25 12:00:00,123 E 18 77] (raylet) node_manager.cc:3199: 1 Workers (tasks / actors) killed due to memory pressure",
    ),
    (
        "nccl",
        "node-a:4101:5101 [1] NCCL INFO Channel 03/0 : 11[1] -> 12[2] via P2P/CUMEM",
    ),
    (
        "torch",
        "[rank3]:[E1125 12:10:23.000301 ProcessGroupNCCL.cpp:683] [Rank 3] Watchdog caught collective operation timeout",
    ),
    (
        "kernel",
        "[12345.678901] Memory cgroup out of memory: Killed process 8812 (python3) total-vm:1kB, anon-rss:1kB",
    ),
    (
        "none",
        "  File \"/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py\", line 114, in __init__",
    ),
];

#[divan::bench(args = HEADERS.map(|(name, _)| name))]
fn dialect(bencher: Bencher<'_, '_>, program: &str) {
    let line = HEADERS.iter().find(|(name, _)| *name == program).expect("a program").1;
    bencher
        .counter(ItemsCount::new(1usize))
        .bench(|| divan::black_box(header::parse(divan::black_box(line))).message.len());
}

/// Bare lines through envelope and dialect, up to the events of a source.
fn harvest(text: &str) -> Source {
    let mut peeler = Peeler::new(Profile::of(text.as_bytes()));
    let mut reader = Reader::new(catalog(), InputId(0), Limits::default().event_bytes);
    for (no, line) in (1..).zip(text.lines()) {
        peeler.line(no, 0, line.as_bytes(), &mut |record| _ = reader.record(&record));
    }
    peeler.finish(&mut |record| _ = reader.record(&record));
    Source {
        input: InputId(0),
        name: "bench.log".to_owned(),
        harvest: reader.finish(),
    }
}

#[divan::bench]
fn events(bencher: Bencher<'_, '_>) {
    let text = launch();
    bencher.counter(BytesCount::new(text.len())).bench(|| harvest(&text));
}

#[divan::bench]
fn gates(bencher: Bencher<'_, '_>) {
    let mut text = String::new();
    for n in 0..40_000 {
        let _ = writeln!(
            text,
            "(APIServer pid=1) INFO:     10.0.0.{}:{n} - \"POST /v1/completions HTTP/1.1\" 200 OK",
            n % 250
        );
    }
    let gates = Gates::standard();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench(|| gates.find(text.as_bytes()));
}

#[divan::bench]
fn judging(bencher: Bencher<'_, '_>) {
    let sources = [Arc::new(harvest(&launch()))];
    bencher.bench(|| {
        let mut launches = Launches::build(catalog(), &sources);
        let last = launches.attempts - 1;
        verdict::judge(catalog(), &mut launches, last)
    });
}

#[divan::bench(args = [Format::Terminal, Format::Markdown, Format::Json, Format::Html])]
fn view(bencher: Bencher<'_, '_>, format: Format) {
    let report = examine(
        catalog(),
        &[InputSpec::memory("bench.log", launch().into_bytes())],
        &Options::default(),
    );
    bencher.bench(|| render(&report, format, &Style::default()));
}

#[divan::bench]
fn whole(bencher: Bencher<'_, '_>) {
    let text: Arc<[u8]> = launch().into_bytes().into();
    bencher.counter(BytesCount::new(text.len())).bench(|| {
        let mut examiner = Examiner::new(catalog(), Options::default());
        examiner.read(&InputSpec::memory("bench.log", Arc::clone(&text)));
        examiner.report()
    });
}

/// What each start costs at which rule files change the built-in rules: all of them are read and indexed. Else each is
/// read when it is first asked for.
#[divan::bench]
fn rules() -> Catalog {
    Catalog::without_root_signatures().expect("the built-in rules are sound")
}
