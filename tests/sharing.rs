//! What leaves the machine: the program's reports are free of secrets in every format, and of names where asked.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::CommandCargoExt;
use common::FORMATS;
use serde_json::Value;

const FAILED: &str = "corpus/flagship-c-graph-capture-oom.log";

/// Lines as launches print them, with what must not leave the machine.
const SPILLED: &str = "\
+ vllm serve Acme/Secret-7B --api-key plainwordkey --host 0.0.0.0
HF_TOKEN=hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678
environ({'AWS_SECRET_ACCESS_KEY': 'wJalrXUtnFEMI/K7MDENG/bPxRfiCY', 'HOME': '/home/alice'})
Cloning https://bob:hunter2@git.corp.internal/ml/launch.git
Authorization: Bearer opaque.token-0123456789
";
const SECRETS: &[&str] = &["plainwordkey", "hf_QwErTy", "wJalrXUtn", "hunter2", "opaque.token"];

fn coroner(args: &[&str]) -> Output {
    Command::cargo_bin("coroner")
        .unwrap()
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The failed launch with the spilled lines in front of it, and again right before and behind its root.
fn spilled(dir: &Path) -> String {
    let log = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(FAILED)).unwrap();
    let out: String = log
        .split_inclusive('\n')
        .map(|line| match line.contains("OutOfMemoryError") {
            true => format!("{SPILLED}{}; HF_TOKEN=hf_QwErTyUiOpAsDfGh\n{SPILLED}", line.trim_end()),
            false => line.to_owned(),
        })
        .collect();
    let file = dir.join("launch.log");
    fs::write(&file, format!("{SPILLED}{out}")).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn no_secret_survives_in_any_format_without_being_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let log = spilled(dir.path());
    for format in FORMATS {
        let page = text(&coroner(&["--format", format, &log]).stdout);
        for secret in SECRETS {
            assert!(!page.contains(secret), "{secret} in {format}:\n{page}");
        }
        let head: String = page.lines().take(12).collect();
        assert!(head.contains("secrets"), "{format} does not say its level: {head}");
    }
}

#[test]
fn a_report_without_identity_still_explains() {
    let dir = tempfile::tempdir().unwrap();
    let log = spilled(dir.path());
    let output = coroner(&["--redact", "identity", "--format", "json", &log]);
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(report["redaction"]["level"], "identity");
    assert_eq!(report["cause"]["id"], "gpu-oom.graph-capture");
    assert!(report["remedies"].as_array().is_some_and(|r| !r.is_empty()));
    for name in ["alice", "corp.internal"] {
        assert!(!page.contains(name), "{name}");
    }
}

#[test]
fn a_map_keeps_the_names_and_a_key_makes_them_last() {
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("map.json");
    let map_name = map.to_str().unwrap();
    let log = dir.path().join("launch.log");
    fs::write(
        &log,
        "(Worker pid=7, ip=10.1.2.3) ERROR torch.OutOfMemoryError: CUDA out of memory, HF_TOKEN=hunter2\n",
    )
    .unwrap();
    let log = log.to_str().unwrap();
    let ask = |more: &[&str]| {
        let mut args = vec!["--redact", "identity", "--format", "json", log];
        args.extend(more);
        let output = coroner(&args);
        assert!(!output.stdout.is_empty(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(!ask(&["--redact-map", map_name]).contains("10.1.2.3"));
    let kept = fs::read_to_string(&map).unwrap();
    assert!(kept.contains("10.1.2.3") && !kept.contains("hunter2"), "{kept}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&map).unwrap().permissions().mode() & 0o777, 0o600);
    }
    ask(&["--redact-map", map_name]);
    assert_eq!(fs::read_to_string(&map).unwrap(), kept, "the same names again");
    assert_eq!(ask(&["--redact-key", "k"]), ask(&["--redact-key", "k"]));
    assert_ne!(ask(&["--redact-key", "k"]), ask(&["--redact-key", "other"]));

    fs::write(&map, "[]").unwrap();
    let refused = coroner(&["--redact-map", map_name, log]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        fs::read_to_string(&map).unwrap(),
        "[]",
        "a file that is no map is left alone"
    );
}

#[test]
fn several_forms_are_written_at_once_each_whole() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("report.html");
    let json = dir.path().join("report.json");
    let html = format!("html={}", page.display());
    let data = format!("json={}", json.display());
    let output = coroner(&["--format", &html, "--format", &data, "--format", "oneline", FAILED]);
    assert_eq!(text(&output.stdout).lines().count(), 1, "{}", text(&output.stderr));
    assert!(fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report["cause"]["id"], "gpu-oom.graph-capture");
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        2,
        "nothing is left beside them"
    );

    let gone = format!("html={}", dir.path().join("gone/x.html").display());
    let refused = coroner(&["--format", &gone, FAILED]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("cannot be written"));
}

#[test]
fn a_report_is_shortened_to_what_its_target_takes() {
    let whole = text(&coroner(&["--format", "markdown", FAILED]).stdout);
    let short = text(&coroner(&["--format", "markdown", "--max-chars", "slack", FAILED]).stdout);
    assert!(whole.chars().count() > 3000 && short.chars().count() <= 3000, "{short}");
    for word in ["gpu-oom.graph-capture", "gpu-memory-utilization", "shortened to 3000"] {
        assert!(short.contains(word), "{word} in {short}");
    }
    assert_eq!(coroner(&["--max-chars", "few", FAILED]).status.code(), Some(2));
}

#[test]
fn the_schema_is_printed_without_a_log() {
    let schema: Value = serde_json::from_slice(&coroner(&["--schema"]).stdout).unwrap();
    assert!(schema["properties"]["redaction"].is_object());
}
