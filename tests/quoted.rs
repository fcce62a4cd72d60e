//! Quoted text is not a failure: every sample line of every root signature, embedded into a healthy log of each
//! engine as an access-log path, in a quoted prompt and as a JSON value, leaves the log healthy.

mod common;

use common::{Text, examine_texts, healthy_vllm};
use coroner::catalog::Catalog;
use coroner::catalog::schema::Role;
use coroner::report::model::{Outcome, Report};

/// How each engine's log shows a text that a client sent.
struct Engine {
    healthy: fn() -> Text,
    quotes: [fn(&str) -> String; 3],
}

const ENGINES: [Engine; 3] = [
    Engine {
        healthy: healthy_vllm,
        quotes: [
            |text| {
                format!(
                    "(APIServer pid=819) INFO:     127.0.0.1:42910 - \"GET /search?q={text} HTTP/1.1\" 404 Not Found"
                )
            },
            |text| {
                format!(
                    "(APIServer pid=819) INFO 11-29 14:24:16 [logger.py:39] Received request cmpl-7: prompt: {}, params: \
                     SamplingParams(n=1), prompt_token_ids: None, lora_request: None.",
                    repr(text)
                )
            },
            |text| format!("(APIServer pid=819) INFO 11-29 14:24:16 [proxy.py:12] {}", json(text)),
        ],
    },
    Engine {
        healthy: || Text::read("tests/data/healthy-sglang.log"),
        quotes: [
            |text| {
                format!(
                    "[2026-02-11 09:15:02] INFO:     10.0.0.9:47310 - \"GET /search?q={text} HTTP/1.1\" 404 Not Found"
                )
            },
            |text| {
                format!(
                    "[2026-02-11 09:15:02] Receive: obj=GenerateReqInput(rid='7c0f', text={}, sampling_params={{}}, stream=True)",
                    repr(text)
                )
            },
            |text| format!("[2026-02-11 09:15:02] Request {}", json(text)),
        ],
    },
    Engine {
        healthy: || Text::read("tests/data/healthy-ray.log"),
        quotes: [
            |text| {
                format!(
                    "(ServeReplica:llm:LLMServer pid=3512) INFO 2026-03-04 16:22:01,311 llm_LLMServer q3b1x0ze 1f0c2d7e -- \
                     GET /search?q={text} 404 1.2ms"
                )
            },
            |text| {
                format!(
                    "(ServeReplica:llm:LLMServer pid=3512) INFO 03-04 16:22:01 [logger.py:39] Received request cmpl-7: \
                     prompt: {}, params: SamplingParams(n=1), prompt_token_ids: None, lora_request: None.",
                    repr(text)
                )
            },
            |text| format!("(ServeReplica:llm:LLMServer pid=3512) {}", json(text)),
        ],
    },
];

/// Python's `repr`, as request loggers print prompts.
fn repr(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
    match (text.contains('\''), text.contains('"')) {
        (true, false) => format!("\"{text}\""),
        _ => format!("'{}'", text.replace('\'', "\\'")),
    }
}

fn json(text: &str) -> String {
    serde_json::json!({"model": "m", "messages": [{"role": "user", "content": text}], "error": text}).to_string()
}

/// One line of a client's text: a URL holds no line end.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], "%0A")
}

fn samples() -> Vec<&'static str> {
    let signatures = Catalog::shared().signatures();
    let roots = signatures.filter(|s| s.def.role == Role::Root);
    roots.flat_map(|s| s.def.matches.iter().map(String::as_str)).collect()
}

/// What is wrong with the healthy log that these lines are added to.
fn fault(healthy: &Text, lines: &[String]) -> Option<String> {
    let mut text = healthy.clone();
    lines
        .iter()
        .for_each(|line| text.bytes.extend(format!("{line}\n").bytes()));
    let report = examine_texts(&[text]);
    let look_alike = report.findings.iter().find(|f| f.id == "look-alike");
    match (report.outcome, look_alike) {
        (Outcome::Healthy, None) => None,
        (Outcome::Healthy, Some(finding)) => Some(finding.title.clone()),
        _ => Some(report.headline),
    }
}

/// The lines that do harm, found by halving.
fn culprits(healthy: &Text, lines: &[String], found: &mut Vec<String>) {
    let Some(fault) = fault(healthy, lines) else { return };
    if let [line] = lines {
        found.push(format!("{fault}\n    {line}"));
        return;
    }
    let (left, right) = lines.split_at(lines.len() / 2);
    let before = found.len();
    culprits(healthy, left, found);
    culprits(healthy, right, found);
    if found.len() == before {
        found.push(format!("{fault}\n    only together: {}", lines.join("\n    ")));
    }
}

#[test]
fn the_logs_are_healthy_to_begin_with() {
    for engine in &ENGINES {
        let healthy = (engine.healthy)();
        assert_eq!(fault(&healthy, &[]), None, "{}", healthy.name);
    }
}

#[test]
fn a_healthy_log_that_quotes_failures_stays_healthy() {
    let samples = samples();
    assert!(samples.len() > 300, "the catalog has {} samples", samples.len());
    let mut found = Vec::new();
    for engine in &ENGINES {
        let healthy = (engine.healthy)();
        for quote in engine.quotes {
            let lines: Vec<String> = samples.iter().map(|sample| one_line(&quote(sample))).collect();
            culprits(&healthy, &lines, &mut found);
        }
    }
    assert!(
        found.is_empty(),
        "{} quotes read as failures:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// What a failed launch quotes before it dies hides nothing and takes nobody's place. Only the JSON value: a request
/// before ready would itself say that the launch serves.
#[test]
fn a_failed_log_that_quotes_other_failures_keeps_its_root() {
    let log = Text::read("corpus/flagship-c-graph-capture-oom.log");
    let before = examine_texts(std::slice::from_ref(&log));
    let [.., json] = ENGINES[0].quotes;
    let lines = samples().into_iter().map(|sample| one_line(&json(sample)) + "\n");
    let lines = lines.collect::<String>().replace("pid=819", "pid=3811");
    let capture = log.text().find("Capturing CUDA graphs").expect("it captures");
    let at = log.text()[..capture].rfind('\n').map_or(0, |at| at + 1);
    let mut quoting = log.clone();
    quoting.bytes.splice(at..at, lines.bytes());
    let told = |report: &Report| {
        let root = &report.root.as_ref().unwrap().place;
        let cause = report.cause.as_ref().unwrap();
        (
            cause.id.clone(),
            report.phase.clone(),
            root.text.clone(),
            root.process.clone(),
        )
    };
    assert_eq!(told(&examine_texts(&[quoting])), told(&before));
}
