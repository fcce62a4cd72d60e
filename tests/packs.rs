//! Rules of the user's own: added, extending, silencing; found in the middle of a long log; checked; drafted from a
//! failure that no rule knows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;

/// A launch that dies of something no built-in rule knows.
const UNKNOWN: &str = "\
(APIServer pid=100) INFO 11-25 12:00:04 [api_server.py:1896] vLLM API server version 0.11.0
(EngineCore_DP0 pid=200) INFO 11-25 12:00:20 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='/models/m'
(Worker_TP1 pid=302) ERROR 11-25 12:00:41 [multiproc_executor.py:597] WorkerProc failed to start.
(Worker_TP1 pid=302) ERROR 11-25 12:00:41 [multiproc_executor.py:597] Traceback (most recent call last):
(Worker_TP1 pid=302) ERROR 11-25 12:00:41 [multiproc_executor.py:597]   File \"/usr/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py\", line 213, in load_model
(Worker_TP1 pid=302) ERROR 11-25 12:00:41 [multiproc_executor.py:597]     self.model_runner.load_model()
(Worker_TP1 pid=302) ERROR 11-25 12:00:41 [multiproc_executor.py:597]   File \"/opt/acme/vault/client.py\", line 88, in lease
(Worker_TP1 pid=302) ERROR 11-25 12:00:41 [multiproc_executor.py:597]     raise VaultLeaseError(lease)
(Worker_TP1 pid=302) ERROR 11-25 12:00:41 [multiproc_executor.py:597] vault.client.VaultLeaseError: weight vault lease 7f3a91c2 for /vault/models/m has expired after 3600 s
(EngineCore_DP0 pid=200) ERROR 11-25 12:00:42 [core.py:708] EngineCore failed to start.
(APIServer pid=100) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
";

const RULES: &str = r#"
[[signature]]
id = "acme.lease-expired"
role = "root"
cause = "acme.vault-lease"
program = "acme"
exception = "VaultLeaseError"
literal = ["weight vault lease"]
pattern = 'weight vault lease [0-9a-f]+ for \S+ has expired after (?P<lease_s>\d+) s'
source = "acme vault client 3"
match = ["vault.client.VaultLeaseError: weight vault lease 7f3a91c2 for /vault/models/m has expired after 3600 s"]

[[signature]]
id = "acme.vault-sealed"
role = "root"
cause = "acme.vault-lease"
program = "acme"
literal = ["vault is sealed, "]
source = "acme vault client 3"
match = ["vault is sealed, nothing is served from it"]

[[cause]]
id = "acme.vault-lease"
title = "The lease on the weights has expired"
headline = "lost its lease on the weights"
meaning = "The vault hands out weights for an hour. A launch that waits longer for its turn reads nothing."
owner = "cluster"
retry = { verdict = "may-help", why = "A new launch takes a new lease." }

[[remedy]]
id = "acme-longer-lease"
title = "Ask the vault for a longer lease"
why = "The lease then outlives the start."
for = { "acme.vault-lease" = 10 }
cost = "None"
risk = "low"
verify = "The client prints the lease it got"
change = [{ kind = "env", name = "VAULT_LEASE_S", to = "14400" }]
"#;

fn coroner(args: &[&str]) -> Output {
    Command::cargo_bin("coroner")
        .unwrap()
        .args(args)
        .env_remove("CORONER_RULES")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn report(args: &[&str]) -> Value {
    let output = coroner(&[&["--format", "json", "--no-config"], args].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)))
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

struct Scene {
    _dir: tempfile::TempDir,
    path: PathBuf,
    log: String,
    rules: String,
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_path_buf();
    let log = write(&path, "serve.log", UNKNOWN);
    write(&path, "rules/acme.toml", RULES);
    let rules = path.join("rules").display().to_string();
    Scene {
        _dir: dir,
        path,
        log,
        rules,
    }
}

#[test]
fn a_rule_names_its_cause_with_a_page_a_remedy_and_a_word_on_starting_again() {
    let s = scene();
    assert_eq!(report(&[&s.log])["cause"]["id"], "unknown.exception");
    let told = report(&["--rules", &s.rules, &s.log]);
    assert_eq!(told["cause"]["id"], "acme.vault-lease");
    assert_eq!(told["cause"]["title"], "The lease on the weights has expired");
    assert_eq!(told["phase"], "weight-load");
    assert_eq!(told["root"]["rank"], 1);
    assert_eq!(told["remedies"][0]["id"], "acme-longer-lease");
    assert_eq!(told["retry"]["verdict"], "may-help");
    let page = coroner(&["explain", "acme.vault-lease", "--rules", &s.rules]);
    let page = text(&page.stdout);
    for part in ["hands out weights", "acme.lease-expired", "longer lease", "may-help"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let list = coroner(&["catalog", "--rules", &s.rules]);
    assert!(text(&list.stdout).contains("acme.vault-lease"));
    let status = coroner(&["--rules", &s.rules, "--fail-on", "acme", &s.log]).status;
    assert_eq!(status.code(), Some(1));
    let alone = report(&["--rules", "none", "--rules", &s.rules, &s.log]);
    assert_eq!(alone["cause"]["id"], "acme.vault-lease");
}

#[test]
fn the_environment_names_rules_where_the_command_line_does_not() {
    let s = scene();
    let cause = |args: &[&str]| {
        let output = Command::cargo_bin("coroner")
            .unwrap()
            .args(["--format", "json", "--no-config"])
            .args(args)
            .env("CORONER_RULES", &s.rules)
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["cause"]["id"].clone()
    };
    assert_eq!(cause(&[&s.log]), "acme.vault-lease");
    assert_eq!(cause(&["--rules", "all", &s.log]), "unknown.exception");
}

/// The line has no level and no word that the built-in rules would look at.
#[test]
fn a_rule_is_found_in_the_middle_of_a_long_log() {
    let s = scene();
    let serving: String = (0..40_000)
        .map(|n| {
            format!(
                "(APIServer pid=100) INFO:     10.0.0.7:{} - \"GET /health HTTP/1.1\" 200 OK\n",
                1024 + n % 60_000
            )
        })
        .collect();
    let head = UNKNOWN.lines().take(2).collect::<Vec<_>>().join("\n");
    let ready = "(APIServer pid=100) INFO:     Application startup complete.";
    let fault = "vault is sealed, nothing is served from it";
    let log = write(
        &s.path,
        "long.log",
        &format!("{head}\n{ready}\n{serving}{fault}\n{serving}"),
    );
    let told = report(&["--rules", &s.rules, &log]);
    assert!(told["examined"]["lines"].as_u64().unwrap() > 80_000);
    let seen = told.to_string();
    assert!(seen.contains("acme.vault-sealed"), "{seen}");
    assert!(!report(&[&log]).to_string().contains("vault is sealed"));
}

#[test]
fn a_built_in_rule_is_extended_or_silenced_by_its_id() {
    let s = scene();
    let oom = "corpus/gpu-oom-context.log";
    let before = report(&[oom]);
    let cause = before["cause"]["id"].as_str().unwrap();
    let remedy = before["remedies"][0]["id"].as_str().unwrap();
    let signature = before["evidence"][0]["signature"].as_str().unwrap();
    let more = format!(
        "silence = [\"{remedy}\"]\n[[extend.cause]]\nid = \"{cause}\"\ntitle = \"As we call it\"\n\
         [[extend.signature]]\nid = \"{signature}\"\ntags = [\"ours\"]\n"
    );
    let told = report(&["--rules", &write(&s.path, "more.toml", &more), oom]);
    assert_eq!(told["cause"]["id"], cause);
    assert_eq!(told["cause"]["title"], "As we call it");
    assert_eq!(told["cause"]["tags"][0], "ours");
    let ids = told["remedies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["id"].as_str().unwrap());
    assert!(!ids.collect::<Vec<_>>().contains(&remedy));
    let quiet = write(&s.path, "quiet.toml", &format!("silence = [\"{signature}\"]\n"));
    assert_ne!(report(&["--rules", &quiet, oom])["evidence"][0]["signature"], signature);
}

#[test]
fn a_wrong_file_is_shown_with_its_line() {
    let s = scene();
    let stderr = |name: &str, rules: &str| {
        let file = write(&s.path, name, rules);
        let output = coroner(&["--rules", &file, &s.log]);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let key = stderr("key.toml", "[[signature]]\nidd = \"x.y\"\n");
    assert!(key.contains("key.toml:2:1") && key.contains("idd"), "{key}");
    let id = stderr("id.toml", "\nsilence = [\"vllm.free-memory-below-reqest\"]\n");
    assert!(
        id.contains("id.toml:2:12") && id.contains("vllm.free-memory-below-request"),
        "{id}"
    );
    let regex = stderr("regex.toml", &RULES.replace("[0-9a-f]+ for", "[0-9a-f+ for"));
    assert!(regex.contains("regex.toml:9:"), "{regex}");
}

#[test]
fn a_check_runs_samples_and_points_into_the_file() {
    let s = scene();
    let check = |name: &str, rules: &str| {
        let file = write(&s.path, name, rules);
        let output = coroner(&["catalog", "check", &file]);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (status, told) = check("good.toml", RULES);
    assert_eq!(status, Some(0), "{told}");
    assert!(
        told.contains("1 file, 2 signatures, 1 cause, 1 remedy: 0 faults, 0 warnings"),
        "{told}"
    );

    let line = |rules: &str, needle: &str| rules.lines().position(|l| l.contains(needle)).unwrap() + 1;
    for (name, from, to, needle, said) in [
        (
            "sample.toml",
            "is sealed, nothing",
            "was sealed, nothing",
            "was sealed",
            "nothing answers it",
        ),
        (
            "owner.toml",
            "owner = \"cluster\"",
            "owner = \"clutser\"",
            "clutser",
            "network",
        ),
        (
            "cause.toml",
            "cause = \"acme.vault-lease\"",
            "cause = \"acme.vault\"",
            "acme.vault\"",
            "no cause",
        ),
        (
            "phase.toml",
            "owner =",
            "phase = \"loading\"\nowner =",
            "loading",
            "weight-load",
        ),
        (
            "when.toml",
            "risk =",
            "when = [\"kubernets\"]\nrisk =",
            "kubernets",
            "no condition",
        ),
        ("todo.toml", "cost = \"None\"", "cost = \"TODO\"", "TODO", "filled in"),
        (
            "twice.toml",
            "acme.vault-sealed",
            "acme.lease-expired",
            "acme.lease-expired",
            "stands twice",
        ),
    ] {
        let rules = RULES.replace(from, to);
        let (status, told) = check(name, &rules);
        assert_eq!(status, Some(1), "{name}: {told}");
        let place = format!("{name}:{}:", line(&rules, needle));
        assert!(told.contains(&place) && told.contains(said), "{name}, {place}: {told}");
    }
    let (status, told) = check("taken.toml", "[[remedy]]\nid = \"ray-monitor\"\n");
    assert_eq!(status, Some(2), "{told}");
}

#[test]
fn a_check_warns_of_patterns_that_match_or_cost_too_much() {
    let s = scene();
    let rule = |literal: &str, pattern: &str, sample: &str| {
        format!(
            "[[signature]]\nid = \"x.y\"\nrole = \"root\"\ncause = \"config.invalid-value\"\nprogram = \"x\"\n\
             literal = [\"{literal}\"]\npattern = '{pattern}'\nsource = \"x\"\nmatch = [\"{sample}\"]\n"
        )
    };
    for (name, rules, said) in [
        (
            "broad.toml",
            rule(
                "Application startup",
                "Application startup .*",
                "Application startup was refused",
            ),
            "of healthy launches, such as",
        ),
        (
            "open.toml",
            rule("is on fire", ".*is on fire", "GPU 3 is on fire"),
            "not anchored",
        ),
        (
            "slow.toml",
            rule("is on fire", "(?:\\w+ ){0,40}is on fire", "GPU 3 is on fire"),
            "slow",
        ),
    ] {
        let file = write(&s.path, name, &rules);
        let output = coroner(&["catalog", "check", &file]);
        let told = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert!(told.contains(said), "{name}: {told}");
    }
}

/// What the README shows, by its own commands: a failure that no rule knows, its draft, the places filled in, the check,
/// the failure known.
#[test]
fn a_draft_becomes_a_rule_as_the_readme_shows() {
    let s = scene();
    assert_eq!(coroner(&["--no-config", &s.log]).status.code(), Some(3), "unknown");
    let draft = coroner(&["catalog", "draft", &s.log]);
    let draft = text(&draft.stdout);
    assert!(draft.contains("TODO") && !draft.contains("'7f3a91c2"), "{draft}");
    let pattern = draft.lines().find(|l| l.starts_with("pattern")).unwrap();
    assert!(!pattern.contains("7f3a91c2") && !pattern.contains("3600"), "{pattern}");
    let file = write(&s.path, "own/vault.toml", &draft);
    let own = s.path.join("own").display().to_string();
    let check = || coroner(&["catalog", "check", &own]);
    assert_eq!(check().status.code(), Some(1), "places are left to fill in");
    let filled: String = draft
        .lines()
        .map(|line| match line.split_once("\"TODO") {
            Some((before, rest)) => {
                let after = &rest[rest.find('"').unwrap() + 1..];
                format!("{before}\"Ask the vault again\"{after}\n")
            }
            None => format!("{line}\n"),
        })
        .collect();
    fs::write(&file, filled).unwrap();
    let told = check();
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stdout));
    assert!(
        text(&told.stdout).contains("0 faults, 0 warnings"),
        "{}",
        text(&told.stdout)
    );
    let report = report(&["--rules", &own, &s.log]);
    let cause = report["cause"]["id"].as_str().unwrap();
    assert!(cause.starts_with("site."), "{cause}");
    assert_eq!(report["remedies"][0]["title"], "Ask the vault again");
    let known = coroner(&["catalog", "--rules", &own, "draft", &s.log]);
    assert!(
        text(&known.stderr).contains("nothing to draft"),
        "{}",
        text(&known.stderr)
    );
}

#[test]
fn other_failures_can_be_drafted_too() {
    let s = scene();
    // Texts that TOML has to escape.
    for last in [
        "(EngineCore_DP0 pid=200) vault.Refused: no 'weights' \\ \"shard 3\" at 10.0.0.7:8200",
        "(EngineCore_DP0 pid=200) vault.Oops: it isn't \"there\": C:\\models\\m 12",
    ] {
        let head: Vec<&str> = UNKNOWN.lines().take(2).collect();
        let trace = "(EngineCore_DP0 pid=200) Traceback (most recent call last):\n\
                     (EngineCore_DP0 pid=200)   File \"/opt/acme/a.py\", line 8, in lease\n\
                     (EngineCore_DP0 pid=200)     f()";
        let log = write(&s.path, "other.log", &format!("{}\n{trace}\n{last}\n", head.join("\n")));
        let draft = coroner(&["catalog", "draft", &log]);
        assert!(draft.status.success(), "{}", text(&draft.stderr));
        let file = write(&s.path, "other.toml", &text(&draft.stdout).replace("TODO", "Done"));
        let told = coroner(&["catalog", "check", &file]);
        assert_eq!(
            told.status.code(),
            Some(0),
            "{}{}",
            text(&told.stdout),
            text(&draft.stdout)
        );
    }
    let healthy = coroner(&["catalog", "draft", "corpus/healthy-8b-graphs.log"]);
    assert!(
        text(&healthy.stderr).contains("no failure"),
        "{}",
        text(&healthy.stderr)
    );
}

#[test]
fn the_schema_of_rule_files_is_current_and_names_every_key() {
    let shown = text(&coroner(&["catalog", "schema"]).stdout);
    let kept = fs::read_to_string("src/catalog/rules.schema.json").unwrap_or_default();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|v| v == "always") {
        fs::write("src/catalog/rules.schema.json", &shown).unwrap();
        return;
    }
    assert_eq!(
        shown, kept,
        "INSTA_UPDATE=always cargo test --test packs writes it anew"
    );
    let schema: Value = serde_json::from_str(&shown).unwrap();
    for key in [
        "signature",
        "cause",
        "remedy",
        "frame",
        "place",
        "exception",
        "silence",
        "extend",
    ] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    let part = &schema["$defs"]["ExtendDef"]["properties"]["signature"]["items"];
    assert_eq!(part["required"], serde_json::json!(["id"]));
    assert!(part["properties"]["literal"].is_object());
}
