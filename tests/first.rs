//! Who is named first, and what is said of ranks, where each process, rank or node has a file of its own.

mod common;

use std::collections::BTreeMap;

use common::{Text, examine_texts, examine_texts_with, root_process};
use coroner::report::model::Report;

/// A log of vLLM with a file for each process: by the labels of its lines, which are kept or left out.
fn by_process(path: &str, labelled: bool) -> Vec<Text> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for line in Text::read(path).text().split_inclusive('\n') {
        let label = line.strip_prefix('(').and_then(|rest| rest.split_once(") "));
        let label = label.filter(|(label, _)| label.contains(" pid="));
        let (name, rest) = label.map_or(("streams", line), |(label, rest)| (label, rest));
        let kept = if labelled { line } else { rest };
        files.entry(name.replace(" pid=", "-pid")).or_default().push_str(kept);
    }
    files
        .into_iter()
        .map(|(name, text)| Text::new(format!("{name}.log"), text))
        .collect()
}

/// The files under names that tell nothing, in an order that starts with the n-th.
fn renamed(files: &[Text], n: usize, backwards: bool) -> Vec<Text> {
    let count = files.len();
    let place = |at: usize| {
        if backwards {
            (count + n - at) % count
        } else {
            (at + n) % count
        }
    };
    let name = |at: usize| format!("{}.log", char::from(b'a' + u8::try_from(place(at)).unwrap()));
    files
        .iter()
        .enumerate()
        .map(|(at, file)| Text::new(name(at), file.bytes.clone()))
        .collect()
}

/// What must not depend on names: all that is judged, and the line that states it.
fn judged(report: &Report) -> (String, Option<String>, Option<(String, String)>, u64, String) {
    let root = report.root.as_ref().unwrap();
    (
        report.headline.clone(),
        report.phase.clone(),
        report.cause.as_ref().map(|c| (c.id.clone(), c.confidence.to_string())),
        root.place.line,
        root.place.text.clone(),
    )
}

fn finding<'r>(report: &'r Report, id: &str) -> Option<&'r str> {
    report.findings.iter().find(|f| f.id == id).map(|f| f.title.as_str())
}

#[test]
fn who_only_quotes_a_failure_is_not_who_died_of_it() {
    let log = "corpus/flagship-c-graph-capture-oom.log";
    for labelled in [true, false] {
        let files = by_process(log, labelled);
        let report = examine_texts(&files);
        let root = root_process(&report);
        assert_eq!((root.rank, root.pid), (Some(1), Some(4114)), "{}", root.id);
        assert!(
            report
                .root
                .as_ref()
                .unwrap()
                .place
                .text
                .contains("torch.OutOfMemoryError")
        );
        assert_eq!(report.cause.as_ref().unwrap().id, "gpu-oom.graph-capture");
        let told = judged(&examine_texts(&renamed(&files, 0, false)));
        assert!(told.4.contains("torch.OutOfMemoryError"), "{told:?}");
        for n in 0..files.len() {
            for backwards in [false, true] {
                assert_eq!(
                    judged(&examine_texts(&renamed(&files, n, backwards))),
                    told,
                    "{labelled} {n}"
                );
            }
        }
    }
}

#[test]
fn who_was_cut_off_while_saying_what_another_quotes_is_who_died() {
    let mut files = by_process("corpus/flagship-c-graph-capture-oom.log", true);
    let worker = files.iter_mut().find(|f| f.name.starts_with("Worker_TP1")).unwrap();
    let end = worker.text().find("torch.OutOfMemoryError").unwrap();
    let end = worker.text()[..end].rfind('\n').unwrap() + 1;
    worker.bytes.truncate(end);
    let report = examine_texts(&files);
    assert_eq!(root_process(&report).rank, Some(1), "{}", report.headline);
    assert_eq!(report.cause.as_ref().unwrap().id, "gpu-oom.graph-capture");
    assert!(report.root.unwrap().place.text.contains("Worker failed with error"));
}

/// A rank that loads its model and fails at the given second.
fn rank(rank: u32, second: u32, error: &str) -> String {
    let p = |level: &str, s: u32| format!("(Worker_TP{rank} pid={}) {level} 11-29 14:01:{s:02}", 500 + rank);
    format!(
        "{} [parallel_state.py:1607] world_size=2 rank={rank} local_rank={rank} distributed_init_method=tcp://192.0.2.2:45907 backend=nccl\n\
         {} [gpu_model_runner.py:5209] Starting to load model /models/llama-8b...\n\
         {}",
        p("INFO", 0),
        p("INFO", 1),
        common::load_failure(&p("ERROR", second), error),
    )
}

const FULL: &str = "OSError: [Errno 28] No space left on device: '/cache/vllm/torch_compile_cache'";
const STALE: &str = "OSError: [Errno 116] Stale file handle: '/models/llama-8b/model-00001.safetensors'";
const MEMORY: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 has a total capacity of 79.19 GiB of which 41.06 MiB is free.";

#[test]
fn what_two_files_state_in_one_second_has_no_order() {
    let named = |a: &str, b: &str, seconds: [u32; 2], errors: [&str; 2]| {
        examine_texts(&[
            Text::new(a, rank(0, seconds[0], errors[0])),
            Text::new(b, rank(1, seconds[1], errors[1])),
        ])
    };
    let sure = |report: &Report| report.cause.as_ref().unwrap().confidence;
    let apart = named("a.log", "b.log", [30, 31], [MEMORY, FULL]);
    assert_eq!(root_process(&apart).rank, Some(0));
    assert_eq!(finding(&apart, "order.unknown"), None);
    let after = named("a.log", "b.log", [32, 31], [MEMORY, FULL]);
    assert_eq!(root_process(&after).rank, Some(1));

    let one = named("a.log", "b.log", [31, 31], [MEMORY, FULL]);
    let other = named("b.log", "a.log", [31, 31], [MEMORY, FULL]);
    assert_eq!(judged(&one).0, judged(&other).0);
    assert_eq!(judged(&one).2, judged(&other).2);
    let told = finding(&one, "order.unknown").expect("neither was seen to be first");
    assert!(
        told.contains("gpu-oom.weights") && told.contains("env.disk-full"),
        "{told}"
    );
    assert!(told.contains("a.log") && told.contains("b.log"), "{told}");
    assert!(one.story.contains("is not known"), "{}", one.story);
    assert!(
        sure(&one) < 0.6 && sure(&one) + 0.25 < sure(&apart),
        "{} {}",
        sure(&one),
        sure(&apart)
    );
    let rival = one.alternatives.first().unwrap();
    assert!(rival.confidence > 0.3, "{} {}", rival.id, rival.confidence);
    assert!(rival.why_not.contains("not known"), "{}", rival.why_not);

    // Of one cause it does not matter who came first, and yet nobody knows.
    let same = named("a.log", "b.log", [31, 31], [MEMORY, MEMORY]);
    assert!(
        finding(&same, "order.unknown")
            .unwrap()
            .contains("states the same cause")
    );
    assert!(sure(&same) > 0.9, "{}", sure(&same));
    assert!(!same.story.contains("is not known"), "{}", same.story);
    // In one stream the lines have an order.
    let lines = [rank(0, 31, STALE), rank(1, 31, FULL)].concat();
    assert_eq!(
        finding(&examine_texts(&[Text::new("all.log", lines)]), "order.unknown"),
        None
    );
}

/// A rank that has met its peer, and then prints these lines.
#[test]
fn containers_that_are_printed_one_below_the_other_are_ordered_by_their_stamps() {
    // `docker compose logs --timestamps`: all of one container, then all of the next; one daemon stamps them.
    let printed = |name: &str, n: u32, from: u32, error: &str| -> String {
        let line = |(i, l): (u32, &str)| format!("{name}  | 2026-08-14T06:00:{:02}.000000000Z {l}\n", from + i);
        (0..).zip(rank(n, from, error).lines()).map(line).collect()
    };
    let grouped = |a: u32, b: u32| {
        let text = [printed("serve-a-1", 0, a, MEMORY), printed("serve-b-1", 1, b, FULL)].concat();
        examine_texts(&[Text::new("compose.log", text)])
    };
    assert_eq!(root_process(&grouped(38, 10)).rank, Some(1));
    assert_eq!(root_process(&grouped(10, 38)).rank, Some(0));
}

fn job(rank: u32, lines: &str) -> Text {
    let met = format!(
        "INFO 11-29 14:00:01 [parallel_state.py:1200] world_size=2 rank={rank} local_rank=0 distributed_init_method=tcp://10.0.0.1:29500 backend=nccl\n"
    );
    let lines: String = lines.lines().map(|line| format!("[rank{rank}]: {line}\n")).collect();
    Text::new(format!("rank{rank}.log"), met + &lines)
}

const LOST: &str = "Traceback (most recent call last):\n  File \"/home/user/train.py\", line 33, in <module>\n    dist.all_reduce(x)\n  File \"/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py\", line 2810, in all_reduce\n    work.wait()\nRuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:34567";
const CUT: &str = "Traceback (most recent call last):\n  File \"/home/user/train.py\", line 31, in <module>\n    model = load(args)\n  File \"/home/user/model.py\", line 12, in load\n    state = torch.load(path)";

#[test]
fn a_traceback_that_its_file_cuts_off_is_a_failure() {
    for cut in [
        CUT,
        &CUT[..CUT.rfind('\n').unwrap()],
        &format!("{CUT}\nRuntimeErr"),
        "Traceback (most recent call last):",
    ] {
        for reports in [
            examine_texts(&[job(0, LOST), job(1, cut)]),
            examine_texts(&[job(1, cut), job(0, LOST)]),
        ] {
            assert_eq!(reports.outcome.id(), "failed");
            assert_eq!(root_process(&reports).rank, Some(1), "{}", reports.headline);
            assert_eq!(reports.cause.as_ref().unwrap().id, "unknown.exception");
            assert!(
                reports.headline.contains("its log ends before it says which"),
                "{}",
                reports.headline
            );
            assert!(reports.log.missing.is_empty(), "{:?}", reports.log.missing);
            assert!(!reports.headline.contains("without a word"));
        }
    }
    let known = examine_texts(&[job(0, LOST), job(1, CUT)]);
    assert!(known.headline.contains("in load (model.py:12)"), "{}", known.headline);
    assert_eq!(known.exception.as_ref().unwrap().frames.len(), 2);
    // A cut traceback in the code that waits for the peers may be of one that lost them, and says less than who says so.
    let waits = LOST.rsplit_once('\n').unwrap().0;
    let both = examine_texts(&[job(0, LOST), job(1, waits)]);
    assert_eq!(root_process(&both).rank, Some(0), "{}", both.headline);
    // One that was torn by something else is none: its process went on.
    let on = format!("{}INFO 11-29 14:00:09 [loader.py:1] loaded\n", job(1, CUT).text());
    let on: String = on + &"INFO 11-29 14:00:10 [loader.py:1] waiting\n".repeat(300);
    let report = examine_texts(&[Text::new("rank1.log", on)]);
    assert_eq!(report.outcome.id(), "running", "{}", report.headline);
}

fn nodes_of(folder: &str, kept: &[&str]) -> Vec<Text> {
    let file = |node: &&str| Text::read(format!("corpus/{folder}.d/node-{node}.log"));
    kept.iter().map(file).collect()
}

#[test]
fn who_came_who_did_not_and_who_is_not_known_add_up() {
    let torchrun = "torchrun-4-nodes-one-absent";
    let story = |kept: &[&str]| examine_texts(&nodes_of(torchrun, kept));
    let all = story(&["a", "b", "c"]);
    assert!(all.story.contains("3 of 4 ranks came (ranks 0–2)"), "{}", all.story);
    assert!(
        all.story.contains("rank 3 did not, and the logs hold no line of it"),
        "{}",
        all.story
    );
    let two = story(&["a", "b"]);
    assert!(
        two.story
            .contains("the store counted 3 of 4; so of ranks 2, 3 one came too and one did not"),
        "{}",
        two.story
    );
    assert!(two.story.contains("their logs are not in the input"), "{}", two.story);
    assert!(!two.headline.contains("never joined"), "{}", two.headline);
    assert_eq!(two.log.missing, ["ranks 2, 3"]);
    // Who counted is not at hand.
    let others = story(&["b", "c"]);
    assert!(
        others
            .story
            .contains("whether ranks 0, 3 came is not known: their logs are not in the input"),
        "{}",
        others.story
    );

    let nccl = "nccl-64-ranks-one-absent";
    let without_d = examine_texts(&nodes_of(nccl, &["a", "b", "c", "e", "f", "g", "h"]));
    let told = finding(&without_d, "arrival.absent").unwrap();
    assert!(told.starts_with("55 of 64 ranks came"), "{told}");
    assert!(
        told.contains("rank 37 (node-e) did not, and the logs hold no line of it"),
        "{told}"
    );
    assert!(told.contains("whether ranks 24–31 came is not known"), "{told}");
}

#[test]
fn a_rank_whose_own_file_is_not_given_is_not_said_to_be_absent() {
    // The first node's ranks in a file for each.
    let node = Text::read("corpus/nccl-64-ranks-one-absent.d/node-a.log");
    let file = |rank: u32| {
        let names = [format!("node-a:{}:", 4101 + rank), format!("[rank{rank}]:")];
        let lines = node.keep(|line| names.iter().any(|name| line.starts_with(name)));
        let eight = lines.text().replace("nranks 64", "nranks 8");
        Text::new(format!("rank{rank}.log"), eight)
    };
    let given: Vec<Text> = (0..8).filter(|rank| *rank != 3).map(file).collect();
    let report = examine_texts(&given);
    assert!(!report.headline.contains("never joined"), "{}", report.headline);
    assert!(report.headline.contains("the log of rank 3"), "{}", report.headline);
    let told = finding(&report, "arrival.absent").unwrap();
    assert!(
        told.contains("whether rank 3 came is not known: its log is not in the input"),
        "{told}"
    );
    // In one stream of all its absence tells.
    let stream: String = given.iter().map(|f| f.text().to_owned()).collect();
    let report = examine_texts(&[Text::new("all.log", stream)]);
    assert!(
        report.headline.starts_with("Rank 3 never joined"),
        "{}",
        report.headline
    );
}

#[test]
fn only_what_looks_like_a_host_names_a_node() {
    let files = nodes_of("torchrun-4-nodes-one-absent", &["a", "b", "c"]);
    let as_given = examine_texts(&files);
    for names in [
        ["rank0.log", "rank1.log", "rank2.log"],
        ["events/main.log", "events/stderr.log", "events/serve.log"],
        ["main/out.log", "events/out.log", "other/out.log"],
        ["launch-1.log", "launch-2.log", "launch-3.log"],
    ] {
        let renamed: Vec<Text> = files
            .iter()
            .zip(names)
            .map(|(f, name)| Text::new(name, f.bytes.clone()))
            .collect();
        let report = examine_texts(&renamed);
        let nodes: Vec<_> = report.processes.iter().filter_map(|p| p.node.as_deref()).collect();
        assert!(nodes.is_empty(), "{names:?}: {nodes:?}");
        assert_eq!(report.headline, as_given.headline, "{names:?}");
        assert_eq!(
            report.cause.as_ref().map(|c| &c.id),
            as_given.cause.as_ref().map(|c| &c.id)
        );
        let ranks: Vec<_> = report.processes.iter().filter_map(|p| p.rank).collect();
        assert_eq!(ranks.len(), 3, "{names:?}: {ranks:?}");
    }
    // What the lines themselves name stands, whatever a file is called.
    let nccl: Vec<Text> = nodes_of("nccl-64-ranks-one-absent", &["a", "b", "c", "d", "e", "f", "g", "h"])
        .into_iter()
        .enumerate()
        .map(|(at, file)| Text::new(format!("rank{}.log", 8 * at), file.bytes))
        .collect();
    assert_eq!(
        examine_texts(&nccl).headline,
        "Rank 37 (node-e) never joined: 63 of 64 ranks waited for it"
    );
}

#[test]
fn a_log_of_all_nodes_beside_those_of_each_says_nothing_new() {
    let mut files = nodes_of("torchrun-4-nodes-one-absent", &["a", "b", "c"]);
    let alone = examine_texts(&files);
    files.push(Text::new(
        "all.log",
        Text::read("corpus/torchrun-4-nodes-one-absent.log").bytes,
    ));
    let both = examine_texts(&files);
    assert_eq!(both.headline, alone.headline);
    assert_eq!(both.story, alone.story);
    assert_eq!(both.log.missing, ["rank 3"]);
    let ids = |report: &Report| {
        report
            .processes
            .iter()
            .map(|p| p.id.clone())
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(ids(&both), ids(&alone));
}

#[test]
fn a_line_without_a_stamp_has_no_time_of_its_own() {
    let report = examine_texts(&nodes_of("torchrun-4-nodes-one-absent", &["a", "b", "c"]));
    let root = &report.root.as_ref().unwrap().place;
    assert_eq!((root.time.as_deref(), root.time_local.as_deref()), (None, None));
    assert_eq!(root.time_after.as_deref(), Some("11-29T15:00:12"));
    assert_eq!(
        (report.launch.died.as_deref(), report.launch.seconds_to_death),
        (None, None)
    );
    let rows: Vec<_> = report.rows.iter().filter_map(|r| r.when.as_deref()).collect();
    assert!(rows.contains(&"after 11-29T15:00:12"), "{rows:?}");
    // The line of which file is said wherever there are several.
    assert!(
        report.story.contains("Line 11 of node-a.log states it"),
        "{}",
        report.story
    );
    assert!(
        report
            .alternatives
            .iter()
            .any(|a| a.why_not.contains("line 11 of node-a.log"))
    );
    // What a logger prints below its stamp was written with it.
    let log = examine_texts(&[Text::read("corpus/flagship-a-sglang-context-oom.d/node-b.log")]);
    assert!(log.root.unwrap().place.time_local.is_some());
}

#[test]
fn a_log_was_not_collected_before_its_last_line() {
    let log = Text::read("corpus/shm-tiny-stuck.log");
    let report = |now: &str| {
        let options = coroner::Options {
            now: Some(coroner::time::Stamp::dated(now.parse().unwrap())),
            ..coroner::Options::default()
        };
        examine_texts_with(std::slice::from_ref(&log), &options)
    };
    let early = report("2026-11-29T10:00:00");
    let told = finding(&early, "now.early").expect("it lies before the last stamp");
    assert!(told.contains("before the last line of the log"), "{told}");
    assert!(
        early
            .findings
            .iter()
            .all(|f| f.id != "stuck.silent" || !f.title.contains("collected"))
    );
    let late = report("2026-11-29T17:47:47");
    assert_eq!(finding(&late, "now.early"), None);
    let silent = finding(&late, "stuck.silent").unwrap();
    assert!(silent.contains(" h ") && silent.contains(" min"), "{silent}");
}

#[test]
fn launches_of_two_engines_are_no_attempts_of_one() {
    let texts = |folder: &str| ["a", "b"].map(|n| Text::read(format!("corpus/{folder}.d/node-{n}.log")));
    let files = [
        texts("flagship-a-sglang-context-oom"),
        texts("flagship-a-vllm-context-oom"),
    ]
    .concat();
    let report = examine_texts(&files);
    assert_eq!(report.attempts.len(), 1);
    assert!(finding(&report, "inputs.unrelated").is_some());
    // Also where both lie in one folder.
    let together: Vec<Text> = files
        .iter()
        .enumerate()
        .map(|(at, file)| {
            Text::new(
                format!("run/{}-{at}.log", ["head", "worker"][at % 2]),
                file.bytes.clone(),
            )
        })
        .collect();
    let report = examine_texts(&together);
    assert_eq!(report.attempts.len(), 1);
    assert!(finding(&report, "inputs.unrelated").is_some());
}

#[test]
fn a_process_has_one_row_under_all_its_names() {
    let ranks = |report: &Report| {
        let mut ranks: Vec<u32> = report.processes.iter().filter_map(|p| p.rank).collect();
        ranks.sort_unstable();
        ranks
    };
    // NCCL calls the node otherwise than whoever carried the lines.
    let two = examine_texts(&[Text::read("corpus/mn-tp2-two-nodes-healthy.log")]);
    assert_eq!(ranks(&two), [0, 1]);
    // torch names only the rank, vLLM only the label; Gloo's line, which names a rank, is of nobody.
    let mut log = Text::read("corpus/gpu-mem-no-kv-blocks.log");
    let whole = examine_texts(std::slice::from_ref(&log));
    let more = "[Gloo] Rank 0 is connected to 0 peer ranks. Expected number of connected peer ranks is : 0\n\
                [rank0]:[W1129 14:24:19.828180644 ProcessGroupNCCL.cpp:1524] Warning: WARNING: destroy_process_group() was not called before program exit\n";
    log.bytes.extend_from_slice(more.as_bytes());
    let longer = examine_texts(&[log]);
    assert_eq!(ranks(&whole), [0]);
    assert_eq!(
        ranks(&longer),
        [0],
        "{:?}",
        longer.processes.iter().map(|p| &p.id).collect::<Vec<_>>()
    );
}
