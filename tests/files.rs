//! Inputs that are no plain, whole, readable files: a clear message, the results of the others, the right status.

#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;

const FAILED: &str = "corpus/flagship-c-graph-capture-oom.log";

fn coroner(dir: &Path, args: &[&OsStr]) -> Output {
    let mut command = Command::cargo_bin("coroner").unwrap();
    command
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn run(dir: &Path, args: &[&str]) -> Output {
    coroner(dir, &args.iter().map(OsStr::new).collect::<Vec<_>>())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn records(output: &Output) -> Vec<Value> {
    text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn failed_log() -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(FAILED)).unwrap()
}

/// A folder with one good log, and everything that is no file.
fn odd() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("ok.log"), failed_log()).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    drop(std::os::unix::net::UnixListener::bind(at("socket")).unwrap());
    symlink("circle", at("circle")).unwrap();
    symlink(".", at("up")).unwrap();
    symlink("nowhere", at("broken.log")).unwrap();
    #[cfg(target_os = "linux")]
    symlink("/proc", at("kernel")).unwrap();
    dir
}

#[test]
fn pipes_sockets_and_circles_cost_no_other_input_its_result() {
    let dir = odd();
    let output = run(dir.path(), &["--format", "json", "."]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (status(&output), report["cause"]["id"].as_str()),
        (1, Some("gpu-oom.graph-capture"))
    );
    assert_eq!(report["examined"]["files"], 1);
    let skipped = report["examined"]["skipped"].to_string();
    for told in ["its links lead in a circle", "no such file", "2 special"] {
        assert!(skipped.contains(told), "{told}: {skipped}");
    }
    assert_eq!(status(&run(dir.path(), &["--strict", "."])), 2);

    let output = run(dir.path(), &["scan", "."]);
    assert_eq!(status(&output), 4);
    let told: Vec<(String, String)> = records(&output)
        .iter()
        .map(|r| {
            let text = r["error"]["text"].as_str().or(r["outcome"].as_str());
            (r["source"].as_str().unwrap().to_owned(), text.unwrap().to_owned())
        })
        .collect();
    let told: Vec<(&str, &str)> = told.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(
        told,
        [
            ("./broken.log", "there is no such file or folder"),
            ("./circle", "its links lead in a circle"),
            ("./ok.log", "failed"),
            ("./pipe", "it is a pipe, socket or device, not a file"),
            ("./socket", "it is a pipe, socket or device, not a file"),
        ]
    );
}

#[test]
fn what_is_no_file_is_named_for_what_it_is() {
    let dir = odd();
    for (name, told) in [
        ("pipe", "a named pipe"),
        ("socket", "a socket"),
        ("circle", "its links lead in a circle"),
        ("broken.log", "there is no such file"),
        ("/dev/null", "a device"),
    ] {
        let output = run(dir.path(), &[name]);
        assert_eq!(status(&output), 2, "{name}");
        let said = text(&output.stderr);
        assert!(said.contains(told), "{name}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernels_folders_are_not_walked() {
    let dir = odd();
    for path in ["/proc/self", "/sys", "kernel/self"] {
        for args in [&[path][..], &["scan", path]] {
            let output = run(dir.path(), args);
            assert_eq!(status(&output), 2, "{args:?}");
            assert!(
                text(&output.stderr).contains("a folder of the kernel"),
                "{args:?}: {}",
                text(&output.stderr)
            );
        }
    }
    // A file of it that is named is read.
    assert_eq!(status(&run(dir.path(), &["/proc/version"])), 0);
}

#[test]
fn names_of_any_bytes_are_read_and_shown_on_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let names: [&[u8]; 3] = [b"bad\xff.log", b"new\nline.log", b"esc\x1b[31m.log"];
    for name in names {
        fs::write(dir.path().join(OsStr::from_bytes(name)), failed_log()).unwrap();
    }
    for name in names {
        let name = OsStr::from_bytes(name);
        let output = coroner(dir.path(), &[OsStr::new("--format"), OsStr::new("oneline"), name]);
        assert_eq!(status(&output), 1, "{name:?}");
        let line = text(&output.stdout);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.contains('\u{fffd}') && !line.contains('\u{1b}'), "{line}");
        let target = PathBuf::from(OsStr::from_bytes(b"out\xff"));
        let form = [b"json=".as_slice(), target.as_os_str().as_bytes()].concat();
        let output = coroner(dir.path(), &[OsStr::new("--format"), OsStr::from_bytes(&form), name]);
        assert!(status(&output) == 1 || status(&output) == 2, "{name:?}");
    }
    let got = records(&run(dir.path(), &["scan", "--glob", "*.log", "."]));
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|r| r["outcome"] == "failed"));
}

/// Whether the tests run as a user whom no mode stops.
fn privileged(dir: &Path) -> bool {
    let probe = dir.join("probe");
    fs::write(&probe, "").unwrap();
    fs::set_permissions(&probe, fs::Permissions::from_mode(0o000)).unwrap();
    let can = fs::File::open(&probe).is_ok();
    fs::remove_file(&probe).unwrap();
    can
}

#[test]
fn what_may_not_be_read_is_told_and_costs_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    if privileged(dir.path()) {
        eprintln!("skipped: this user may read everything");
        return;
    }
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("logs/shut/below")).unwrap();
    fs::write(at("logs/ok.log"), failed_log()).unwrap();
    fs::write(at("logs/no.log"), failed_log()).unwrap();
    fs::write(at("report.json"), "good").unwrap();
    for (name, mode) in [("logs/no.log", 0o000), ("logs/shut", 0o000), ("report.json", 0o400)] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let output = run(
        dir.path(),
        &["logs", "--format", "json", "--format", "json=report.json"],
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["cause"]["id"], "gpu-oom.graph-capture");
    let said = text(&output.stderr);
    assert!(said.contains("logs/no.log: this user may not read it"), "{said}");
    assert!(said.contains("logs/shut: this user may not read it"), "{said}");
    assert_eq!(
        (status(&output), fs::read_to_string(at("report.json")).unwrap().as_str()),
        (2, "good")
    );
    assert_eq!(status(&run(dir.path(), &["logs"])), 1);
    let output = run(dir.path(), &["scan", "logs"]);
    assert_eq!(status(&output), 4);
    assert_eq!(records(&output).len(), 3);
    fs::set_permissions(at("logs/shut"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_log_that_is_written_all_the_time_has_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("growing.log");
    fs::write(&file, failed_log()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write;
            let mut log = fs::File::options().append(true).open(&file).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                log.write_all(b"INFO still here\n").unwrap();
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        // A short log may be read in the time between two lines.
        let grew = "it grew while it was read";
        let output = (0..50)
            .map(|_| run(dir.path(), &["growing.log", "--format", "json"]))
            .find(|output| String::from_utf8_lossy(&output.stdout).contains(grew));
        let scanned = run(dir.path(), &["scan", "."]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let report: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        assert_eq!(report["cause"]["id"], "gpu-oom.graph-capture");
        assert!(report["findings"].to_string().contains(grew), "{}", report["findings"]);
        assert_eq!(records(&scanned).len(), 1);
    });
}

/// A ZIP archive of one member, which is encrypted.
fn encrypted() -> Vec<u8> {
    let both = |head: &[u8]| {
        let mut bytes = head.to_vec();
        // Version, flags, method, time, date, checksum, both sizes, lengths of the name and of what is added.
        for field in [20u16, 1, 0, 0, 0, 0, 0, 4, 0, 4, 0, 5, 0] {
            bytes.extend(field.to_le_bytes());
        }
        bytes
    };
    let mut zip = both(b"PK\x03\x04");
    zip.extend(b"a.logabcd");
    let directory = u32::try_from(zip.len()).unwrap();
    zip.extend(both(b"PK\x01\x02\x14\0"));
    zip.extend([0; 14]);
    zip.extend(b"a.log");
    let size = u32::try_from(zip.len()).unwrap() - directory;
    zip.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    zip.extend(size.to_le_bytes());
    zip.extend(directory.to_le_bytes());
    zip.extend([0; 2]);
    zip
}

#[test]
fn a_file_of_a_launch_that_is_not_read_is_named_and_counts_for_the_status() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("run")).unwrap();
    fs::write(at("run/rank0.log"), failed_log()).unwrap();
    // A picture beside the logs is no loss.
    fs::write(at("run/loss.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    let scan = |more: &[&str]| run(dir.path(), &[&["scan", "run"], more].concat());
    assert_eq!(status(&scan(&[])), 0);
    fs::write(at("run/rank1.zip"), encrypted()).unwrap();
    let output = scan(&["--summary"]);
    assert_eq!(status(&output), 4);
    let record = &records(&output)[0];
    assert_eq!(record["outcome"], "failed");
    assert_eq!(
        record["scan"]["unread"][0]["input"], "run/rank1.zip!/a.log",
        "{}",
        record["scan"]
    );
    assert_eq!(record["scan"]["unread"].as_array().unwrap().len(), 1);
    let said = text(&output.stderr);
    assert!(said.contains("coroner: run/rank1.zip!/a.log: "), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("1 file of the launches could not be read, or not to the end."),
        "{said}"
    );
    assert!(said.contains("Inputs that could not be read"), "{said}");
    // Its record says so too when it is taken over.
    for _ in 0..2 {
        assert_eq!(status(&scan(&["--resume", "--output", "out.ndjson"])), 4);
    }
}

#[test]
fn a_folder_has_one_name_however_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("run")).unwrap();
    fs::write(dir.path().join("run/rank0.log"), failed_log()).unwrap();
    for root in ["run", "run/", "run//", "run/."] {
        assert_eq!(records(&run(dir.path(), &["scan", root]))[0]["source"], "run", "{root}");
    }
}

/// What is cut off was not read to its end: it has a verdict on what there is, and is told as unread.
#[test]
fn a_compressed_log_that_is_cut_off_is_not_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let packed = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let whole = packed(&failed_log());
    fs::create_dir(dir.path().join("cut")).unwrap();
    fs::write(dir.path().join("cut/a.log.gz"), &whole[..whole.len() / 2]).unwrap();
    let output = run(dir.path(), &["--format", "json", "--strict", "cut/a.log.gz"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let skipped = report["examined"]["skipped"].as_array().unwrap();
    assert_eq!((status(&output), skipped.len()), (2, 1));
    let why = skipped[0]["why"].as_str().unwrap();
    assert!(
        why.contains("cut off") && why.ends_with("what was read before it is examined"),
        "{why}"
    );
    assert!(
        text(&output.stderr).contains("cut/a.log.gz"),
        "{}",
        text(&output.stderr)
    );
    let output = run(dir.path(), &["scan", "cut"]);
    assert_eq!(status(&output), 4);
    assert_eq!(records(&output)[0]["scan"]["unread"].as_array().unwrap().len(), 1);

    // Nothing of it is text.
    let often = (0..3).fold(whole, |inner, _| packed(&inner));
    fs::write(dir.path().join("often.gz"), &often).unwrap();
    let output = run(dir.path(), &["often.gz"]);
    assert_eq!(status(&output), 2);
    assert!(
        text(&output.stderr).contains("more than 3 times"),
        "{}",
        text(&output.stderr)
    );
}

/// A quiet day with something unreadable in it is no day on which nothing could be read.
#[test]
fn what_is_too_old_counts_as_come_upon() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("old.log");
    fs::write(&log, failed_log()).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 86_400);
    fs::File::options()
        .write(true)
        .open(&log)
        .unwrap()
        .set_modified(old)
        .unwrap();
    assert_eq!(status(&run(dir.path(), &["scan", "--since", "1d", "."])), 0);
    symlink("nowhere", dir.path().join("broken.log")).unwrap();
    assert_eq!(status(&run(dir.path(), &["scan", "--since", "1d", "."])), 4);
    fs::remove_file(&log).unwrap();
    assert_eq!(status(&run(dir.path(), &["scan", "--since", "1d", "."])), 2);
}

/// The streams of one program make the files beside them one launch, and none of the folders below; those of several
/// programs are several.
#[test]
fn the_streams_of_a_program_take_no_other_folder_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let log = failed_log();
    for name in [
        "t/job.out",
        "t/job.err",
        "t/k/one.log",
        "t/k/two.log",
        "t/s/1.out",
        "t/s/1.err",
        "t/s/2.out",
        "t/s/2.err",
    ] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &log).unwrap();
    }
    let sources = |output: &Output| -> Vec<String> {
        let names = records(output)
            .into_iter()
            .map(|r| r["source"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let expected = [
        "t",
        "t/k/one.log",
        "t/k/two.log",
        "t/s/1.err",
        "t/s/1.out",
        "t/s/2.err",
        "t/s/2.out",
    ];
    assert_eq!(sources(&run(dir.path(), &["scan", "t"])), expected);
    let tar = Command::new("tar")
        .args(["cf", "t.tar", "t"])
        .current_dir(dir.path())
        .status();
    assert!(tar.unwrap().success());
    let members = expected.map(|name| format!("t.tar!/{name}"));
    assert_eq!(sources(&run(dir.path(), &["scan", "t.tar"])), members);
}
