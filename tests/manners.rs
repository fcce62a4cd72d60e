//! Settings files, help, manual page, completions, ASCII and colour.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;

const FAILED: &str = "corpus/gpu-oom-context.log";

/// In a folder of its own, as a user whose settings are below it.
fn coroner(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::cargo_bin("coroner").unwrap();
    for name in [
        "CORONER_RULES",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "XDG_CONFIG_HOME",
    ] {
        command.env_remove(name);
    }
    command
        .args(args)
        .env("HOME", dir)
        .env("XDG_CONFIG_DIRS", dir.join("xdg"))
        .envs(variables.iter().copied())
        .current_dir(dir)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn log() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(FAILED).display().to_string()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn the_first_settings_file_counts_and_the_command_line_counts_more() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let log = log();
    let form = |args: &[&str]| {
        let output = coroner(dir, &[args, &[log.as_str()]].concat(), &[]);
        let shown = text(&output.stdout);
        match serde_json::from_str::<Value>(&shown) {
            Ok(_) => "json",
            Err(_) if shown.starts_with("## ") => "markdown",
            Err(_) if shown.lines().count() == 1 => "oneline",
            Err(_) => "terminal",
        }
    };
    assert_eq!(form(&[]), "terminal");
    write(&dir.join("xdg/coroner/coroner.toml"), "format = \"json\"\n");
    assert_eq!(form(&[]), "json");
    write(&dir.join(".config/coroner/coroner.toml"), "format = \"markdown\"\n");
    assert_eq!(form(&[]), "markdown");
    write(
        &dir.join("coroner.toml"),
        "format = [\"oneline\"]\n\n[scan]\nformat = \"csv\"\n",
    );
    assert_eq!(form(&[]), "oneline");
    assert_eq!(form(&["--format", "json"]), "json");
    assert_eq!(form(&["--no-config"]), "terminal");
    assert_eq!(form(&["--config", "xdg/coroner/coroner.toml"]), "json");
    let scan = text(&coroner(dir, &["scan", &log], &[]).stdout);
    assert!(scan.starts_with("source,"), "{scan}");
}

#[test]
fn settings_that_mean_nothing_are_shown_with_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (settings, place, said) in [
        ("\nredcat = \"all\"\n", "own.toml:2:1", "do you mean `redact`?"),
        ("redact = \"al\"\n", "own.toml:1:10", "invalid value 'al'"),
        ("exit-zero = \"perhaps\"\n", "own.toml:1:13", "true or false"),
        ("[scann]\njobs = 1\n", "own.toml:2:1", "no command `scann`"),
        ("[scan]\njobs = 0\n", "own.toml:2:8", "invalid value '0'"),
        ("schema = true\n", "own.toml:1:1", "no setting"),
        ("settle = {}\nx", "own.toml:2:", "TOML"),
        ("attempt = [1, 2]\n", "own.toml:1:11", "takes one value"),
    ] {
        write(&dir.join("own.toml"), settings);
        let output = coroner(dir, &["--config", "own.toml", &log()], &[]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{settings}: {told}");
        assert!(told.contains(place) && told.contains(said), "{settings}: {told}");
    }
    let output = coroner(dir, &["--config", "gone.toml", &log()], &[]);
    assert!(text(&output.stderr).contains("gone.toml cannot be read"));
}

#[test]
fn rules_of_a_settings_file_lie_beside_it_and_the_environment_counts_more() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(&dir.join("s/coroner.toml"), "rules = \"own\"\n");
    write(
        &dir.join("s/own/a.toml"),
        "[[extend.cause]]\nid = \"gpu-oom.context\"\ntitle = \"As we call it\"\n",
    );
    let title = |variables: &[(&str, &str)]| {
        let output = coroner(
            dir,
            &["--config", "s/coroner.toml", "--format", "json", &log()],
            variables,
        );
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)));
        report["cause"]["title"].as_str().unwrap().to_owned()
    };
    assert_eq!(title(&[]), "As we call it");
    assert_ne!(title(&[("CORONER_RULES", "all")]), "As we call it");
}

#[test]
fn manual_completions_and_help_come_from_one_definition() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = coroner(dir.path(), args, &[]);
        assert!(output.status.success(), "{args:?}");
        text(&output.stdout)
    };
    let (manual, help) = (run(&["man"]), run(&["--help"]));
    assert!(manual.contains(".TH coroner 1"));
    assert!(help.contains("Examples:") && !run(&["-h"]).contains("Examples:"));
    assert!(manual.contains("Examples:") && run(&["man", "scan"]).contains("incident"));
    for long in ["max-chars", "redact-map", "no-config", "rules", "ascii"] {
        assert!(help.contains(&format!("--{long}")), "{long}");
        assert!(manual.contains(&long.replace('-', "\\-")), "{long}");
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            assert!(run(&["completions", shell]).contains(long), "{shell}: {long}");
        }
    }
    assert!(run(&["man", "catalog", "check"]).contains("coroner-catalog-check"));
    let unknown = coroner(dir.path(), &["man", "nothing"], &[]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("scan, explain, catalog"));
}

#[test]
fn ascii_holds_for_every_text_and_keeps_the_length_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for form in [
        "terminal",
        "markdown",
        "jira",
        "slack",
        "github",
        "oneline",
        "termination",
    ] {
        let shown = text(&coroner(dir.path(), &["--ascii", "--format", form, &log()], &[]).stdout);
        assert!(shown.is_ascii() && shown.contains("CUDA context"), "{form}: {shown}");
        let short = coroner(
            dir.path(),
            &["--ascii", "--format", form, "--max-chars", "400", &log()],
            &[],
        );
        let short = text(&short.stdout);
        assert!(
            short.is_ascii() && short.len() <= 400 && !short.is_empty(),
            "{form}: {short}"
        );
    }
    let error = coroner(dir.path(), &["--ascii", "explain", "gpu-oom.contxt"], &[]);
    assert!(text(&error.stderr).is_ascii(), "{}", text(&error.stderr));
    let page = coroner(dir.path(), &["explain", "--ascii", "gpu-oom.context"], &[]);
    assert!(text(&page.stdout).is_ascii() && page.status.success());
}

#[test]
fn options_of_every_command_stand_before_or_behind_its_name() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        ["--no-config", "--color", "never", "explain", "gpu-oom.context"],
        ["explain", "--no-config", "--color", "never", "gpu-oom.context"],
        ["--no-config", "explain", "--color=never", "--ascii", "gpu-oom.context"],
    ] {
        let output = coroner(dir.path(), &args, &[]);
        assert!(
            text(&output.stdout).starts_with("gpu-oom.context"),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn what_has_no_effect_is_said() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    let told = |args: &[&str]| {
        let output = coroner(dir.path(), args, &[]);
        (output.status.code(), text(&output.stderr))
    };
    let (status, said) = told(&["scan", "empty"]);
    assert!(status == Some(2) && said.contains("no log in the paths"), "{said}");
    let (_, said) = told(&["--redact-pattern", "acme", &log()]);
    assert!(said.contains("--redact all"), "{said}");
    let (_, said) = told(&["--redact-pattern", "acme", "--redact", "all", &log()]);
    assert_eq!(said, "");
    assert_eq!(told(&["scan", "--jobs", "0", "empty"]).0, Some(2));
}

#[test]
fn colour_follows_option_and_environment() {
    let dir = tempfile::tempdir().unwrap();
    let colored = |args: &[&str], variables: &[(&str, &str)]| {
        text(&coroner(dir.path(), &[args, &[log().as_str()]].concat(), variables).stdout).contains('\x1b')
    };
    assert!(!colored(&[], &[]));
    assert!(colored(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!colored(&[], &[("CLICOLOR_FORCE", "0")]));
    assert!(!colored(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!colored(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(colored(&["--color", "always"], &[("NO_COLOR", "1")]));
}

#[test]
fn what_an_error_quotes_never_acts_on_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let evil = "a\u{1b}[31m\u{202e}\u{200b}\u{9b}31mb";
    std::fs::create_dir(at("rules")).unwrap();
    std::fs::write(at("rules/a.toml"), format!("[[signature]]\n\"{evil}\" = 3\n")).unwrap();
    std::fs::write(at("raw.toml"), format!("{evil} = 1\n")).unwrap();
    std::fs::write(at("spelled.toml"), "\"\\u001b[31m\\u202e\" = 1\n").unwrap();
    let log = log();
    let (rules, raw, spelled) = (at("rules"), at("raw.toml"), at("spelled.toml"));
    let (page, table) = (format!("html=/nowhere/{evil}"), format!("/nowhere/{evil}"));
    let (option, group) = (format!("--{evil}"), format!("{evil}("));
    let wrong: [&[&str]; 16] = [
        &[evil],
        &[&option],
        &["--format", evil, &log],
        &["--format", &page, &log],
        &["--color", evil, &log],
        &["--rules", evil, &log],
        &["--rules", &rules, &log],
        &["--config", evil, &log],
        &["--config", &raw, &log],
        &["--config", &spelled, &log],
        &["explain", evil],
        &["catalog", "check", &rules],
        &["scan", "--incident", &group, &log],
        &["scan", "--glob", &group, &log],
        &["scan", "--fail-on", evil, &log],
        &["scan", "--output", &table, &log],
    ];
    for args in wrong {
        let output = coroner(dir.path(), args, &[]);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(!said.trim().is_empty(), "{args:?}");
        let acts = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(!said.contains(acts), "{args:?}: {said:?}");
    }
}
