//! Memory stays bounded whatever comes in, time grows no faster than the input, and the report says what was left out.
//!
//! Peaks are read from `/proc` while the program runs; elsewhere only the reports are checked. `README.md` has the figures
//! of full-size runs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// A line that begins a launch, so that every line behind it is read.
const BEGIN: &str = "(APIServer pid=819) INFO 11-29 14:22:37 [utils.py:299] vLLM API server version 0.19.0\n";

fn start(args: &[&str], input: Stdio) -> Child {
    Command::cargo_bin("coroner")
        .unwrap()
        .args(["--format", "json"])
        .args(args)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The peak so far, bytes.
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The report, and the peak of memory.
fn finished(mut child: Child) -> (Value, u64) {
    let mut most = 0;
    let mut stdout = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut stdout, &mut text).unwrap();
        text
    });
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak(&child).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = reading.join().unwrap();
    (serde_json::from_slice(&text).unwrap(), most)
}

/// What is written to the program's standard input.
fn piped(args: &[&str], write: impl FnOnce(&mut ChildStdin) + Send + 'static) -> (Value, u64) {
    let mut child = start(args, Stdio::piped());
    let mut input = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || write(&mut input));
    let done = finished(child);
    writing.join().unwrap();
    done
}

fn capped(report: &Value) -> String {
    report["examined"]["capped"].to_string()
}

fn file(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn gz(write: impl FnOnce(&mut dyn Write)) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    write(&mut encoder);
    encoder.finish().unwrap()
}

#[test]
fn one_line_without_end() {
    let (report, peak) = piped(&[], |input| {
        input.write_all(BEGIN.as_bytes()).unwrap();
        let block = vec![b'x'; 1 << 20];
        (0..256).for_each(|_| input.write_all(&block).unwrap());
    });
    assert!(peak < 96 * MIB, "{} MiB", peak / MIB);
    assert_eq!(report["examined"]["bytes"], 256 * MIB + BEGIN.len() as u64);
    assert!(
        capped(&report).contains("bytes behind the line limit were skipped"),
        "{report}"
    );
}

#[test]
fn lines_of_one_byte() {
    let (report, peak) = piped(&[], |input| {
        input.write_all(BEGIN.as_bytes()).unwrap();
        let block = b"x\n".repeat(50_000);
        (0..10).for_each(|_| input.write_all(&block).unwrap());
    });
    assert!(peak < 96 * MIB, "{} MiB", peak / MIB);
    assert_eq!(report["examined"]["lines"], 500_001);
}

#[test]
fn processes_without_end() {
    let (report, peak) = piped(&[], |input| {
        input.write_all(BEGIN.as_bytes()).unwrap();
        for n in 1..60_000 {
            writeln!(input, "(Worker_TP{n} pid={n}) INFO 11-29 14:22:38 [core.py:1] step {n}").unwrap();
        }
    });
    assert!(peak < 160 * MIB, "{} MiB", peak / MIB);
    assert!(
        capped(&report).contains("processes are told apart"),
        "{}",
        capped(&report)
    );
}

#[test]
fn failures_without_end() {
    for each_its_own in [false, true] {
        let (report, peak) = piped(&["--max-memory", "64MiB"], move |input| {
            input.write_all(BEGIN.as_bytes()).unwrap();
            for n in 1..20_000 {
                let pid = if each_its_own { n } else { 7 };
                let head = format!("(Worker_TP{pid} pid={pid}) ERROR 11-29 14:22:38 [core.py:{n}]");
                writeln!(input, "{head} Traceback (most recent call last):").unwrap();
                writeln!(input, "{head}   File \"/a/{}.py\", line {n}, in f", "b".repeat(400)).unwrap();
                writeln!(input, "{head} ValueError: {n}{}", " why".repeat(300)).unwrap();
            }
        });
        assert!(peak < 220 * MIB, "{} MiB", peak / MIB);
        assert_eq!(report["cause"]["id"], "unknown.exception");
        assert_eq!(report["root"]["line"], 4, "the first one stays");
        assert!(capped(&report).contains("not kept"), "{}", capped(&report));
    }
}

#[test]
fn causes_of_causes() {
    let (report, peak) = piped(&[], |input| {
        input.write_all(BEGIN.as_bytes()).unwrap();
        for n in 0..20_000 {
            writeln!(
                input,
                "Traceback (most recent call last):\n  File \"a.py\", line {n}, in f\nValueError: {n}\n"
            )
            .unwrap();
            writeln!(
                input,
                "During handling of the above exception, another exception occurred:\n"
            )
            .unwrap();
        }
        for n in 0..50_000 {
            writeln!(input, "  File \"a.py\", line {n}, in f\n    f()").unwrap();
        }
    });
    assert!(peak < 160 * MIB, "{} MiB", peak / MIB);
    assert_eq!(report["outcome"], "failed");
    assert!(
        capped(&report).contains("of overlong tracebacks were not kept"),
        "{}",
        capped(&report)
    );
}

#[test]
fn data_that_grows_without_end_in_every_shape() {
    let dir = tempfile::tempdir().unwrap();
    let zeros = vec![b'\n'; 1 << 20];
    let many = |mib: usize| {
        let zeros = zeros.clone();
        move |to: &mut dyn Write| (0..mib).for_each(|_| to.write_all(&zeros).unwrap())
    };
    let simple = gz(many(1100));
    let twice = gz(|to| to.write_all(&simple).unwrap());
    let member = |name: &str, bytes: &[u8]| {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes).unwrap();
        builder.into_inner().unwrap()
    };
    let inside = member("a.log.gz", &simple);
    let nested = member("inner.tar.gz", &gz(|to| to.write_all(&inside).unwrap()));
    for (name, bytes, told) in [
        ("a.log.gz", &simple, "grows more than 500 times"),
        ("b.log.gz.gz", &twice, "grows more than 500 times"),
        ("c.tar", &inside, "grows more than 500 times"),
        ("d.tar", &nested, "an archive inside an archive is not opened"),
    ] {
        let path = file(dir.path(), name, bytes);
        let good = file(dir.path(), "good.log", BEGIN.as_bytes());
        let child = start(&[path.to_str().unwrap(), good.to_str().unwrap()], Stdio::null());
        let (report, peak) = finished(child);
        assert!(peak < 160 * MIB, "{name}: {} MiB", peak / MIB);
        assert!(report.to_string().contains(told), "{name}: {report}");
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_examination_tells_what_it_knows() {
    let dir = tempfile::tempdir().unwrap();
    let failed = fs::read("corpus/flagship-c-graph-capture-oom.log").unwrap();
    let long = (0..2_000_000).fold(BEGIN.to_owned(), |text, n| {
        text + &format!("(Worker_TP0 pid=7) INFO 11-29 14:22:38 [core.py:1] step {n}\n")
    });
    let first = file(dir.path(), "a.log", &failed);
    let second = file(dir.path(), "b.log", long.as_bytes());
    let child = start(
        &[first.to_str().unwrap(), second.to_str().unwrap(), "--one-incident"],
        Stdio::null(),
    );
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(1500));
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let (report, _) = finished(child);
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(report.to_string().contains("reading was interrupted after"), "{report}");
    let findings = report["findings"].to_string();
    assert!(findings.contains("input.interrupted"), "{findings}");
}

#[test]
fn large_archives_are_held_one_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!("{BEGIN}{}\n", "x".repeat(1000)).repeat(3000);
    for n in 0..4 {
        // Held as it is, since it is packed already, if only by name.
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        packed.write_all(long.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_size(packed.len() as u64);
        header.set_mode(0o644);
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_data(&mut header, "a.log.gz", &packed[..]).unwrap();
        file(dir.path(), &format!("{n}.tar"), &builder.into_inner().unwrap());
    }
    let folder = dir.path().to_str().unwrap();
    let child = Command::cargo_bin("coroner")
        .unwrap()
        .args(["scan", "--jobs", "4", "--max-memory", "64MiB", folder])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let records = String::from_utf8(output.stdout).unwrap();
    let outcomes: Vec<String> = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["outcome"].to_string())
        .collect();
    assert_eq!(outcomes, ["\"running\""; 4]);
}
