//! What lies in `contrib`: files that parse, samples that their own patterns match, scripts that do what they say.

use std::fs;
use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::CommandCargoExt;
use regex::Regex;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_sample_of_the_lnav_formats_is_of_its_pattern() {
    let text = fs::read_to_string(root().join("contrib/lnav/coroner.json")).unwrap();
    let formats: Value = serde_json::from_str(&text).unwrap();
    let mut samples = 0;
    for (name, format) in formats
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "$schema")
    {
        // Named groups are written alike in both dialects.
        let pattern = Regex::new(format["regex"]["line"]["pattern"].as_str().unwrap()).unwrap();
        for sample in format["sample"].as_array().unwrap() {
            let line = sample["line"].as_str().unwrap();
            let found = pattern.captures(line).unwrap_or_else(|| panic!("{name}: {line}"));
            assert!(
                !found["timestamp"].is_empty() && found.name("body").is_some(),
                "{name}: {line}"
            );
            samples += 1;
        }
    }
    assert!(samples >= 6);
    // Real logs, not only samples.
    let vllm = Regex::new(formats["vllm_log"]["regex"]["line"]["pattern"].as_str().unwrap()).unwrap();
    let log = fs::read_to_string(root().join("corpus/healthy-8b-graphs.log")).unwrap();
    assert!(log.lines().filter(|line| vllm.is_match(line)).count() > 50);
}

#[cfg(unix)]
#[test]
fn the_step_of_a_github_job_writes_summary_output_and_annotations() {
    let dir = tempfile::tempdir().unwrap();
    let program = Command::cargo_bin("coroner").unwrap().get_program().to_owned();
    std::os::unix::fs::symlink(program, dir.path().join("coroner")).unwrap();
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let (summary, out) = (dir.path().join("summary"), dir.path().join("out"));
    let step = |fail: &str| {
        Command::new("bash")
            .arg(root().join("contrib/github/report.sh"))
            .env("PATH", &path)
            .env("LOGS", "corpus/gpu-oom-context.log")
            .env("FAIL", fail)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_OUTPUT", &out)
            .current_dir(root())
            .output()
            .unwrap()
    };
    let output = step("false");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("::error "));
    assert!(fs::read_to_string(&summary).unwrap().contains("gpu-oom.context"));
    assert!(fs::read_to_string(&out).unwrap().starts_with("oneline=failed"));
    assert_eq!(step("true").status.code(), Some(1));
}
