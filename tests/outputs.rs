//! Where outputs go, and what becomes of them when they cannot.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use common::FORMATS;
use serde_json::Value;

const FAILED: &str = "corpus/flagship-c-graph-capture-oom.log";
const HEALTHY: &str = "corpus/healthy-8b-graphs.log";

fn coroner(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("coroner").unwrap();
    command
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    coroner(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What was said on standard error, on one line.
fn said(output: &Output) -> String {
    text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `FORM=FILE`.
    fn form(&self, form: &str, name: &str) -> String {
        format!("{form}={}", self.at(name).display())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn log(&self, name: &str, from: &str) -> String {
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(from), self.at(name)).unwrap();
        self.at(name).to_str().unwrap().to_owned()
    }
}

#[cfg(unix)]
mod unix {
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    fn fifo(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn a_link_stays_and_its_file_is_replaced_with_its_mode() {
        let scratch = Scratch::new();
        fs::create_dir(scratch.at("far")).unwrap();
        fs::write(scratch.at("far/real"), "old").unwrap();
        fs::set_permissions(scratch.at("far/real"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("far/real", scratch.at("link")).unwrap();
        symlink("far/new", scratch.at("dangling")).unwrap();
        let (one, two) = (scratch.form("oneline", "link"), scratch.form("oneline", "dangling"));
        assert_eq!(status(&run(&["--format", &one, "--format", &two, FAILED])), 1);
        for name in ["link", "dangling"] {
            assert!(scratch.at(name).is_symlink(), "{name}");
            assert!(scratch.read(name).starts_with("failed in graph-capture"));
        }
        assert_eq!(mode(&scratch.at("far/real")), 0o600);

        let output = scratch.at("link");
        let output = output.to_str().unwrap();
        for _ in 0..2 {
            assert_eq!(status(&run(&["scan", "--resume", "--output", output, FAILED])), 0);
            assert!(scratch.at("link").is_symlink());
            assert!(scratch.read("far/real").starts_with("{\"schema\":\"coroner.report/1\""));
            assert_eq!(mode(&scratch.at("far/real")), 0o600);
        }
        assert_eq!(fs::read_dir(scratch.at("far")).unwrap().count(), 2);
    }

    #[test]
    fn a_pipe_is_written_straight_to() {
        let scratch = Scratch::new();
        fifo(&scratch.at("pipe"));
        let reader = |path: PathBuf| {
            std::thread::spawn(move || {
                let mut text = String::new();
                fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
                text
            })
        };
        let reading = reader(scratch.at("pipe"));
        assert_eq!(status(&run(&["--format", &scratch.form("json", "pipe"), FAILED])), 1);
        let report: Value = serde_json::from_str(&reading.join().unwrap()).unwrap();
        assert_eq!(report["outcome"], "failed");

        let reading = reader(scratch.at("pipe"));
        let to = scratch.at("pipe");
        assert_eq!(
            status(&run(&["scan", "--output", to.to_str().unwrap(), FAILED, HEALTHY])),
            0
        );
        assert_eq!(reading.join().unwrap().lines().count(), 2);
        assert_eq!(scratch.names(), ["pipe"]);
        assert_eq!(
            status(&run(&["scan", "--resume", "--output", to.to_str().unwrap(), FAILED])),
            2
        );
    }

    #[test]
    fn standard_output_has_other_names() {
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            let scratch = Scratch::new();
            let file = fs::File::create(scratch.at("out")).unwrap();
            let output = coroner(&["--format", &format!("oneline={name}"), "--format", "oneline", FAILED])
                .stdout(file)
                .output()
                .unwrap();
            assert_eq!(status(&output), 1, "{name}: {}", text(&output.stderr));
            assert_eq!(scratch.read("out").lines().count(), 2, "{name}");
            assert_eq!(scratch.names(), ["out"], "{name}");
        }
        assert_eq!(
            text(&run(&["scan", "--output", "/dev/stdout", FAILED]).stdout)
                .lines()
                .count(),
            1
        );
        assert!(!Path::new("/dev/stdout").metadata().unwrap().is_dir());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error_and_the_other_outputs_are_written() {
        let scratch = Scratch::new();
        let good = scratch.form("markdown", "good.md");
        let output = run(&[
            "--format",
            "json=/dev/full",
            "--format",
            "html=/no/such/folder/x",
            "--format",
            &good,
            "--format",
            "oneline",
            FAILED,
        ]);
        assert_eq!(status(&output), 2);
        assert!(
            said(&output).contains("/dev/full cannot be written: No space left"),
            "{}",
            said(&output)
        );
        assert!(said(&output).contains("/no/such/folder/x cannot be written: its folder does not exist"));
        assert!(scratch.read("good.md").contains("gpu-oom.graph-capture"));
        assert!(text(&output.stdout).starts_with("failed in graph-capture"));
        assert_eq!(status(&run(&["scan", "--output", "/dev/full", FAILED])), 2);
        let meta = Path::new("/dev/full").metadata().unwrap();
        assert!(!meta.is_file());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_leaves_the_good_file() {
        let scratch = Scratch::new();
        fs::write(scratch.at("report.json"), "good\n").unwrap();
        let program = assert_cmd::cargo::cargo_bin("coroner");
        // No file may grow beyond one block; what would be a signal is an error instead.
        let limited = |args: &[&str]| {
            Command::new("bash")
                .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "bash"])
                .arg(&program)
                .args(args)
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .stdin(Stdio::null())
                .output()
                .unwrap()
        };
        let output = limited(&["--format", &scratch.form("json", "report.json"), FAILED]);
        assert_eq!(status(&output), 2, "{}", said(&output));
        assert!(said(&output).contains("File too large"), "{}", said(&output));
        assert_eq!(scratch.names(), ["report.json"]);
        assert_eq!(scratch.read("report.json"), "good\n");

        let to = scratch.at("report.json");
        let output = limited(&["scan", "--output", to.to_str().unwrap(), FAILED]);
        assert_eq!(status(&output), 2, "{}", said(&output));
        assert_eq!(scratch.read("report.json"), "good\n");
        // The message is wrapped, maybe within the path.
        let told = said(&output).replace(|c: char| c.is_whitespace() || c == '│', "");
        assert!(
            told.contains("report.json.partial.1,and--resumegoesonfromthere"),
            "{told}"
        );
        assert_eq!(scratch.names(), ["report.json", "report.json.partial.1"]);
        // Where nothing at all could be written, nothing stays behind.
        fs::remove_file(scratch.at("report.json.partial.1")).unwrap();
        let full = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
        let output = Command::new("bash")
            .args(["-c", full, "bash"])
            .arg(&program)
            .args(["scan", "--output", to.to_str().unwrap(), FAILED])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert_eq!(status(&output), 2);
        assert_eq!(scratch.names(), ["report.json"]);
    }

    #[test]
    fn an_input_is_never_overwritten() {
        let scratch = Scratch::new();
        let log = scratch.log("a.log", FAILED);
        fs::hard_link(&log, scratch.at("hard")).unwrap();
        symlink("a.log", scratch.at("soft")).unwrap();
        let before = scratch.read("a.log");
        let folder = scratch.dir.path().to_str().unwrap();
        for target in ["a.log", "hard", "soft"] {
            for input in [log.as_str(), folder] {
                let output = run(&["--format", &scratch.form("json", target), input]);
                assert_eq!(status(&output), 2, "{target} {input}");
                assert!(said(&output).contains("is one of the inputs"), "{}", said(&output));
                let to = scratch.at(target);
                let output = run(&["scan", "--output", to.to_str().unwrap(), input]);
                assert_eq!(status(&output), 2, "{target} {input}");
                assert!(said(&output).contains("is one of the inputs"), "{}", said(&output));
            }
        }
        let map = run(&["--redact-map", &log, "--redact", "identity", &log]);
        assert_eq!(status(&map), 2);
        let stdin = coroner(&["--format", &scratch.form("json", "a.log")])
            .stdin(fs::File::open(&log).unwrap())
            .output()
            .unwrap();
        assert_eq!(status(&stdin), 2);
        assert_eq!(scratch.read("a.log"), before);
        assert_eq!(scratch.names(), ["a.log", "hard", "soft"]);
    }
}

#[test]
fn one_target_takes_one_output() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.form("json", "x"), scratch.form("html", "./x"));
    let output = run(&["--format", &one, "--format", &two, FAILED]);
    assert_eq!(status(&output), 2);
    assert!(said(&output).contains("two outputs go to"), "{}", said(&output));
    assert!(scratch.names().is_empty());
    let file = scratch.at("x");
    let map = run(&["--format", &one, "--redact-map", file.to_str().unwrap(), FAILED]);
    assert_eq!(status(&map), 2);
    let out = fs::File::create(scratch.at("out")).unwrap();
    let both = coroner(&["--format", "json", "--format", &scratch.form("html", "out"), FAILED])
        .stdout(out)
        .output()
        .unwrap();
    assert_eq!(status(&both), 2, "standard output goes there too");
}

#[test]
fn a_scan_leaves_its_own_output_out() {
    let scratch = Scratch::new();
    scratch.log("a.log", FAILED);
    let scan = |args: &[&str]| {
        let output = coroner(&[&["scan", "--output", "out"], args, &["."]].concat())
            .current_dir(scratch.dir.path())
            .output()
            .unwrap();
        assert_eq!(status(&output), 0, "{}", said(&output));
        scratch.read("out")
    };
    for _ in 0..3 {
        assert_eq!(scan(&["--resume"]).lines().count(), 1);
    }
    fs::write(scratch.at("out.partial.7"), "{\"schema\":\"coroner.report/1\"").unwrap();
    assert_eq!(scan(&["--resume"]).lines().count(), 1);
    for format in ["csv", "csv", "markdown", "markdown", "html", "html"] {
        scan(&["--format", format]);
    }
    assert_eq!(scratch.names(), ["a.log", "out"]);
}

#[test]
fn no_output_is_longer_than_it_was_allowed() {
    let scratch = Scratch::new();
    for max in [
        "1", "79", "80", "100", "3000", "slack", "jira", "32767", "github", "65536",
    ] {
        let number: usize = match max {
            "slack" => 3000,
            "jira" => 32_767,
            "github" => 65_536,
            number => number.parse().unwrap(),
        };
        for format in FORMATS {
            let form = scratch.form(format, "out");
            let output = run(&["--max-chars", max, "--format", &form, "--format", "oneline", FAILED]);
            match status(&output) {
                1 => assert!(scratch.read("out").chars().count() <= number, "{format} {max}"),
                2 => {
                    assert!(
                        said(&output).contains(&format!("--max-chars {number}: the ")),
                        "{}",
                        said(&output)
                    );
                    assert!(!scratch.at("out").exists(), "{format} {max}");
                    if number >= 80 {
                        assert!(matches!(*format, "json" | "html"), "{format} {max}");
                        // The minimum that is named is enough, and the other output stands.
                        let told = said(&output);
                        let least = told.split("report takes ").nth(1).unwrap().split(' ').next().unwrap();
                        let output = run(&["--max-chars", least, "--format", &form, FAILED]);
                        assert_eq!(status(&output), 1, "{format} {least}: {}", said(&output));
                        assert!(scratch.read("out").chars().count() <= least.parse().unwrap());
                        assert!(text(&run(&["--max-chars", max, "--format", "oneline", FAILED]).stdout).len() > 40);
                    }
                }
                other => panic!("{format} {max}: {other}"),
            }
            let _ = fs::remove_file(scratch.at("out"));
        }
    }
    assert_eq!(status(&run(&["--max-chars", "0", FAILED])), 2);
}

#[test]
fn several_reports_share_what_is_allowed() {
    let scratch = Scratch::new();
    let log = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(FAILED)).unwrap();
    fs::write(scratch.at("twice.log"), log.repeat(2)).unwrap();
    let file = scratch.at("twice.log");
    let attempts = run(&["--attempt", "all", "--format", "json", file.to_str().unwrap()]);
    assert!(text(&attempts.stdout).lines().count() > 1, "{}", text(&attempts.stdout));
    for format in FORMATS {
        for max in [1000, 9000, 40_000] {
            let output = run(&[
                "--attempt",
                "all",
                "--max-chars",
                &max.to_string(),
                "--format",
                format,
                file.to_str().unwrap(),
            ]);
            let length = text(&output.stdout).chars().count();
            assert!(length <= max, "{format} {max}: {length}");
            assert_eq!(status(&output), if length == 0 { 2 } else { 1 }, "{format} {max}");
        }
    }
}
