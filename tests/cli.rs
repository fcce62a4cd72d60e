//! The program as a whole, from its command line: how it is called, what it answers, how it reads a pipe.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;

const FAILED: &str = "corpus/flagship-c-graph-capture-oom.log";
const HEALTHY: &str = "corpus/healthy-8b-graphs.log";

fn coroner(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("coroner").unwrap();
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn run(args: &[&str]) -> Output {
    coroner(args).stdin(Stdio::null()).output().unwrap()
}

fn start(args: &[&str]) -> Child {
    coroner(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs with a file as standard input.
fn piped(args: &[&str], input: &str) -> Output {
    let file = fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(input)).unwrap();
    coroner(args).stdin(file).output().unwrap()
}

fn log(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", text(&output.stdout), text(&output.stderr)))
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// Waits for a child that must end by itself.
fn ended(mut child: Child, within: Duration) -> Output {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(
            start.elapsed() < within,
            "still running after {within:?}: {:?}",
            child.kill()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    (dir, path)
}

#[test]
fn the_status_tells_the_verdict() {
    assert_eq!(status(&run(&[FAILED])), 1);
    assert_eq!(status(&run(&[HEALTHY])), 0);
    assert_eq!(status(&run(&["--exit-zero", FAILED])), 0);
    assert_eq!(status(&run(&["--fail-on", "host-mem", FAILED])), 0);
    assert_eq!(status(&run(&["--fail-on", "host-mem,gpu-oom", FAILED])), 1);
    assert_eq!(status(&run(&["--fail-on", "stopped", HEALTHY])), 1);
}

#[test]
fn wrong_usage_is_2_and_says_what_to_do() {
    for (args, hint) in [
        (&["--format", "yaml", FAILED][..], "possible values"),
        (&["gone.log"], "gone.log: there is no such file"),
        (&["--fail-on", "gpu-ooom", FAILED], "coroner catalog"),
        (&["--attempt", "99", FAILED], "--attempt 99: the log shows 1 attempt "),
        (&["--attempt", "99", FAILED], " #1 lines "),
        (&["explain", "gpu-oom.graph-captur"], "gpu-oom.graph-capture"),
        (&["catalog", "check", "gone"], "gone cannot be read"),
    ] {
        let output = run(args);
        assert_eq!(status(&output), 2, "{args:?}");
        let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(hint), "{args:?}: {said}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
    }
}

#[test]
fn a_folder_without_a_log_is_2() {
    let (_dir, path) = scratch();
    let empty = run(&[path.to_str().unwrap()]);
    assert_eq!(status(&empty), 2);
    assert!(text(&empty.stderr).contains("There is no file in it."));
    fs::write(path.join("core.1"), b"\x7fELF\x02\x01").unwrap();
    let binary = run(&[path.to_str().unwrap()]);
    assert_eq!(status(&binary), 2);
    assert!(text(&binary.stderr).contains("1 binary entry is left out"));
}

#[test]
fn standard_input_and_a_file_give_the_same_report() {
    let mut file = json(&run(&["--format", "json", FAILED]));
    for mut report in [
        json(&piped(&["--format", "json"], FAILED)),
        json(&piped(&["--format", "json", "-"], FAILED)),
    ] {
        assert_eq!(report["source"], "-");
        let names = |v: &mut Value| *v = serde_json::from_str(&v.to_string().replace(FAILED, "-")).unwrap();
        names(&mut report);
        names(&mut file);
        assert_eq!(report, file);
    }
}

#[test]
fn compressed_input_gives_the_same_verdict_from_file_and_pipe() {
    let (_dir, path) = scratch();
    let packed = path.join("whatever.bin");
    fs::write(&packed, zstd::stream::encode_all(&log(FAILED)[..], 3).unwrap()).unwrap();
    let plain = json(&run(&["--format", "json", FAILED]));
    let packed_file = json(&run(&["--format", "json", packed.to_str().unwrap()]));
    let stdin = coroner(&["--format", "json"])
        .stdin(fs::File::open(&packed).unwrap())
        .output()
        .unwrap();
    for report in [packed_file, json(&stdin)] {
        assert_eq!(report["cause"], plain["cause"]);
        assert_eq!(report["root"]["line"], plain["root"]["line"]);
        assert_eq!(report["examined"]["bytes"], plain["examined"]["bytes"]);
    }
}

#[test]
fn an_unreadable_input_beside_a_readable_one_leaves_the_verdict() {
    let output = run(&["--format", "json", "gone.log", FAILED]);
    assert_eq!(status(&output), 1);
    assert!(text(&output.stderr).contains("gone.log: there is no such file"));
    assert_eq!(json(&output)["examined"]["skipped"][0]["input"], "gone.log");
    assert_eq!(status(&run(&["--strict", "gone.log", FAILED])), 2);
    assert_eq!(status(&run(&["--strict", FAILED])), 1);
}

#[test]
fn hidden_and_binary_files_of_a_folder_are_counted_and_no_fault() {
    let (_dir, path) = scratch();
    fs::write(path.join("serve.log"), log(FAILED)).unwrap();
    fs::write(path.join(".hidden"), "x").unwrap();
    fs::write(path.join("core.1"), b"\x7fELF\x02\x01").unwrap();
    let output = run(&["--format", "json", "--strict", path.to_str().unwrap()]);
    assert_eq!(status(&output), 1, "{}", text(&output.stderr));
    let report = json(&output);
    assert_eq!(report["examined"]["files"], 1);
    assert_eq!(report["examined"]["skipped"].as_array().unwrap().len(), 2);
}

#[test]
fn an_open_pipe_settles_after_a_failure() {
    let mut child = start(&["--settle", "300ms", "--format", "json"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&log(FAILED)).unwrap();
    let output = ended(child, Duration::from_secs(20));
    assert_eq!(status(&output), 1);
    let findings = json(&output)["findings"].to_string();
    assert!(findings.contains("still open"), "{findings}");
    drop(stdin);
}

/// A long log is searched rather than read, whether it is a file or comes by a pipe, and as long as the pipe is open.
#[test]
fn a_pipe_of_hours_says_what_its_file_says() {
    let served: String = (0..8000)
        .map(|n| {
            format!(
                "(APIServer pid=7) INFO:     10.0.0.{}:51234 - \"GET /health HTTP/1.1\" 200 OK\n",
                n % 250
            )
        })
        .collect();
    let failed = log(FAILED).len();
    let log = [&log(HEALTHY), served.as_bytes(), &log(FAILED)].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hours.log");
    fs::write(&path, &log).unwrap();
    let told = |output: &Output| {
        let report = json(output);
        let examined = &report["examined"];
        let place = &report["root"]["place"];
        assert_eq!(report["cause"]["id"], "gpu-oom.graph-capture");
        let attempts = report["attempts"].as_array().unwrap().len();
        (
            [&place["line"], &examined["lines"], &examined["bytes"]].map(Clone::clone),
            attempts,
        )
    };
    let file = told(&run(&["--format", "json", path.to_str().unwrap()]));
    let closed = coroner(&["--format", "json"])
        .stdin(fs::File::open(&path).unwrap())
        .output()
        .unwrap();
    assert_eq!(told(&closed), file);
    let mut child = start(&["--settle", "300ms", "--format", "json"]);
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        // It falls silent while it serves, and again when it has failed.
        let (served, failed) = log.split_at(log.len() - failed);
        stdin.write_all(served).unwrap();
        std::thread::sleep(Duration::from_millis(900));
        stdin.write_all(failed).unwrap();
        stdin
    });
    let open = ended(child, Duration::from_secs(20));
    assert_eq!(told(&open), file);
    assert!(json(&open)["findings"].to_string().contains("still open"));
    drop(writing.join().unwrap());
}

#[test]
fn an_open_pipe_without_a_failure_is_waited_for() {
    let mut child = start(&["--settle", "100ms"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&log(HEALTHY)).unwrap();
    std::thread::sleep(Duration::from_millis(800));
    assert!(child.try_wait().unwrap().is_none());
    drop(stdin);
    assert_eq!(status(&ended(child, Duration::from_secs(20))), 0);
}

#[test]
fn reading_on_reports_again_only_when_the_verdict_changes() {
    let mut child = start(&["--settle", "200ms", "--keep-reading", "--format", "json"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&log(FAILED)).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    stdin.write_all(b"nothing new\n").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none());
    drop(stdin);
    let output = ended(child, Duration::from_secs(20));
    let reports: Vec<Value> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0]["cause"]["id"], "gpu-oom.graph-capture");
}

#[test]
fn the_first_signal_waits_for_the_end_and_the_second_reports_at_once() {
    let mut child = start(&["--format", "json"]);
    let mut stdin = child.stdin.take().unwrap();
    let log = log(FAILED);
    stdin.write_all(&log[..log.len() / 2]).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "the first signal waits");
    stdin.write_all(&log[log.len() / 2..]).unwrap();
    drop(stdin);
    let output = ended(child, Duration::from_secs(20));
    assert_eq!(json(&output)["cause"]["id"], "gpu-oom.graph-capture");
    assert!(text(&output.stderr).contains("a second signal ends it now"));

    let mut child = start(&["--format", "json"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&log[..log.len() / 2]).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(100));
    signal(&child, "TERM");
    let output = ended(child, Duration::from_secs(5));
    assert!(json(&output)["findings"].to_string().contains("interrupted"));
    drop(stdin);
}

#[test]
fn passing_through_changes_nothing_and_does_not_wait() {
    let mut child = start(&["--pass-through"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let odd = b"\x00\xff half a line\r 50%";
    stdin.write_all(odd).unwrap();
    let mut first = [0; 20];
    stdout.read_exact(&mut first[..odd.len()]).unwrap();
    assert_eq!(&first[..odd.len()], odd, "it arrives while the input is open");
    let writer = std::thread::spawn(move || stdin.write_all(&log(FAILED)).unwrap());
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    writer.join().unwrap();
    assert!(rest == log(FAILED));
    let output = ended(child, Duration::from_secs(20));
    assert_eq!(status(&output), 1);
    assert!(text(&output.stderr).contains("gpu-oom.graph-capture"));
}

#[test]
fn a_closed_output_ends_the_program_quietly() {
    let mut child = start(&["--format", "json"]);
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(&log(FAILED)).unwrap();
    let output = ended(child, Duration::from_secs(20));
    assert_eq!((status(&output), text(&output.stderr).as_str()), (1, ""));

    for args in [&["catalog"][..], &["--help"], &["explain", "gpu-oom"]] {
        let mut child = start(args);
        drop(child.stdout.take());
        let output = ended(child, Duration::from_secs(20));
        assert_eq!((status(&output), text(&output.stderr).as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn a_launch_keeps_its_verdict_when_what_is_passed_through_has_no_reader() {
    let mut child = start(&["--pass-through", "--format", "oneline"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdin.write_all(b"y\n").unwrap();
    let mut some = [0; 2];
    stdout.read_exact(&mut some).unwrap();
    drop(stdout);
    stdin.write_all(&log(FAILED)).unwrap();
    drop(stdin);
    let output = ended(child, Duration::from_secs(20));
    assert_eq!(status(&output), 1);
    let told = text(&output.stderr);
    assert!(
        told.starts_with("failed in graph-capture"),
        "a closed pipe is quiet: {told}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_launch_keeps_its_verdict_when_what_is_passed_through_cannot_be_written() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let file = fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(FAILED)).unwrap();
    let output = coroner(&["--pass-through", "--format", "oneline"])
        .stdin(file)
        .stdout(full)
        .output()
        .unwrap();
    let told = text(&output.stderr);
    assert_eq!(status(&output), 1, "{told}");
    assert_eq!(told.matches("standard output cannot be written").count(), 1, "{told}");
    assert!(told.contains("gpu-oom.graph-capture"), "{told}");
}

#[test]
fn an_empty_input_says_so_and_what_to_do() {
    let (_dir, path) = scratch();
    let file = |name: &str, text: &str| {
        let file = path.join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (empty, blank) = (file("empty.log", ""), file("blank.log", &"\n  \n".repeat(100_000)));
    for (args, headline) in [
        (&[][..], "The log is empty"),
        (&[empty.as_str()], "The log is empty"),
        (&[blank.as_str()], "The log holds nothing but blank lines"),
        (
            &[empty.as_str(), blank.as_str()],
            "Each of the 2 logs holds nothing but blank lines",
        ),
    ] {
        let output = run(&[&["--format", "json"], args].concat());
        let report = json(&output);
        assert_eq!(
            (status(&output), report["outcome"].as_str()),
            (0, Some("no-launch")),
            "{args:?}"
        );
        assert_eq!(report["headline"], headline);
        assert_eq!(report["findings"][0]["id"], "input.empty");
        assert_eq!(report["log"]["head"], Value::Null);
        let page = text(&run(args).stdout);
        assert!(
            page.contains("2>&1") && !page.contains("begins in the middle"),
            "{page}"
        );
    }
    assert_eq!(status(&run(&["--fail-on", "no-launch", &empty])), 1);
    let some = file("some.log", "hello\n");
    let other = json(&run(&["--format", "json", &empty, &some]));
    assert_eq!(other["headline"], "This log shows no launch of an inference server");
}

/// Runs on a terminal of its own, where one can be made.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_told_how_to_feed_the_program() {
    let program = assert_cmd::cargo::cargo_bin("coroner");
    let typed = Command::new("script")
        .args(["-qec", program.to_str().unwrap(), "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = typed else {
        eprintln!("skipped: there is no `script` to make a terminal");
        return;
    };
    let mut keys = child.stdin.take().unwrap();
    std::thread::spawn(move || {
        // Ctrl-D, until the program has begun to read.
        while keys.write_all(b"\x04").is_ok() {
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    let output = ended(child, Duration::from_secs(20));
    let told = text(&output.stdout);
    for part in ["Ctrl-D", "coroner serve.log", "2>&1 | tee", "--help"] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
}

#[test]
fn colour_is_asked_for_or_absent() {
    assert!(!text(&run(&[FAILED]).stdout).contains('\x1b'));
    assert!(text(&run(&["--color", "always", FAILED]).stdout).contains('\x1b'));
    assert!(!text(&run(&["--color", "never", FAILED]).stdout).contains('\x1b'));
}

#[test]
fn rules_can_be_listed_explained_checked_and_switched_off() {
    assert!(text(&run(&["catalog"]).stdout).contains("gpu-oom.graph-capture"));
    assert!(text(&run(&["explain", "gpu-oom.graph-capture"]).stdout).contains("gpu-oom.graph-capture"));
    let (_dir, path) = scratch();
    let check = || run(&["catalog", "check", path.to_str().unwrap()]);
    assert_eq!(status(&check()), 2, "no rule file");
    let rule = "[[signature]]\nid = \"x.y\"\nrole = \"benign\"\nprogram = \"vllm\"\nliteral = [\"needle\"]\n\
                source = \"test\"\nmatch = [\"needle in a haystack\"]\n";
    fs::write(path.join("x.toml"), rule).unwrap();
    assert_eq!(status(&check()), 0, "{}", text(&check().stdout));
    fs::write(path.join("x.toml"), rule.replace("needle in", "nothing in")).unwrap();
    assert_eq!(status(&check()), 1);
    assert!(text(&check().stdout).contains("nothing answers it"));
    fs::write(path.join("x.toml"), "[[signature]]\nwrong = 1\n").unwrap();
    assert_eq!(status(&check()), 2);

    let structure = json(&run(&["--rules", "none", "--format", "json", FAILED]));
    let all = json(&run(&["--format", "json", FAILED]));
    assert_ne!(structure["program"]["version"], Value::Null);
    assert_eq!(all["cause"]["id"], "gpu-oom.graph-capture");
}

#[test]
fn an_archive_in_a_pipe_is_no_text() {
    let log = fs::read("corpus/torch-alloc-oom.log").unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_size(log.len() as u64);
    header.set_mode(0o644);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, "node-a.log", log.as_slice()).unwrap();
    let mut zip = b"PK\x03\x04\x14\0\0\0\x08\0".to_vec();
    zip.extend([7; 600]);
    for (bytes, kind) in [(archive.into_inner().unwrap(), "tar"), (zip, "ZIP")] {
        let mut child = coroner(&[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Who says what is wrong need not read it all.
        let _ = stdin.write_all(&bytes);
        drop(stdin);
        let out = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{told}");
        assert!(told.contains(&format!("standard input is a {kind} archive")), "{told}");
        assert!(out.stdout.is_empty());
    }
}
