//! `coroner scan` as a whole: what is one incident, what becomes of bad inputs, the order and form of what it prints.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;

const FAILED: &str = "corpus/flagship-c-graph-capture-oom.log";
const HEALTHY: &str = "corpus/healthy-8b-graphs.log";
const SESSION: &str = "corpus/flagship-b-ray260-monitor.d";

fn scan(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("coroner").unwrap();
    let output = command
        .arg("scan")
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output();
    output.unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn records(bytes: &[u8]) -> Vec<Value> {
    let lines = text(bytes);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sources(records: &[Value]) -> Vec<&str> {
    records.iter().map(|r| r["source"].as_str().unwrap()).collect()
}

fn corpus(path: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn put(dir: &Path, name: &str, bytes: &[u8]) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = rawzip::ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in members {
        let file = out
            .new_file(*name)
            .compression_method(rawzip::CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().unwrap();
        let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::fast());
        let mut writer = config.wrap(encoder);
        writer.write_all(bytes).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    out.finish().unwrap()
}

/// The files of a folder with their names below another one.
fn files(folder: &Path, below: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{below}/{}", path.file_name().unwrap().to_str().unwrap());
        match path.is_dir() {
            true => found.extend(files(&path, &name)),
            false => found.push((name, fs::read(path).unwrap())),
        }
    }
    found.sort();
    found
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Good logs of every kind, and bad inputs of every kind.
fn archive() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(at, "a/failed.log", &corpus(FAILED));
    put(at, "a/healthy.log.gz", &gzip(&corpus(HEALTHY)));
    put(at, "b/core", b"\x7fELF\x02\x01\x01\x00\x00\x00\x00");
    put(
        at,
        "b/damaged.log.gz",
        b"\x1f\x8b\x08\x00garbage that is no deflate stream at all",
    );
    put(at, "b/empty.log", b"");
    put(
        at,
        "b/logs.tar",
        &tar(&[("x/one.log", &corpus(FAILED)), ("x/two.log", &corpus(HEALTHY))]),
    );
    put(
        at,
        "b/noise.bin",
        &(0..4096u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect::<Vec<_>>(),
    );
    copy_folder(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(SESSION),
        &at.join("c/launch-7"),
    );
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", at.join("d-gone.log")).unwrap();
    dir
}

#[test]
fn every_input_gets_a_report_or_an_error_and_none_stops_the_scan() {
    let dir = archive();
    let output = scan(dir.path(), &["a", "b", "c", "d-gone.log"]);
    let got = records(&output.stdout);
    let told: Vec<(&str, &str)> = got
        .iter()
        .map(|r| {
            (
                r["source"].as_str().unwrap(),
                r["outcome"].as_str().or(r["error"]["id"].as_str()).unwrap(),
            )
        })
        .collect();
    let want = [
        ("a/failed.log", "failed"),
        ("a/healthy.log.gz", "stopped"),
        ("b/core", "input.unreadable"),
        ("b/damaged.log.gz", "input.unreadable"),
        ("b/empty.log", "no-launch"),
        ("b/logs.tar!/x/one.log", "failed"),
        ("b/logs.tar!/x/two.log", "stopped"),
        ("b/noise.bin", "input.unreadable"),
        ("c/launch-7", "failed"),
        ("d-gone.log", "input.unreadable"),
    ];
    assert_eq!(told, want);
    assert_eq!(status(&output), 4);
    let schemas: Vec<&str> = got.iter().map(|r| r["schema"].as_str().unwrap()).collect();
    assert_eq!(schemas.iter().filter(|s| **s == "coroner.error/1").count(), 4);
    assert_eq!(schemas.iter().filter(|s| **s == "coroner.report/1").count(), 6);
    assert!(
        got.iter()
            .all(|r| r["error"].is_null() || !r["error"]["text"].as_str().unwrap().is_empty())
    );
    assert_eq!(got[8]["cause"]["id"], "host-mem.ray-monitor");
    assert!(got[8]["examined"]["files"].as_u64().unwrap() > 1);
    assert_eq!(text(&output.stderr).lines().count(), 4);
}

#[test]
fn members_of_archives_are_launches_and_what_is_in_them_cannot_stop_the_scan() {
    let dir = tempfile::tempdir().unwrap();
    let (failed, healthy) = (corpus(FAILED), corpus(HEALTHY));
    let inner = zip(&[("x.log", &failed)]);
    let session = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(SESSION), "c/launch-7");
    let mut members: Vec<(&str, &[u8])> = vec![
        ("a/one.log", &failed),
        ("a/two.log", &healthy),
        ("b/inner.zip", &inner),
        ("b/core", b"\x7fELF\x02\x01\x01"),
    ];
    members.extend(session.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    put(dir.path(), "1.zip", &zip(&members));
    put(dir.path(), "2.tar.gz", &gzip(&tar(&members)));
    put(dir.path(), "3-cut.zip", &zip(&members)[..2000]);
    put(dir.path(), "4.log", &failed);
    let output = scan(dir.path(), &["."]);
    let told: Vec<(String, String)> = records(&output.stdout)
        .iter()
        .map(|r| {
            let what = [&r["cause"]["id"], &r["outcome"], &r["error"]["text"]];
            let what = what.iter().find_map(|v| v.as_str()).unwrap();
            (r["source"].as_str().unwrap().to_owned(), what.to_owned())
        })
        .collect();
    let of = |archive: &str| -> Vec<(String, String)> {
        let inner = "an archive inside an archive is not opened: unpack it first";
        [
            ("b/inner.zip", inner),
            ("a/one.log", "gpu-oom.graph-capture"),
            ("a/two.log", "stopped"),
            ("c/launch-7", "host-mem.ray-monitor"),
        ]
        .map(|(name, what)| (format!("./{archive}!/{name}"), what.to_owned()))
        .to_vec()
    };
    let cut = "the archive has no table of contents at its end: it is cut off or damaged";
    let want = [
        of("1.zip"),
        of("2.tar.gz"),
        vec![
            ("./3-cut.zip".to_owned(), cut.to_owned()),
            ("./4.log".to_owned(), "gpu-oom.graph-capture".to_owned()),
        ],
    ]
    .concat();
    assert_eq!(told, want);
    assert_eq!(status(&output), 4);
}

#[test]
fn a_scan_says_of_a_log_what_an_examination_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = scan(root, &[FAILED]);
    let mut record = records(&output.stdout).remove(0);
    record.as_object_mut().unwrap().remove("scan").unwrap();
    let mut command = Command::cargo_bin("coroner").unwrap();
    let alone = command
        .args(["--format", "json", FAILED])
        .current_dir(root)
        .output()
        .unwrap();
    assert_eq!(record, serde_json::from_slice::<Value>(&alone.stdout).unwrap());
}

#[test]
fn the_status_tells_what_was_read_and_what_was_found() {
    let dir = archive();
    assert_eq!(status(&scan(dir.path(), &["a"])), 0);
    assert_eq!(status(&scan(dir.path(), &["--fail-on", "gpu-oom", "a"])), 1);
    assert_eq!(status(&scan(dir.path(), &["--fail-on", "nccl,degraded", "a"])), 0);
    assert_eq!(status(&scan(dir.path(), &["b/core"])), 2);
    assert_eq!(status(&scan(dir.path(), &["no-such-folder"])), 2);
    let stdin = scan(dir.path(), &["-"]);
    assert!(status(&stdin) == 2 && text(&stdin.stderr).contains("use `coroner -`"));
    assert_eq!(status(&scan(dir.path(), &["--fail-on", "nonsense", "a"])), 2);
    assert_eq!(status(&scan(dir.path(), &["--incident", "no-group", "a"])), 2);
    assert_eq!(status(&scan(dir.path(), &["--glob", "{", "a"])), 2);
}

#[test]
fn no_record_shows_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    let token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567";
    put(
        dir.path(),
        "a.log",
        format!("ValueError: the token {token} is refused\n").as_bytes(),
    );
    for format in ["json", "csv", "summary", "markdown", "html"] {
        let output = text(&scan(dir.path(), &["--format", format, "."]).stdout);
        assert!(
            output.contains("secret-") && !output.contains(token),
            "{format}: {output}"
        );
    }
}

#[test]
fn what_is_old_is_left_out_by_file_time_and_by_log_time() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "zoned.log", b"2024-03-01T10:00:00.000000000Z stderr F torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n2024-03-01T10:00:01.000000000Z stderr F more\n");
    let all = scan(dir.path(), &["."]);
    assert_eq!(records(&all.stdout).len(), 1);
    for since in ["2024-04-01", "1h"] {
        let output = scan(dir.path(), &["--since", since, "."]);
        assert_eq!((text(&output.stdout).as_str(), status(&output)), ("", 0), "{since}");
    }
    let output = scan(dir.path(), &["--since", "2999-01-01", "."]);
    assert_eq!((text(&output.stdout).as_str(), status(&output)), ("", 0));
    assert_eq!(
        records(&scan(dir.path(), &["--since", "2024-02-01", "."]).stdout).len(),
        1
    );
}

#[test]
fn incidents_are_what_the_caller_says() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["job-1/head.log", "job-1/worker.log", "job-2/head.log"] {
        put(dir.path(), name, &corpus(FAILED));
    }
    let by = |rule: &str| {
        let got = records(&scan(dir.path(), &["--incident", rule, "."]).stdout);
        let files = got
            .iter()
            .map(|r| r["examined"]["files"].as_u64().unwrap())
            .collect::<Vec<_>>();
        (sources(&got).into_iter().map(String::from).collect::<Vec<_>>(), files)
    };
    assert_eq!(by("dir"), (vec!["./job-1".into(), "./job-2".into()], vec![2, 1]));
    assert_eq!(by(r"job-(\d+)/"), (vec!["1".into(), "2".into()], vec![2, 1]));
    assert_eq!(by("file").1, [1, 1, 1]);
}

#[test]
fn many_logs_come_in_order_of_path_and_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut want = Vec::new();
    for n in 0..1500 {
        let name = format!("{:02}/{n:04}.log", n / 100);
        let error = match n % 3 {
            0 => "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
            1 => "ValueError: something new\n",
            _ => "INFO nothing\n",
        };
        put(dir.path(), &name, error.as_bytes());
        want.push(name);
    }
    let ordered = records(&scan(dir.path(), &["--jobs", "4", "."]).stdout);
    let names: Vec<String> = sources(&ordered)
        .iter()
        .map(|s| s.trim_start_matches("./").to_owned())
        .collect();
    assert_eq!(names, want);
    let loose = records(&scan(dir.path(), &["--jobs", "4", "--unordered", "."]).stdout);
    let mut names: Vec<&str> = sources(&loose).iter().map(|s| s.trim_start_matches("./")).collect();
    names.sort_unstable();
    assert_eq!(names, want);
}

#[test]
fn a_table_has_a_row_for_each_record_and_no_formula() {
    let dir = archive();
    put(dir.path(), "a/evil.log", b"ValueError: =cmd|' /C calc'!A0\n");
    let output = scan(dir.path(), &["--format", "csv", "--label", "^([a-z])/", "a", "b"]);
    let table = text(&output.stdout);
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 1 + 9);
    assert!(rows[0].starts_with("source,outcome,cause,"));
    let failed = rows.iter().find(|r| r.starts_with("a/failed.log,")).unwrap();
    assert!(
        failed.contains("failed,gpu-oom.graph-capture,") && failed.contains(",a,1,"),
        "{failed}"
    );
    assert!(
        rows.iter()
            .all(|row| !row.split(',').any(|cell| cell.starts_with(['=', '@', '+'])))
    );
}

#[test]
fn parquet_is_a_table_or_what_the_program_is_built_without() {
    let dir = archive();
    let output = scan(dir.path(), &["--format", "parquet", "a", "b"]);
    if cfg!(feature = "parquet") {
        assert!(output.stdout.starts_with(b"PAR1") && output.stdout.ends_with(b"PAR1"));
        assert_eq!(status(&output), 4);
    } else {
        assert!(output.stdout.is_empty() && text(&output.stderr).contains("--features parquet"));
        assert_eq!(status(&output), 2);
    }
}

/// Names in a folder, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn a_resumed_scan_examines_only_what_is_new_or_changed() {
    let dir = archive();
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("records.ndjson");
    let args = ["--resume", "--output", file.to_str().unwrap(), "a", "b"];
    assert_eq!(status(&scan(dir.path(), &args)), 4);
    assert_eq!(names(out.path()), ["records.ndjson"]);
    let first = fs::read_to_string(&file).unwrap();

    // A record that is taken over keeps what only the earlier scan can have put there.
    let marked = first.replace("\"headline\":\"", "\"headline\":\"TAKEN OVER ");
    fs::write(&file, &marked).unwrap();
    put(dir.path(), "a/failed.log", &corpus("corpus/gpu-oom-context.log"));
    put(dir.path(), "a/new.log", &corpus(HEALTHY));
    assert_eq!(status(&scan(dir.path(), &args)), 4);
    let second = records(&fs::read(&file).unwrap());
    let fresh: Vec<&str> = second
        .iter()
        .filter(|r| r["headline"].as_str().is_some_and(|h| !h.starts_with("TAKEN OVER")))
        .map(|r| r["source"].as_str().unwrap())
        .collect();
    assert_eq!(fresh, ["a/failed.log", "a/new.log"]);
    assert_eq!(second.len(), 9);

    // Other rules are another basis.
    scan(dir.path(), &[&args[..], &["--rules", "none"]].concat());
    assert!(!fs::read_to_string(&file).unwrap().contains("TAKEN OVER"));
    assert_eq!(status(&scan(dir.path(), &["--resume", "a"])), 2);
    assert_eq!(
        status(&scan(dir.path(), &[&args[..], &["--format", "csv"]].concat())),
        2
    );
    assert_eq!(status(&scan(dir.path(), &["--output", "no/such/folder/x", "a"])), 2);
}

/// Starts a scan of `count` logs that is long enough to be interrupted, and waits until it has written something.
#[cfg(unix)]
fn interrupted(dir: &Path, file: &Path, signal: &str) -> Option<i32> {
    let mut child = Command::cargo_bin("coroner")
        .unwrap()
        .args([
            "scan",
            "--jobs",
            "2",
            "--resume",
            "--output",
            file.to_str().unwrap(),
            ".",
        ])
        .current_dir(dir)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folder = file.parent().unwrap();
    let written = || {
        let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap());
        let partial = |e: &fs::DirEntry| e.file_name().to_string_lossy().contains(".partial.");
        entries
            .filter(partial)
            .map(|e| e.metadata().map_or(0, |m| m.len()))
            .max()
            .unwrap_or(0)
    };
    let before = written();
    while written() <= before + 20_000 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let sent = Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    child.wait().unwrap().code()
}

#[cfg(unix)]
#[test]
fn an_interrupted_scan_loses_nothing_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..200 {
        put(dir.path(), &format!("{n:03}.log"), &corpus(FAILED));
    }
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("records.ndjson");
    assert_eq!(interrupted(dir.path(), &file, "INT"), Some(130));
    let left = fs::read(out.path().join("records.ndjson.partial.1")).unwrap();
    assert!(left.ends_with(b"\n"));
    let finished = records(&left).len();
    assert!((1..200).contains(&finished), "{finished}");
    assert_eq!(interrupted(dir.path(), &file, "KILL"), None);
    assert!(!file.exists());

    assert_eq!(
        status(&scan(
            dir.path(),
            &["--resume", "--output", file.to_str().unwrap(), "."]
        )),
        0
    );
    let all = records(&fs::read(&file).unwrap());
    let want: Vec<String> = (0..200).map(|n| format!("./{n:03}.log")).collect();
    assert_eq!(sources(&all), want);
    assert_eq!(names(out.path()), ["records.ndjson"]);
}

#[test]
fn a_summary_agrees_with_the_records_and_goes_where_it_is_wanted() {
    let dir = archive();
    let paths = ["a", "b", "c"];
    let both = scan(dir.path(), &[&["--summary"], &paths[..]].concat());
    assert_eq!(records(&both.stdout).len(), 9);
    let told = text(&both.stderr);
    assert!(
        told.contains("5 launches found in 6 inputs") && told.contains("3 inputs could not be read."),
        "{told}"
    );

    let alone = scan(
        dir.path(),
        &[&["--quiet", "--format", "summary", "--label", "^(.)/"], &paths[..]].concat(),
    );
    let words: Vec<String> = text(&alone.stdout)
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in ["failed 3 50 %", "stopped 2 33 %", "no-launch 1 17 %"] {
        assert!(words.iter().any(|w| w == line), "{line}: {words:?}");
    }
    assert!(words.iter().any(|w| w.starts_with("gpu-oom.graph-capture 2 67 %")));
    assert!(words.iter().any(|w| w.starts_with("b 2 1 50 %")));
    assert_eq!((text(&alone.stderr).as_str(), status(&alone)), ("", 4));

    let out = tempfile::tempdir().unwrap();
    let page = out.path().join("page.html");
    let html = scan(
        dir.path(),
        &[&["--format", "html", "-o", page.to_str().unwrap()], &paths[..]].concat(),
    );
    assert!(html.stdout.is_empty());
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg") && page.ends_with("</html>\n"));
    let markdown = scan(dir.path(), &[&["--format", "markdown"], &paths[..]].concat());
    assert!(text(&markdown.stdout).contains("| failed | 3 | 50 % |"));
}

#[test]
fn a_redacted_scan_names_nobody_and_gives_one_name_to_one_host() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home/alice/logs");
    for name in ["a.log", "b.log"] {
        put(&home, name, &corpus(FAILED));
    }
    put(&home, "ip-10-1-2-3.internal/core", b"\x7fELF\x02\x01\x01\x00");
    let map = dir.path().join("map.json");
    let (path, map_path) = (home.to_str().unwrap(), map.to_str().unwrap());
    let redacted = |args: &[&str]| scan(dir.path(), &[&["--redact", "identity"], args, &[path]].concat());
    for format in ["json", "csv", "summary", "markdown", "html"] {
        let output = redacted(&["--format", format, "--summary"]);
        let told = text(&output.stdout) + &text(&output.stderr);
        for name in ["alice", "gpu-07", "10-1-2-3"] {
            assert!(!told.contains(name), "{format}: {name} in {told}");
        }
    }
    let nodes = |output: &Output| -> Vec<String> {
        let got = records(&output.stdout);
        assert_eq!(got.iter().filter(|r| r["schema"] == "coroner.error/1").count(), 1);
        let failed = got.iter().filter(|r| r["outcome"] == "failed");
        failed.map(|r| r["root"]["node"].as_str().unwrap().to_owned()).collect()
    };
    let loose = nodes(&redacted(&[]));
    assert!(
        loose.len() == 2 && loose[0] == loose[1] && loose[0].starts_with("node-"),
        "{loose:?}"
    );
    let keyed = nodes(&redacted(&["--redact-key", "k", "--redact-map", map_path]));
    assert_eq!(keyed, nodes(&redacted(&["--redact-key", "k"])));
    assert_ne!(keyed, loose);
    let known = fs::read_to_string(&map).unwrap();
    assert!(known.contains("gpu-07") && known.contains(&keyed[0]), "{known}");
    // What the map names so keeps that name, with whatever key.
    assert_eq!(
        nodes(&redacted(&["--redact-key", "other", "--redact-map", map_path])),
        keyed
    );
    let resumed = redacted(&["--resume", "--output", dir.path().join("out").to_str().unwrap()]);
    assert_eq!(status(&resumed), 2);
    assert!(text(&resumed.stderr).contains("--redact"));
}
