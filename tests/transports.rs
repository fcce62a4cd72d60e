//! Every transport over the corpus: what it puts round a log comes off again, and nothing of the program's text does.

mod common;

use std::path::{Path, PathBuf};

use common::{Text, examine_texts};
use coroner::envelope::{Peeler, Profile};

/// The texts of a log's records.
fn texts(log: &str) -> Vec<String> {
    let profile = Profile::of(&log.as_bytes()[..log.len().min(256 * 1024)]);
    let reversed = profile.newest_first();
    let mut peeler = Peeler::new(profile);
    let mut lines: Vec<(u64, &str)> = (1..).zip(log.lines()).collect();
    if reversed {
        lines.reverse();
    }
    let mut texts = Vec::new();
    let mut out = |record: coroner::record::Record<'_>| texts.push(record.text.trim_end().to_owned());
    for (no, line) in lines {
        peeler.line(no, 0, line.as_bytes(), &mut out);
    }
    peeler.finish(&mut out);
    texts
}

/// A transport: from the number of a line and the line to what it makes of them.
type Transport = (&'static str, fn(usize, &str) -> String);

fn second(n: usize) -> String {
    format!("{:02}:{:02}:{:02}", 12 + n / 3600 % 10, n / 60 % 60, n % 60)
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Transports whose prefix a program could have written as well: program lines behind it prove it.
const DOUBTFUL: [&str; 6] = [
    "stern",
    "stern -t",
    "aws logs tail",
    "ts in brackets",
    "ts of the day in brackets",
    "ts %.s",
];

/// Logs without a line by which a program is known.
const UNPROVEN: [&str; 3] = ["written-without-indentation", "written-build", "written-other-server"];

const TRANSPORTS: [Transport; 30] = [
    ("docker -t", |n, l| {
        format!("2026-11-25T{}.{:09}Z {l}", second(n), 123_456_789)
    }),
    ("cri", |n, l| {
        format!("2026-11-25T{}.{:09}+01:00 stderr F {l}", second(n), 7)
    }),
    ("cri in two parts", |n, l| {
        // Not within a control sequence: parts are thousands of bytes long, so that this is a rare misfortune.
        let middle = l.rfind(' ').unwrap_or(0);
        let at = format!("2026-11-25T{}.5Z stderr", second(n));
        format!("{at} P {}\n{at} F {}", &l[..middle], &l[middle..])
    }),
    ("kubectl --prefix --timestamps", |n, l| {
        format!("[pod/vllm-0/server] 2026-11-25T{}.123456789Z {l}", second(n))
    }),
    ("compose", |_, l| format!("\x1b[36mvllm-1  |\x1b[0m {l}")),
    ("compose -t", |n, l| {
        format!("vllm-1  | 2026-11-25T{}.123456789Z {l}", second(n))
    }),
    ("journald", |n, l| format!("Nov 25 {} node-a vllm[24]: {l}", second(n))),
    ("journald short-iso", |n, l| {
        format!("2026-11-25T{}+0100 node-a vllm[24]: {l}", second(n))
    }),
    ("rfc 5424", |n, l| {
        format!("<14>1 2026-11-25T{}Z node-a vllm 24 - - {l}", second(n))
    }),
    ("ts", |n, l| format!("Nov 25 {} {l}", second(n))),
    ("srun -l", |_, l| format!("0: {l}")),
    ("mpirun", |_, l| format!("[1,0]<stdout>:{l}")),
    ("pdsh", |_, l| format!("node-b: {l}")),
    ("honcho", |n, l| format!("{} engine.1 | {l}", second(n))),
    ("docker json-file", |n, l| {
        format!(
            "{{\"log\":{},\"stream\":\"stdout\",\"time\":\"2026-11-25T{}Z\"}}",
            json(&format!("{l}\n")),
            second(n)
        )
    }),
    ("google", |n, l| {
        format!(
            "{{\"textPayload\":{},\"timestamp\":\"2026-11-25T{}Z\",\"severity\":\"ERROR\"}}",
            json(l),
            second(n)
        )
    }),
    ("fluent bit", |n, l| {
        format!(
            "{{\"@timestamp\":\"2026-11-25T{}.000Z\",\"log\":{},\"stream\":\"stderr\",\"kubernetes\":{{\"pod_name\":\"vllm-0\",\
             \"host\":\"gpu-7\",\"container_name\":\"server\"}}}}",
            second(n),
            json(l)
        )
    }),
    ("fluent bit, CRI parser", |n, l| {
        format!(
            "{{\"time\":\"2026-11-25T{}.5Z\",\"stream\":\"stdout\",\"_p\":\"F\",\"log\":{}}}",
            second(n),
            json(l)
        )
    }),
    ("fluentd, docker driver", |_, l| {
        format!(
            "{{\"container_id\":\"1f\",\"container_name\":\"/vllm\",\"source\":\"stderr\",\"log\":{}}}",
            json(l)
        )
    }),
    ("vector", |n, l| {
        format!(
            "{{\"file\":\"/var/log/pods/a/0.log\",\"kubernetes\":{{\"pod_name\":\"vllm-0\",\"pod_node_name\":\"gpu-7\"}},\
             \"message\":{},\"stream\":\"stderr\",\"timestamp\":\"2026-11-25T{}.5Z\"}}",
            json(l),
            second(n)
        )
    }),
    ("stern -o json", |_, l| {
        format!(
            "{{\"message\":{},\"nodeName\":\"gpu-7\",\"namespace\":\"llm\",\"podName\":\"vllm-0\",\"containerName\":\"server\"}}",
            json(l)
        )
    }),
    ("stern", |_, l| format!("vllm-0 server {l}")),
    ("stern -t", |n, l| {
        format!("vllm-0 server 2026-11-25T{}.123456789Z {l}", second(n))
    }),
    ("logcli", |n, l| {
        format!("2026-11-25T{}Z {{container=\"server\", pod=\"vllm-0\"}} {l}", second(n))
    }),
    ("logcli -o jsonl", |n, l| {
        format!(
            "{{\"labels\":{{\"container\":\"server\",\"pod\":\"vllm-0\"}},\"line\":{},\"timestamp\":\"2026-11-25T{}.5Z\"}}",
            json(l),
            second(n)
        )
    }),
    ("aws logs tail", |n, l| {
        format!("2026-11-25T{}.123000+00:00 vllm/server/1f2e3d4c {l}", second(n))
    }),
    ("ts in brackets", |n, l| format!("[2026-11-25 {}] {l}", second(n))),
    ("ts of the day in brackets", |n, l| format!("[{}] {l}", second(n))),
    ("ts %.s", |n, l| format!("{}.{:06} {l}", 1_795_600_000 + n, 417)),
    ("markdown quote", |_, l| format!("> {l}")),
];

/// Whether the label of a log says that it came through a transport or a paste of its own.
fn is_wrapped(log: &Path) -> bool {
    const OWN: &[&str] = &[
        "cri-conmon",
        "journald",
        "journald-short-precise",
        "github",
        "kubectl-describe",
    ];
    let label = std::fs::read_to_string(log.with_extension("json")).unwrap();
    let label: serde_json::Value = serde_json::from_str(&label).unwrap();
    let of = label["wrapping"].as_array().into_iter().flatten();
    of.filter_map(|w| w.as_str()).any(|w| OWN.contains(&w))
}

/// The logs of the corpus that no transport has wrapped yet, without lines that carriage returns make several.
fn logs() -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "log") || is_wrapped(&path) {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let lines: Vec<&str> = text
            .lines()
            .map(|l| l.trim_end_matches('\r'))
            .filter(|l| !l.contains('\r'))
            .collect();
        logs.push((path, lines.join("\n")));
    }
    logs
}

#[test]
fn what_a_transport_adds_comes_off_again() {
    let mut faults = Vec::new();
    for (path, log) in logs() {
        let plain = texts(&log);
        let unproven = UNPROVEN
            .iter()
            .any(|id| path.file_stem().is_some_and(|stem| stem == *id));
        let transports = TRANSPORTS
            .iter()
            .filter(|(name, _)| !(unproven && DOUBTFUL.contains(name)));
        for (name, wrap) in transports {
            let wrapped: Vec<String> = log.lines().enumerate().map(|(n, line)| wrap(n, line)).collect();
            let got = texts(&wrapped.join("\n"));
            if let Some(at) = (0..plain.len().max(got.len())).find(|at| plain.get(*at) != got.get(*at)) {
                faults.push(format!(
                    "{} in {name}, record {at}:\n  {:?}\n  {:?}",
                    path.display(),
                    plain.get(at),
                    got.get(at)
                ));
            }
        }
        let reversed: Vec<String> = log.lines().enumerate().map(|(n, l)| TRANSPORTS[0].1(n, l)).collect();
        if plain.len() > 5 && texts(&reversed.into_iter().rev().collect::<Vec<_>>().join("\n")) != plain {
            faults.push(format!("{} newest-first", path.display()));
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn an_excerpt_of_one_line_is_bare_however_it_was_pasted() {
    let line = "(EngineCore pid=1154) ERROR 11-29 14:23:21 [core.py:1231] ValueError: Free memory on device cuda:0 \
                (58.08/139.8 GiB) on startup is less than desired GPU memory utilization (0.92, 128.62 GiB).";
    let exception = line.split("] ").nth(1).unwrap();
    for line in [line, exception] {
        for margin in [
            "     1\t",
            "   812\t",
            "812:",
            "serve.log:812:",
            "    ",
            "\t",
            "> ",
            ">> ",
            "- ",
            "│ ",
            "`",
        ] {
            assert_eq!(texts(&format!("{margin}{line}\n")), [line], "{margin:?}");
        }
        for margin in ["> ", "    "] {
            let told = texts(&format!("It died of this:\n\n{margin}{line}\n\nWhat now?\n"));
            assert!(told.iter().any(|text| text == line), "{margin:?}: {told:?}");
        }
        // Mail programs wrap quotes between words.
        let (first, rest) = line.split_at(line[..100].rfind(' ').unwrap());
        assert_eq!(texts(&format!("> {first}\n> {}\n", rest.trim_start())), [line]);
    }
}

#[test]
fn a_failure_has_one_fingerprint_in_every_transport() {
    let lines = [
        "[2026-06-03 10:00:00] xa:7000:7990 [0] bootstrap.cc:388 NCCL WARN Bootstrap Root : mismatch in info from procs, nranks 16 vs 8",
        "[W410 12:00:09.101010101 socket.cpp:200] [c10d] The server socket has failed to bind to [::]:5000 (errno: 98 - Address already in use).",
    ];
    let print = |log: String| {
        let report = examine_texts(&[Text::new("launch.log", log)]);
        let place = report.root.as_ref().unwrap().place.line;
        (report.fingerprint.clone().unwrap(), place)
    };
    for line in lines {
        let raw = print(format!("{line}\n"));
        for prefix in [
            "[pod/xa/sglang] ",
            "xa  | ",
            "2026-06-03T10:00:00.123456789Z ",
            "Jun 03 10:00:00 xa python3[762]: ",
        ] {
            assert_eq!(print(format!("{prefix}{line}\n")), raw, "{prefix}");
        }
        let object =
            serde_json::json!({"log": format!("{line}\n"), "stream": "stderr", "time": "2026-06-03T10:00:00.1Z"});
        assert_eq!(print(format!("{object}\n")), raw, "Docker's json-file");
    }
}
