//! Tests of redaction over whole reports and over single lines.

use super::*;
use crate::report::model::Outcome;
use crate::report::{Format, Style, json, render, sample};

fn redacted(level: Level, line: &str) -> String {
    let mut report = sample::quiet(Outcome::Healthy, "");
    report.story = line.into();
    Redactor::new(level, Vec::new(), Names::default()).apply(&mut report);
    report.story
}

/// A line, and the secret that must leave it.
const PLANTED: &[(&str, &str)] = &[
    ("HF_TOKEN=hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678", "hf_QwEr"),
    ("401 for url with token hf_QwErTyUiOpAsDfGh", "hf_QwEr"),
    (
        "non-default args: {'api_key': ['sk-live-1234567890abcdef'], 'model': 'x'}",
        "1234567890abcdef",
    ),
    (
        "server_args=ServerArgs(model_path='x', api_key='correct horse battery', tp_size=2)",
        "horse",
    ),
    ("vllm serve x --api-key s3cr3tvalue --port 8000", "s3cr3tvalue"),
    (
        "['vllm', 'serve', '--api-key', 'plainwordkey', '--port']",
        "plainwordkey",
    ),
    ("args: [\"--api-key\",\"plainwordkey\"]", "plainwordkey"),
    ("--hf-token=abcdefgh", "abcdefgh"),
    (
        "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtn",
    ),
    ("aws_access_key_id = AKIAIOSFODNN7EXAMPLE", "AKIAIOSF"),
    ("key AKIAIOSFODNN7EXAMPLE was refused", "AKIAIOSF"),
    ("Authorization: Bearer abc.def-ghi_123", "abc.def"),
    ("{'Authorization': 'Basic dXNlcjpwYXNzd29yZA=='}", "dXNlcjpw"),
    ("authorization: bearer opaquetokenwithoutdigits", "opaquetoken"),
    ("pulling https://bob:hunter2@registry.example.com/v2/", "hunter2"),
    ("redis://:p@ss/w@10.0.0.1:6379", ":p@ss"),
    (
        "git clone https://ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com/x/y",
        "ghp_abc",
    ),
    ("{\"name\": \"DB_PASSWORD\", \"value\": \"tr0ub4dor\"}", "tr0ub4dor"),
    ("{\\\"api_key\\\": \\\"zzz-yyy-111\\\"}", "zzz-yyy"),
    (
        "environ({'WANDB_API_KEY': '0123456789abcdef0123456789abcdef01234567'})",
        "0123456789abcdef",
    ),
    (
        "GET https://b.s3.amazonaws.com/m?X-Amz-Signature=deadbeef01&X-Amz-Date=2026",
        "deadbeef01",
    ),
    (
        "https://x.blob.core.windows.net/c?sv=2022&sig=AbC%2B123%3D&se=2026",
        "AbC%2B123",
    ),
    ("redis_password: 5241590000000000", "5241590000000000"),
    ("password: hunter", "hunter"),
    ("DB_PASSWORD=12345", "12345"),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "MIIEow",
    ),
    ("OPENAI_API_KEY: sk-proj-abcdEFGH1234", "abcdEFGH"),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig_na-ture", "eyJzdWIi"),
    (
        "posting to https://hooks.slack.com/services/T000/B000/XXXXabcd",
        "XXXXabcd",
    ),
    ("Namespace(api_key=zz11,max_model_len=4096)", "zz11"),
    ("GOOGLE_CREDS=eyJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCIsICJwcml2", "eyJ0eXBl"),
    ("mounted eyJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCJ9Cg== for it", "eyJ0eXBl"),
    ("token hf_abcdefghijklm4\nnopqrstuvw5678 was refused", "uvw5678"),
];

#[test]
fn planted_secrets_leave_every_line() {
    for (line, secret) in PLANTED {
        assert!(line.contains(secret), "{line}");
        let clean = redacted(Level::Secrets, line);
        assert!(
            !clean.contains(secret) && clean.contains("secret-1"),
            "{line}\n→ {clean}"
        );
        assert_eq!(redacted(Level::Secrets, &clean), clean, "a second time changes nothing");
    }
}

#[test]
fn what_an_inference_log_needs_stays() {
    for line in [
        "max_num_batched_tokens=8192, max_tokens: 1024, num_tokens = 77",
        "full token usage: 0.04, #cached-token: 512, #new-token: 1024, token usage: 0.98",
        "bos_token_id=1, eos_token='</s>', pad_token: <pad>, image_token_index=32000",
        "api_key=None, hf_token: null, api_key='', password=****, HF_TOKEN=${HF_TOKEN}",
        "tokenizer='Qwen/Qwen3-8B', tokenizer_mode=auto, skip_tokenizer_init=False",
        "KeyError: 'layers.0.mlp.gate_up_proj.weight'; missing key: model.embed_tokens.weight",
        "hf_overrides={}, hf_config=None, hf_transfer is on, HF_HUB_OFFLINE=1, hf_token_path=/x",
        "Forward pass: 12.3 ms, c10::Error, std::string, Token::kind, sk-learn",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "Invalid token: expected identifier; password authentication is off",
        "cache key=abc123, block_key: 77, key: value, VLLM_TOKENS_PER_BATCH=12",
        "nvidia-cudnn-cu12==9.1.0.70, cuDNN version 9.1.0.70, at 12:34:56 on 2026-05-20T08:16:47",
        "0.0.0.0:8000 and 127.0.0.1:29500 and [::]:8000 and ::1",
        "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py:120",
    ] {
        assert_eq!(redacted(Level::Identity, line), line);
    }
}

#[test]
fn people_and_places_become_pseudonyms_and_the_rest_stays() {
    for (line, want) in [
        (
            "(pid=742, ip=10.1.2.3) and 10.1.2.3:29500, not 10.1.2.4",
            "(pid=742, ip=ip-1) and ip-1:29500, not ip-2",
        ),
        (
            "[::ffff:10.1.2.3]:29500 fe80::1ff:fe23:4567:890a",
            "[::ffff:ip-1]:29500 ip-2",
        ),
        ("00:1a:2b:3c:4d:5e up", "mac-1 up"),
        ("mail bob.smith@corp.example.com", "mail email-1"),
        (
            "/home/alice/proj/venv/lib/python3.12/site-packages/vllm/x.py by alice",
            "/home/user-1/path-1/site-packages/vllm/x.py by user-1",
        ),
        ("/root/x.py and /home/ubuntu/x.py", "/root/x.py and /home/ubuntu/x.py"),
        (
            "s3://acme-models/llama and https://acme-models.s3.us-east-1.amazonaws.com/x",
            "s3://bucket-1/llama and https://bucket-1.s3.us-east-1.amazonaws.com/x",
        ),
        (
            "gpu7:310:1201 [0] NCCL INFO from gpu7",
            "node-1:310:1201 [0] NCCL INFO from node-1",
        ),
        ("tcp://ml-head:29500 (ml-head)", "tcp://node-1:29500 (node-1)"),
        ("MASTER_ADDR=gandalf and gandalf", "MASTER_ADDR=node-1 and node-1"),
        ("ip-10-0-3-7.ec2.internal joins", "node-1 joins"),
        (
            "No route to host; host is unreachable: host: connection refused",
            "No route to host; host is unreachable: host: connection refused",
        ),
        (
            "https://huggingface.co/Qwen/Qwen3-8B",
            "https://huggingface.co/Qwen/Qwen3-8B",
        ),
    ] {
        assert_eq!(redacted(Level::Identity, line), want);
    }
    assert_eq!(
        redacted(
            Level::All,
            "vllm serve Acme/Secret-7B; models--Acme--Secret-7B; Secret-7B"
        ),
        "vllm serve model-1; models--model-2; model-3"
    );
}

#[test]
fn a_custom_pattern_counts_at_all() {
    let pattern = Regex::new(r"PROJ-\d+").unwrap();
    for (level, want) in [(Level::Identity, "PROJ-77"), (Level::All, "custom-1")] {
        let mut report = sample::quiet(Outcome::Healthy, "");
        report.story = "PROJ-77".into();
        Redactor::new(level, vec![pattern.clone()], Names::default()).apply(&mut report);
        assert_eq!(report.story, want);
    }
}

/// All formats of a report after redaction.
fn rendered(mut report: Report, level: Level) -> Vec<String> {
    Redactor::new(level, Vec::new(), Names::default()).apply(&mut report);
    let style = Style {
        explain_confidence: true,
        width: 10_000,
        ..Style::default()
    };
    let mut out: Vec<String> = Format::ALL.iter().map(|f| render(&report, *f, &style)).collect();
    out.push(json::line(&report));
    out
}

#[test]
fn planted_secrets_survive_in_no_format_wherever_they_stand() {
    for (line, secret) in PLANTED {
        // A text without a name around it is known from the others.
        for page in rendered(sample::hostile(line), Level::Secrets) {
            assert!(!page.contains(secret), "{secret} in\n{page}");
        }
    }
}

#[test]
fn a_secret_named_once_is_known_everywhere() {
    let mut report = sample::graph_capture();
    report.launch.settings.insert("api_key".into(), "zzz-yyy-111".into());
    report.launch.settings.insert("db_password".into(), 12345.into());
    report.snippet[0].text = "connected with zzz-yyy-111.".into();
    for page in rendered(report, Level::Secrets) {
        assert!(!page.contains("zzz-yyy-111") && !page.contains("12345"), "{page}");
    }
}

#[test]
fn a_redacted_report_still_names_cause_rank_and_remedy_and_says_its_level() {
    for level in [Level::Secrets, Level::Identity, Level::All] {
        let mut report = sample::graph_capture();
        report.launch.command = Some("vllm serve Acme/Secret-7B --api-key zzz-yyy-111".into());
        for (format, page) in Format::ALL.iter().zip(rendered(report, level)) {
            let head: String = page.lines().take(12).collect::<Vec<_>>().join("\n");
            assert!(head.contains(level.id()), "{format:?}\n{page}");
            for word in ["gpu-oom.graph-capture", "ank 1", "gpu-memory-utilization"] {
                let escaped = word.replace('_', "\\_");
                assert!(
                    page.contains(word) || page.contains(&escaped),
                    "{word} in {format:?}\n{page}"
                );
            }
            assert!(
                level == Level::Secrets || !page.contains("node-b"),
                "{format:?}\n{page}"
            );
        }
    }
}

#[test]
fn advice_on_a_secret_stays() {
    let mut report = sample::graph_capture();
    let change = &mut report.remedies[0].change[0];
    change.name = "HF_TOKEN".into();
    change.from = Some("zzz-yyy-111".into());
    change.to = Some("a token that may read the model".into());
    report.launch.settings.insert("model_scale".into(), "0.002".into());
    Redactor::new(Level::All, Vec::new(), Names::default()).apply(&mut report);
    let change = &report.remedies[0].change[0];
    assert_eq!(change.from.as_deref(), Some("secret-1"));
    assert_eq!(change.to.as_deref(), Some("a token that may read the model"));
    assert_eq!(report.launch.settings["model_scale"], "0.002");
}

#[test]
fn counts_say_what_was_replaced() {
    let mut report = sample::quiet(Outcome::Healthy, "10.0.0.1 and 10.0.0.2 and 10.0.0.1");
    Redactor::new(Level::Identity, Vec::new(), Names::default()).apply(&mut report);
    let redaction = report.redaction.unwrap();
    assert_eq!(redaction.level, "identity");
    assert_eq!(redaction.replaced.len(), 1);
    assert_eq!((redaction.replaced[0].values, redaction.replaced[0].places), (2, 3));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_makes_redaction_panic(text in "(\\PC|[=:\"'\\\\\\[\\]{}@/?&,;\u{0}-\u{1f}]|token|api_key|--password|Bearer |https://|/home/|模){0,40}") {
        redacted(Level::All, &text);
    }
}
