//! The change as it is pasted, in the form in which the launch was started.
//!
//! Owns the forms (shell, Compose, Kubernetes, Ray start) and the rule when a whole command may be printed: only when
//! argv itself is in evidence or was rebuilt from it without loss, and holds no secret. Never computes a value, and
//! never prints a placeholder as if it could be pasted.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use crate::catalog::schema::ChangeDef;
use crate::report::model::{Change, Patch};

/// Words that make an argument, or the value behind it, a secret or the mask of one.
const SECRET: &[&str] = &[
    "api-key",
    "api_key",
    "token",
    "password",
    "passwd",
    "secret",
    "redacted",
    "***",
    "credential",
];
/// Names with such a word that hold no secret.
const NO_SECRET: &[&str] = &["tokenizer", "tokens", "token-id", "token_id", "tool-call", "tool_call"];
/// Spellings of one flag.
const ALIASES: &[&[&str]] = &[
    &["--tensor-parallel-size", "--tp-size", "--tp", "-tp"],
    &["--pipeline-parallel-size", "--pp-size", "--pp", "-pp"],
    &["--data-parallel-size", "--dp-size", "--dp", "-dp"],
    &["--compilation-config", "-O", "-cc"],
    &["--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"],
];

/// A flag or variable with its new value; a switch has none.
struct Setting<'a> {
    name: &'a str,
    value: Option<&'a str>,
}

/// The change in the forms that the log supports; empty where a value has to be chosen first.
pub fn patches(defs: &[&ChangeDef], changes: &[Change], e: &Evidence) -> Vec<Patch> {
    let (Some(flags), Some(variables)) = (of_kind("flag", defs, changes), of_kind("env", defs, changes)) else {
        return Vec::new();
    };
    if flags.is_empty() && variables.is_empty() {
        return Vec::new();
    }
    let (ray, own): (Vec<_>, Vec<_>) = variables.into_iter().partition(|v| v.name.starts_with("RAY_"));
    let mut out = Vec::new();
    if !flags.is_empty() || !own.is_empty() {
        let whole = argv(e.settings).and_then(|argv| whole_command(&argv, &flags, &own));
        out.push(match whole {
            Some(text) => patch("command", "the whole command, as this log shows it", text),
            None => by_form(&flags, &own, e),
        });
    }
    if !ray.is_empty() {
        out.push(ray_start(&ray, e));
    }
    out
}

/// The changes of a kind; `None` if one of them has no value yet.
fn of_kind<'a>(kind: &str, defs: &[&ChangeDef], changes: &'a [Change]) -> Option<Vec<Setting<'a>>> {
    let mut settings: Vec<Setting<'a>> = Vec::new();
    for (def, change) in defs.iter().zip(changes).filter(|(_, change)| change.kind == kind) {
        let name = change.name.as_str();
        match change.to.as_deref() {
            // An option of another program, `docker run --memory`.
            _ if name.contains(' ') => return None,
            Some(value) if is_value(value) => settings.push(Setting {
                name,
                value: Some(value),
            }),
            // The second of two ways; the first is in the patch.
            Some(value) if value.contains("instead") && !settings.is_empty() => {}
            None if def.to.is_none() && def.from.is_none() => settings.push(Setting { name, value: None }),
            _ => return None,
        }
    }
    Some(settings)
}

/// A word or a JSON object; everything else tells a person what to choose.
fn is_value(text: &str) -> bool {
    let json = || text.starts_with('{') && serde_json::from_str::<serde_json::Value>(text).is_ok();
    !text.is_empty() && (!text.contains(char::is_whitespace) || json())
}

fn patch(form: &str, place: impl Into<String>, text: impl Into<String>) -> Patch {
    Patch {
        form: form.to_owned(),
        place: place.into(),
        text: text.into(),
    }
}

fn by_form(flags: &[Setting<'_>], variables: &[Setting<'_>], e: &Evidence) -> Patch {
    if e.under.contains(&"kubernetes") {
        let mut lines = Vec::new();
        if !flags.is_empty() {
            lines.push("args:".to_owned());
            lines.extend(flags.iter().map(|flag| format!("  - {}", yaml(&joined(flag)))));
        }
        lines.extend(env_entries(variables));
        patch("kubernetes", "the container's spec", lines.join("\n"))
    } else if e.under.contains(&"compose") {
        let mut lines = Vec::new();
        if !flags.is_empty() {
            lines.push("command:".to_owned());
            lines.extend(flags.iter().map(|flag| format!("  - {}", yaml(&joined(flag)))));
        }
        if !variables.is_empty() {
            lines.push("environment:".to_owned());
            let entry = |v: &Setting<'_>| format!("  {}: {}", v.name, quoted(v.value.unwrap_or("1")));
            lines.extend(variables.iter().map(entry));
        }
        patch("compose", "the service in the Compose file", lines.join("\n"))
    } else {
        let flag = |flag: &Setting<'_>| match flag.value {
            Some(value) => format!("{} {}", flag.name, shell(value)),
            None => flag.name.to_owned(),
        };
        let flags = flags.iter().map(flag).collect::<Vec<_>>().join(" ");
        let export = |v: &Setting<'_>| format!("export {}={}", v.name, shell(v.value.unwrap_or("1")));
        let mut lines: Vec<String> = variables.iter().map(export).collect();
        let place = match (lines.is_empty(), flags.is_empty()) {
            (true, _) => "the launch command, in place of the flag if it is there",
            (false, true) => "before the launch command",
            (false, false) => "before the launch command, and in it",
        };
        lines.extend(Some(flags).filter(|flags| !flags.is_empty()));
        patch("shell", place, lines.join("\n"))
    }
}

/// Ray reads its variables when its daemons start, on each node for itself.
fn ray_start(variables: &[Setting<'_>], e: &Evidence) -> Patch {
    if e.under.contains(&"kubernetes") {
        let place = "the Ray container of the head and of every worker group";
        return patch("kubernetes", place, env_entries(variables).join("\n"));
    }
    let set = |v: &Setting<'_>| format!("{}={} ", v.name, shell(v.value.unwrap_or("1")));
    let set: String = variables.iter().map(set).collect();
    patch(
        "ray-start",
        "on every node, with the node's own options behind `ray start`",
        format!("ray stop\n{set}ray start"),
    )
}

/// `env:` of a Kubernetes container.
fn env_entries(variables: &[Setting<'_>]) -> Vec<String> {
    if variables.is_empty() {
        return Vec::new();
    }
    let entry = |v: &Setting<'_>| {
        let value = quoted(v.value.unwrap_or("1"));
        [format!("  - name: {}", v.name), format!("    value: {value}")]
    };
    std::iter::once("env:".to_owned())
        .chain(variables.iter().flat_map(entry))
        .collect()
}

fn joined(flag: &Setting<'_>) -> String {
    match flag.value {
        Some(value) => format!("{}={value}", flag.name),
        None => flag.name.to_owned(),
    }
}

/// A YAML scalar, quoted where a plain one would not be read as this text.
fn yaml(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// A JSON string, which YAML reads as it stands.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn shell(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| String::new(), |quoted| quoted.into_owned())
}

/// The command line that was started: as a shell trace shows it, or rebuilt from what the engine says of it.
pub fn argv(settings: &BTreeMap<String, String>) -> Option<Vec<String>> {
    let rebuilt = || serde_json::from_str(settings.get("argv")?).ok();
    let words: Vec<String> = settings
        .get("command")
        .filter(|line| !line.contains(['|', '<', '>', '&', ';', '$', '`', '…']))
        .and_then(|line| shlex::split(line))
        .or_else(rebuilt)?;
    (!words.is_empty() && !words.iter().any(|word| is_secret(word))).then_some(words)
}

fn is_secret(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let harmless = NO_SECRET.iter().fold(word, |word, name| word.replace(name, ""));
    SECRET.iter().any(|secret| harmless.contains(secret))
}

/// The command with its flags set, ready for a shell; `None` if a word cannot be quoted.
pub fn in_shell(argv: &[String]) -> Option<String> {
    shlex::try_join(argv.iter().map(String::as_str)).ok()
}

fn whole_command(argv: &[String], flags: &[Setting<'_>], variables: &[Setting<'_>]) -> Option<String> {
    let mut words = argv.to_vec();
    for flag in flags {
        set(&mut words, flag);
    }
    let prefix: String = variables
        .iter()
        .map(|v| format!("{}={} ", v.name, shell(v.value.unwrap_or("1"))))
        .collect();
    Some(prefix + &in_shell(&words)?)
}

/// Replaces the flag in whatever spelling stands there, or adds it.
fn set(words: &mut Vec<String>, flag: &Setting<'_>) {
    let spellings = ALIASES.iter().find(|names| names.contains(&flag.name));
    let is_it = |word: &str| {
        let name = word.split('=').next().unwrap_or(word);
        let name = if name.starts_with("--") {
            name.replace('_', "-")
        } else {
            name.to_owned()
        };
        name == flag.name || spellings.is_some_and(|names| names.contains(&name.as_str()))
    };
    let at = words.iter().position(|word| is_it(word));
    let value = flag.value.map(str::to_owned);
    match (at, value) {
        (Some(at), Some(value)) => {
            let assigned = words.get(at).is_some_and(|word| word.contains('='));
            words.splice(at..=at, [flag.name.to_owned(), value]);
            // The old value, which stood as a word of its own.
            if !assigned && words.get(at + 2).is_some_and(|word| !word.starts_with("--")) {
                words.remove(at + 2);
            }
        }
        (Some(_), None) => {}
        (None, value) => {
            words.push(flag.name.to_owned());
            words.extend(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::testing::Case;
    use super::*;

    fn change(kind: &str, name: &str, to: Option<&str>) -> (ChangeDef, Change) {
        let text = |s: &str| s.to_owned();
        let def = ChangeDef {
            kind: text(kind),
            name: text(name),
            from: None,
            to: to.map(text),
            engines: Vec::new(),
            versions: String::new(),
            when: Vec::new(),
        };
        let change = Change {
            kind: text(kind),
            name: text(name),
            from: None,
            to: to.map(text),
        };
        (def, change)
    }

    fn made(changes: &[(ChangeDef, Change)], case: &Case) -> Vec<(String, String)> {
        let defs: Vec<&ChangeDef> = changes.iter().map(|(def, _)| def).collect();
        let changes: Vec<Change> = changes.iter().map(|(_, change)| change.clone()).collect();
        let patches = patches(
            &defs,
            &changes,
            &case.evidence("gpu-oom.graph-capture", "vllm", "0.25.1", ""),
        );
        patches.into_iter().map(|p| (p.form, p.text)).collect()
    }

    fn one(form: &str, text: &str) -> Vec<(String, String)> {
        vec![(form.to_owned(), text.to_owned())]
    }

    #[test]
    fn each_transport_gets_its_own_form() {
        let changes = [
            change("flag", "--gpu-memory-utilization", Some("0.87")),
            change("flag", "--enforce-eager", None),
            change("env", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", Some("1")),
        ];
        let mut case = Case::figures(&[]);
        let shell = "export VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1\n--gpu-memory-utilization 0.87 --enforce-eager";
        assert_eq!(made(&changes, &case), one("shell", shell));
        case.under = vec!["docker", "compose"];
        let compose = "command:\n  - --gpu-memory-utilization=0.87\n  - --enforce-eager\nenvironment:\n  \
                       VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS: \"1\"";
        assert_eq!(made(&changes, &case), one("compose", compose));
        case.under = vec!["kubernetes"];
        let kubernetes = "args:\n  - --gpu-memory-utilization=0.87\n  - --enforce-eager\nenv:\n  - name: \
                          VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS\n    value: \"1\"";
        assert_eq!(made(&changes, &case), one("kubernetes", kubernetes));
    }

    #[test]
    fn rays_variables_go_before_ray_start_on_every_node() {
        let changes = [
            change("env", "RAY_memory_usage_threshold", Some("0.98")),
            change(
                "env",
                "RAY_memory_monitor_refresh_ms",
                Some("0 (instead of the threshold)"),
            ),
        ];
        let mut case = Case::figures(&[]);
        let expected = "ray stop\nRAY_memory_usage_threshold=0.98 ray start";
        assert_eq!(made(&changes, &case), one("ray-start", expected));
        case.under = vec!["kubernetes", "ray"];
        let expected = "env:\n  - name: RAY_memory_usage_threshold\n    value: \"0.98\"";
        assert_eq!(made(&changes, &case), one("kubernetes", expected));
    }

    #[test]
    fn a_value_that_is_still_to_be_chosen_is_not_pasted() {
        let case = Case::figures(&[]);
        for to in [
            "a smaller size, such as 64",
            "fp8, or a checkpoint that is already quantized",
            "",
        ] {
            assert_eq!(
                made(&[change("flag", "--quantization", Some(to))], &case),
                Vec::new(),
                "{to}"
            );
        }
        // The data has a value, the log no figure for it.
        let (def, mut told) = change("flag", "--gpu-memory-utilization", Some("{to}"));
        told.to = None;
        assert_eq!(made(&[(def, told)], &case), Vec::new());
        assert_eq!(made(&[change("command", "nvidia-smi", None)], &case), Vec::new());
    }

    #[test]
    fn a_command_in_evidence_is_printed_whole() {
        let flag = [change("flag", "--gpu-memory-utilization", Some("0.87"))];
        let argv = r#"["vllm","serve","/models/a b","--gpu-memory-utilization","0.95","--max-num-seqs","32"]"#;
        let case = Case::figures(&[]).set("argv", argv);
        let whole = "vllm serve '/models/a b' --gpu-memory-utilization 0.87 --max-num-seqs 32";
        assert_eq!(made(&flag, &case), one("command", whole));
        let case = Case::figures(&[]).set("command", "python3 -m sglang.launch_server --model-path m --tp=2");
        let tensor = [
            change("flag", "--tp-size", Some("4")),
            change("flag", "--enable-x", None),
        ];
        let whole = "python3 -m sglang.launch_server --model-path m --tp-size 4 --enable-x";
        assert_eq!(made(&tensor, &case), one("command", whole));
        let json = [change(
            "flag",
            "--compilation-config",
            Some("{\"cudagraph_mode\": \"PIECEWISE\"}"),
        )];
        let case = Case::figures(&[]).set("command", "vllm serve m -O 3");
        let whole = "vllm serve m --compilation-config '{\"cudagraph_mode\": \"PIECEWISE\"}'";
        assert_eq!(made(&json, &case), one("command", whole));
    }

    #[test]
    fn a_secret_or_its_mask_is_never_printed_again() {
        let flag = [change("flag", "--gpu-memory-utilization", Some("0.87"))];
        for command in [
            "vllm serve m --api-key sk-abcdef0123456789",
            "vllm serve m --api-key=***",
            "vllm serve m --hf-token hf_abcdefghijklmnop",
            "HF_TOKEN=hf_abcdefghijklmnop vllm serve m",
            "vllm serve m --override '{\"password\": \"x\"}'",
        ] {
            let case = Case::figures(&[]).set("command", command);
            assert_eq!(
                made(&flag, &case),
                one("shell", "--gpu-memory-utilization 0.87"),
                "{command}"
            );
        }
        let case = Case::figures(&[]).set("command", "vllm serve m --tokenizer t --max-num-batched-tokens 8192");
        assert_eq!(made(&flag, &case)[0].0, "command");
    }

    #[test]
    fn a_command_that_a_shell_still_has_to_read_is_not_copied() {
        let flag = [change("flag", "--gpu-memory-utilization", Some("0.87"))];
        for command in [
            "vllm serve $MODEL",
            "vllm serve m | tee log",
            "vllm serve 'm",
            "vllm serve m …",
        ] {
            let case = Case::figures(&[]).set("command", command);
            assert_eq!(made(&flag, &case)[0].0, "shell", "{command}");
        }
    }
}
