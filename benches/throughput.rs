//! Whole examinations of generated logs, next to a plain search for the catalog's texts in the same bytes.
//!
//! `cargo bench --bench throughput` prints bytes per CPU second of one thread, as ratios to that search, after the
//! report has given the expected answer. `-- --plain` reads every line; `-- --write DIR MEGABYTES` only writes the
//! logs, for `side_by_side.sh`; `-- --growth` examines dense logs of doubling size; `-- --incident` examines one incident
//! of 512 ranks in 64 files.

mod shapes;

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use aho_corasick::AhoCorasick;
use coroner::catalog::Catalog;
use coroner::intake::{Limits, discover};
use coroner::report::model::Report;
use coroner::{Options, examine};
use shapes::{Answer, Shape, incident};

/// Megabytes of one log, without the line of 50 MB.
const MEGABYTES: usize = 100;
const RUNS: usize = 5;
/// Seconds that are measured at least, in a clock with steps of 10 ms.
const ENOUGH: f64 = 0.2;

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--write", folder, megabytes] => {
            let megabytes = megabytes.parse().map_err(std::io::Error::other)?;
            Shape::ALL.iter().try_for_each(|shape| {
                written(*shape, Path::new(folder), megabytes).map(|path| println!("{}", path.display()))
            })?;
            incident::write(Path::new(folder), megabytes * 1_000_000).map(|path| println!("{}", path.display()))
        }
        ["--incident"] => one_incident(),
        ["--growth"] => growth(),
        ["--plain"] => table(true),
        _ => table(false),
    }
}

fn written(shape: Shape, folder: &Path, megabytes: usize) -> std::io::Result<PathBuf> {
    let path = folder.join(format!("{}.log", shape.name()));
    let mut out = BufWriter::new(File::create(&path)?);
    shape.write(&mut out, megabytes * 1_000_000)?;
    out.flush()?;
    Ok(path)
}

/// 200 MB of 512 ranks: the root must be the rank that died, not one of the 511 that waited for it.
fn one_incident() -> std::io::Result<()> {
    let began = Instant::now();
    let folder = tempfile::tempdir()?;
    let path = incident::write(folder.path(), 200_000_000)?;
    let root = report(&path, false).root.expect("the incident has a root").place;
    let node = incident::node(incident::DEAD);
    assert_eq!(
        (root.rank, root.node),
        (Some(incident::DEAD), Some(node)),
        "{}",
        root.text
    );
    let seconds = median(began, RUNS, || {
        report(&path, false);
    });
    println!("512 ranks, 64 files, 200 MB: {seconds:.2} s of CPU time, median of {RUNS}");
    Ok(())
}

fn report(path: &Path, plain: bool) -> Report {
    let found = discover(&[path.to_owned()], &Limits::default());
    let options = Options {
        plain,
        ..Options::default()
    };
    examine(Catalog::shared(), &found.inputs, &options)
}

/// Panics where a report is not the expected one: it has no speed.
fn check(shape: Shape, report: &Report) {
    let root = report.root.as_ref().map(|r| r.place.text.to_string());
    let expected = shape.answer();
    let said = Answer {
        outcome: report.outcome.id(),
        phase: expected.phase.filter(|p| report.phase.as_deref() == Some(*p)),
        cause: expected
            .cause
            .filter(|c| report.cause.as_ref().is_some_and(|d| d.id == *c)),
        root: expected
            .root
            .filter(|r| root.as_ref().is_some_and(|line| line.contains(*r))),
    };
    assert_eq!(
        said,
        expected,
        "{}: phase {:?}, cause {:?}, root {root:?}",
        shape.name(),
        report.phase,
        report.cause.as_ref().map(|c| &c.id)
    );
}

/// User and system time of this process in seconds, in steps of 10 ms; wall time where the system does not tell.
fn cpu(began: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").ok();
    let ticks = stat.as_deref().and_then(|stat| {
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    });
    ticks.map_or_else(|| began.elapsed().as_secs_f64(), |ticks| ticks as f64 / 100.0)
}

/// The median time of one run. What is over in a few steps of the clock is repeated until it is not.
fn median(began: Instant, runs: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let before = cpu(began);
            let mut times = 0;
            loop {
                run();
                times += 1;
                let used = cpu(began) - before;
                if used >= ENOUGH {
                    return used / f64::from(times);
                }
            }
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[runs / 2]
}

fn table(plain: bool) -> std::io::Result<()> {
    let began = Instant::now();
    let folder = tempfile::tempdir()?;
    let catalog = Catalog::shared();
    let literals: Vec<&str> = catalog
        .signatures()
        .flat_map(|s| s.def.literal.iter().map(String::as_str))
        .collect();
    let automaton = AhoCorasick::new(&literals).expect("the literals are not too many");
    println!("{} literals; CPU seconds, median of {RUNS}; MB/s", literals.len());
    println!(
        "{:<12} {:>6} {:>9} {:>7} {:>9} {:>7} {:>6}",
        "shape", "MB", "coroner s", "MB/s", "search s", "MB/s", "ratio"
    );
    for shape in Shape::ALL {
        let path = written(shape, folder.path(), MEGABYTES)?;
        let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
        check(shape, &report(&path, plain));
        let ours = median(began, RUNS, || drop(std::hint::black_box(report(&path, plain))));
        let search = median(began, RUNS, || {
            std::hint::black_box(scan(&automaton, &path).unwrap_or(0));
        });
        println!(
            "{:<12} {megabytes:>6.0} {ours:>9.2} {:>7.0} {search:>9.2} {:>7.0} {:>6.2}",
            shape.name(),
            megabytes / ours,
            megabytes / search,
            search / ours
        );
    }
    Ok(())
}

/// Counts the matches of all literals, block by block.
fn scan(automaton: &AhoCorasick, path: &Path) -> std::io::Result<usize> {
    let (mut file, mut block, mut count) = (File::open(path)?, vec![0; 256 << 10], 0);
    loop {
        let n = file.read(&mut block)?;
        if n == 0 {
            return Ok(count);
        }
        count += automaton.find_iter(&block[..n]).count();
    }
}

/// Writes the n-th line, or the few that belong together.
type Line = fn(usize) -> String;

/// What a hostile line repeats: beginnings of prefixes, escapes and quotes that a careless parser tries again and again.
const HOSTILE: [&str; 13] = [
    "/s]",
    "[0:0/s]x",
    "a:1:2 [0] NCCL ",
    "<span",
    "\x1b]",
    "\"",
    "{\"a\":",
    "(pid=",
    "[36m",
    "|",
    "\r",
    "> ",
    "-1: ",
];

/// Dense logs, in which every line counts: and single lines of hostile text: how the time grows when the log doubles, with every
/// line read.
fn growth() -> std::io::Result<()> {
    let began = Instant::now();
    let folder = tempfile::tempdir()?;
    let kinds: [(&str, Line); 4] = [
        ("failures", |n| {
            format!("(Worker_TP0 pid=11) ERROR 11-25 12:00:00 [core.py:12] RuntimeError: step {n} went wrong\n")
        }),
        ("NCCL WARN", |n| {
            format!("node-a:{n}:7 [0] NCCL WARN Call to recv from 10.0.0.1<1> failed : Connection reset by peer\n")
        }),
        ("processes", |n| {
            format!(
                "(Worker_TP0 pid={n}) ERROR 11-25 12:00:00 [core.py:12] Traceback (most recent call last):\n(Worker_TP0 pid={n}) ERROR 11-25 12:00:00 [core.py:12] ValueError: x\n"
            )
        }),
        ("raw tracebacks", |n| {
            format!(
                "Traceback (most recent call last):\n  File \"a{}.py\", line {n}, in f\n    g()\nKeyError: {n}\n",
                n % 7
            )
        }),
    ];
    println!(
        "{:<16} {:>8} {:>8} {:>8} {:>8}  growth",
        "dense in, ms", "1x", "2x", "4x", "8x"
    );
    for (name, line) in kinds {
        let text = |times: usize| (0..10_000 * times).map(line).collect();
        doubled(began, folder.path(), name, text)?;
    }
    for unit in HOSTILE {
        // Eight times as long, a line is as long as what is kept of one.
        let text = |times: usize| vec![unit.repeat(times * (32 << 10) / unit.len()); 20].join("\n");
        doubled(began, folder.path(), &format!("{unit:?}"), text)?;
    }
    Ok(())
}

/// Prints the time for a text and for two, four and eight times as much of it.
fn doubled(began: Instant, folder: &Path, name: &str, text: impl Fn(usize) -> String) -> std::io::Result<()> {
    let path = folder.join("dense.log");
    let times: Vec<f64> = [1, 2, 4, 8]
        .iter()
        .map(|times| {
            std::fs::write(&path, text(*times))?;
            Ok(median(began, RUNS, || drop(std::hint::black_box(report(&path, true)))))
        })
        .collect::<std::io::Result<_>>()?;
    let factors: Vec<String> = times.windows(2).map(|t| format!("{:.2}", t[1] / t[0])).collect();
    println!(
        "{name:<16} {:>8.1} {:>8.1} {:>8.1} {:>8.1}  {}",
        times[0] * 1e3,
        times[1] * 1e3,
        times[2] * 1e3,
        times[3] * 1e3,
        factors.join(" ")
    );
    Ok(())
}
