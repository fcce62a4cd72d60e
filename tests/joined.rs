//! Many inputs: what is one incident, and who is who across its files.

mod common;

use std::path::{Path, PathBuf};

use common::{Text, examine, examine_texts, examine_with, root_process};
use coroner::report::model::Report;

/// Whether a report says that it left inputs out.
fn left_out(report: &Report) -> Option<&str> {
    let finding = report.findings.iter().find(|f| f.id == "inputs.unrelated");
    finding.map(|f| f.title.as_str())
}

fn folders(below: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(below) else { return };
    for path in entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.is_dir()) {
        if path.extension().is_some_and(|e| e == "d") {
            found.push(path);
        } else {
            folders(&path, found);
        }
    }
}

#[test]
fn the_logs_of_one_launch_stay_one_incident() {
    let mut found = Vec::new();
    folders(Path::new("corpus"), &mut found);
    folders(Path::new("../shared/cases"), &mut found);
    assert!(found.len() >= 4, "the corpus has lost its folders");
    for folder in found {
        let log = folder.with_extension("log");
        for paths in [vec![folder.clone()], vec![folder.clone(), log]] {
            let paths: Vec<PathBuf> = paths.into_iter().filter(|p| p.exists()).collect();
            assert_eq!(left_out(&examine(&paths)), None, "{paths:?}");
        }
    }
}

#[test]
fn unrelated_launches_are_listed_and_the_largest_is_examined() {
    let sglang = "corpus/flagship-a-sglang-context-oom.d";
    let vllm = "corpus/gpu-mem-no-kv-blocks.log";
    let alone = examine(&[sglang.into()]);
    let both = examine(&[vllm.into(), sglang.into()]);
    let told = left_out(&both).expect("two engines are two launches");
    assert!(
        told.contains("gpu-mem-no-kv-blocks.log") && told.contains("coroner scan"),
        "{told}"
    );
    assert_eq!(both.cause.map(|c| c.id), alone.cause.map(|c| c.id));
    assert!(both.examined.skipped.iter().any(|s| s.input == vllm));

    let options = coroner::Options {
        one_incident: true,
        ..coroner::Options::default()
    };
    let forced = examine_with(&[vllm.into(), sglang.into()], &options);
    assert_eq!(left_out(&forced), None);
    assert!(forced.examined.skipped.is_empty());
}

#[test]
fn whole_launches_of_one_model_are_unrelated_only_far_apart_in_time() {
    let first = Text::read("corpus/gpu-oom-context.log");
    let at = |stamp: &str| {
        Text::new(
            format!("{stamp}.log"),
            first
                .text()
                .replace("11-29 ", &format!("{stamp} "))
                .replace("1129 ", &format!("{} ", stamp.replace('-', ""))),
        )
    };
    let soon = examine_texts(&[at("11-29"), at("11-30")]);
    assert_eq!(left_out(&soon), None, "a day may be a matter of zones");
    let later = examine_texts(&[at("11-02"), at("11-29")]);
    assert!(left_out(&later).is_some());
}

#[test]
fn nodes_that_name_nothing_in_common_are_one_launch() {
    // No shared host, pid, address or stamp; one of them does not even say which engine it runs.
    let node = |name: &str, text: &str| Text::new(name, text);
    let report = examine_texts(&[
        node(
            "x1.log",
            "INFO 11-29 14:00:00 [api_server.py:1] vLLM API server version 0.25.1\n",
        ),
        node(
            "x2.log",
            "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n",
        ),
    ]);
    assert_eq!(left_out(&report), None);
}

#[test]
fn the_kernels_victim_is_the_rank_that_was_killed() {
    let report = examine(&["corpus/torch-oomkill.log".into(), "corpus/torch-oomkill.d".into()]);
    assert_eq!(
        report.cause.as_ref().map(|c| c.id.as_str()),
        Some("host-mem.oom-killer")
    );
    let victim = root_process(&report);
    assert_eq!((victim.rank, victim.pid), (Some(1), Some(25)), "{}", victim.id);
    assert_eq!(report.phase.as_deref(), Some("distributed-init"));
    assert_eq!(report.processes.iter().filter(|p| p.rank == Some(1)).count(), 1);
    assert!(!report.processes.iter().any(|p| p.pid == Some(26964)));
}

#[test]
fn a_kill_that_could_be_of_either_of_two_ranks_is_attributed_to_none() {
    let mut log = Text::read("corpus/torch-oomkill.log");
    let text = log.text().replace(
        "exitcode  : -15 (pid: 24)  (SIGTERM)",
        "exitcode  : -9 (pid: 24)  (SIGKILL)",
    );
    log.bytes = text.into_bytes();
    let report = examine_texts(&[log, Text::read("corpus/torch-oomkill.d/dmesg.txt")]);
    assert_eq!(root_process(&report).rank, None);
}

#[test]
fn what_a_launch_did_when_a_daemon_failed_is_its_phase() {
    let report = examine(&[
        "corpus/ray260-fd-limit-many.d".into(),
        "corpus/ray260-fd-limit-many.log".into(),
    ]);
    assert_eq!(report.phase.as_deref(), Some("cluster-join"));
}

#[test]
fn a_worker_is_one_process_under_its_host_name_and_its_address() {
    let report = examine(&["corpus/flagship-b-ray255-monitor.d/node-a.log".into()]);
    let same: Vec<_> = report.processes.iter().filter(|p| p.pid == Some(1879)).collect();
    assert_eq!(same.len(), 1, "{same:?}");
    assert_eq!(same[0].node.as_deref(), Some("node-b"));
}

#[test]
fn a_second_witness_makes_a_verdict_surer() {
    let folder = Path::new("corpus/flagship-b-ray255-monitor.d");
    let confidence = |report: Report| report.cause.map_or(0.0, |c| c.confidence);
    let one = confidence(examine(&[folder.join("node-a.log")]));
    let both = confidence(examine(&[folder.to_path_buf()]));
    assert!(both > one, "{both} with raylet.out, {one} without");
}

/// The files of a folder of the corpus, by name.
fn node_files(folder: &str) -> Vec<Text> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|e| e.ok().map(|e| e.path()))
        .collect();
    paths.sort();
    paths.into_iter().map(Text::read).collect()
}

/// Files of several nodes as compose prints them in one stream; `cut` gives the end of each line's stamp.
fn one_stream(files: &[Text], cut: usize) -> Text {
    let mut lines: Vec<(String, String)> = Vec::new();
    for file in files {
        let node = Path::new(&file.name)
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let mut last = String::new();
        for line in file.text().lines() {
            if line.starts_with("[20") {
                last = line[1..cut].to_owned();
            }
            lines.push((last.clone(), format!("{node}  | {line}\n")));
        }
    }
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    let text: String = lines.into_iter().map(|(_, line)| line).collect();
    Text::new("both.log", text)
}

fn verdict(report: &Report) -> (Option<String>, Option<String>, Option<u32>, Option<String>) {
    let root = report.root.as_ref().map(|r| &r.place);
    (
        report.cause.as_ref().map(|c| c.id.clone()),
        report.phase.clone(),
        root.and_then(|r| r.rank),
        root.and_then(|r| r.node.clone()),
    )
}

#[test]
fn the_absent_rank_and_its_node_stand_in_the_first_screen() {
    let stream = examine(&["corpus/nccl-64-ranks-one-absent.log".into()]);
    let files = examine(&["corpus/nccl-64-ranks-one-absent.d".into()]);
    assert_eq!(verdict(&stream), verdict(&files));
    for report in [stream, files] {
        let page = coroner::report::terminal::render(&report, &coroner::report::Style::default());
        let first: Vec<&str> = page.lines().take(20).collect();
        assert!(first[0].contains("Rank 37 (node-e)"), "{page}");
        assert!(first.join(" ").contains("63 of 64 ranks"), "{page}");
        assert_eq!(report.log.missing, ["rank 37 (node-e)"]);
        // 62 ranks that ended alike are one row beside the one that is quoted.
        assert!(page.contains("ranks 1–36, 38–63 on 8 nodes"), "{page}");
    }
}

#[test]
fn a_rank_that_all_others_met_is_not_absent() {
    let log = Text::read("corpus/nccl-64-ranks-one-absent.log");
    let met = "node-a:4101:4101 [0] NCCL INFO Bootstrap timings total 0.126246 (create 0.000050, send 0.000135, recv 0.125553, ring 0.000134, delay 0.000002)\n";
    let at = log.text().find("[rank0]").unwrap();
    let text = format!("{}{met}{}", &log.text()[..at], &log.text()[at..]);
    let report = examine_texts(&[Text::new("all.log", text)]);
    assert!(!report.findings.iter().any(|f| f.id == "arrival.absent"));
    assert!(report.log.missing.is_empty());
}

#[test]
fn the_store_and_the_logs_agree_on_who_came() {
    let stream = examine(&["corpus/torchrun-4-nodes-one-absent.log".into()]);
    let files = examine(&["corpus/torchrun-4-nodes-one-absent.d".into()]);
    assert_eq!(verdict(&stream), verdict(&files));
    for report in [stream, files] {
        assert!(report.headline.contains("Rank 3"), "{}", report.headline);
        assert!(report.story.contains("3 of 4"), "{}", report.story);
        assert_eq!(report.log.missing, ["rank 3"]);
    }
}

#[test]
fn two_nodes_have_one_verdict_as_one_stream_and_as_two_files() {
    let files = node_files("corpus/flagship-a-sglang-context-oom.d");
    let stream = examine_texts(&[one_stream(&files, 20)]);
    assert_eq!(verdict(&stream), verdict(&examine_texts(&files)));
    assert_eq!(stream.cause.map(|c| c.id).as_deref(), Some("gpu-oom.context"));
}

#[test]
fn what_nodes_do_not_have_in_common_is_pointed_out() {
    let mut files = node_files("corpus/nccl-64-ranks-one-absent.d");
    let text = files[2]
        .text()
        .replace("eth0", "docker0")
        .replace("2.27.5+cuda12.9", "2.28.9+cuda12.9");
    files[2].bytes = text.into_bytes();
    let report = examine_texts(&files);
    let told: Vec<&str> = report
        .findings
        .iter()
        .filter(|f| f.id == "nodes.differ")
        .map(|f| f.title.as_str())
        .collect();
    assert!(
        told.iter()
            .any(|t| t.contains("NCCL version") && t.contains("2.28.9 on node-c")),
        "{told:?}"
    );
    assert!(
        told.iter()
            .any(|t| t.contains("interface") && t.contains("docker0 on node-c")),
        "{told:?}"
    );
}

#[test]
fn a_log_that_stops_tells_how_long_each_process_is_silent() {
    let log = Text::read("corpus/shm-tiny-stuck.log");
    let inputs = [coroner::intake::InputSpec::memory(log.name.clone(), log.bytes.clone())];
    let report = |now: Option<&str>| {
        let options = coroner::Options {
            now: now.map(|t| coroner::time::Stamp::dated(t.parse().unwrap())),
            ..coroner::Options::default()
        };
        coroner::examine(coroner::catalog::Catalog::shared(), &inputs, &options)
    };
    let silent = |report: &Report| report.findings.iter().filter(|f| f.id == "stuck.silent").count();
    let collected = report(Some("2026-11-29T15:37:47"));
    assert!(silent(&collected) > 0, "{:?}", collected.findings);
    let told = collected.findings.iter().find(|f| f.id == "stuck.silent").unwrap();
    assert!(told.title.contains("collected"), "{}", told.title);
    // Nobody knows how long ago a lone last line was.
    assert!(report(None).findings.iter().all(|f| !f.title.contains("collected,")));
    for report in [report(None), collected] {
        assert!(
            report.story.contains("If it hangs, the likeliest cause is"),
            "{}",
            report.story
        );
        let likely = report.alternatives.first().unwrap();
        assert!(likely.confidence < 0.3, "no line states {}", likely.id);
        // It has no peers to wait for.
        assert!(
            report
                .alternatives
                .iter()
                .all(|a| !a.id.starts_with("nccl.") && !a.id.contains("peer"))
        );
    }
}

#[test]
fn the_table_of_a_recorded_run_has_each_process_once() {
    let mut runs: Vec<PathBuf> = common::cases()
        .iter()
        .flat_map(|c| [c.log(), c.folder()])
        .flatten()
        .collect();
    runs.sort();
    for run in runs {
        let report = examine(std::slice::from_ref(&run));
        let mut seen = std::collections::BTreeSet::new();
        for process in report.processes.iter().filter(|p| p.pid.is_some()) {
            assert!(
                seen.insert((&process.node, process.pid)),
                "{}: {}",
                run.display(),
                process.id
            );
        }
        let root = report.root.as_ref().and_then(|r| r.place.process.as_deref());
        assert!(
            root.is_none_or(|id| report.processes.iter().any(|p| p.id == id)),
            "{}: {root:?}",
            run.display()
        );
    }
}

#[test]
fn the_table_says_who_died_first_and_who_merely_noticed() {
    let rows = |path: &str| -> Vec<(String, Option<String>, bool)> {
        let report = examine(&[path.into()]);
        let rows = report.rows.iter();
        rows.map(|r| (r.who.clone(), r.exit.clone(), r.victim)).collect()
    };
    let told = |rows: &[(String, Option<String>, bool)], who: &str| {
        rows.iter()
            .find(|r| r.0.contains(who))
            .map(|r| (r.1.clone(), r.2))
            .unwrap_or_else(|| panic!("{who} in {rows:?}"))
    };
    let torchrun = rows("corpus/torchrun-4-nodes-one-absent.d");
    assert_eq!(told(&torchrun, "pid=23"), (Some("exit 1".to_owned()), true));
    let ray = rows("corpus/flagship-b-ray260-monitor.d");
    assert!(told(&ray, "pid=1879").1, "{ray:?}");
    assert_eq!(ray.iter().filter(|r| r.2).count(), 1, "{ray:?}");
}

/// Every folder of logs of one launch: those of the corpus and, where they are at hand, of a larger collection.
fn launches_of_many_files() -> Vec<Vec<Text>> {
    let mut found = Vec::new();
    folders(Path::new("corpus"), &mut found);
    folders(Path::new("../shared/cases"), &mut found);
    if found.iter().all(|f| f.starts_with("corpus")) {
        eprintln!("../shared/cases is not at hand: only the corpus is examined");
    }
    let texts = |folder: &PathBuf| {
        let inputs =
            coroner::intake::discover(std::slice::from_ref(folder), &coroner::intake::Limits::default()).inputs;
        inputs.iter().map(|i| Text::read(&i.name)).collect::<Vec<Text>>()
    };
    found.iter().map(texts).filter(|files| files.len() > 1).collect()
}

#[test]
fn the_order_in_which_inputs_are_given_tells_nothing() {
    let all = launches_of_many_files();
    assert!(all.len() >= 4, "the corpus has lost its folders");
    for files in all {
        let report = |files: &[Text]| {
            let mut report = examine_texts(files);
            report.source.clear();
            serde_json::to_value(&report).unwrap()
        };
        let given = report(&files);
        let backwards: Vec<Text> = files.iter().rev().cloned().collect();
        // Odd places first: neither order is a rotation of the other.
        let (even, odd): (Vec<_>, Vec<_>) = files.iter().cloned().enumerate().partition(|(i, _)| i % 2 == 0);
        let mixed: Vec<Text> = odd.into_iter().chain(even).map(|(_, file)| file).collect();
        assert_eq!(report(&backwards), given, "{}", files[0].name);
        assert_eq!(report(&mixed), given, "{}", files[0].name);
    }
}

/// Two nodes that meet at `14:00:10` and of which the second fails first, by its own clock `ahead` seconds too late.
fn two_clocks(ahead: i64) -> [Text; 2] {
    let at = |seconds: i64| {
        let seconds = 14 * 3600 + seconds;
        format!(
            "11-29 {:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    };
    let node = |node: &str, rank: u32, ahead: i64, failed: i64, error: &str| {
        let p = |level: &str, s: i64| format!("(Worker_TP{rank} pid={}) {level} {}", 500 + rank, at(s + ahead));
        let text = format!(
            "{} [parallel_state.py:1607] world_size=2 rank={rank} local_rank=0 distributed_init_method=tcp://192.0.2.2:45907 backend=nccl\n\
             {} [parallel_state.py:1942] rank {rank} in world size 2 is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank {rank}, EP rank N/A, EPLB rank N/A\n\
             {} [gpu_model_runner.py:5209] Starting to load model /models/llama-8b...\n\
             {}",
            p("INFO", 0),
            p("INFO", 10),
            p("INFO", 11),
            common::load_failure(&p("ERROR", failed), error),
        );
        Text::new(format!("{node}.log"), text)
    };
    [
        node(
            "node-a",
            0,
            0,
            62,
            "OSError: [Errno 116] Stale file handle: '/models/llama-8b/model-00001.safetensors'",
        ),
        node(
            "node-b",
            1,
            ahead,
            30,
            "OSError: [Errno 28] No space left on device: '/cache/vllm/torch_compile_cache'",
        ),
    ]
}

#[test]
fn deaths_on_several_nodes_are_ordered_by_one_clock() {
    let clocks = |report: &Report| {
        let finding = report.findings.iter().find(|f| f.id == "clocks.differ");
        finding.map(|f| f.title.clone())
    };
    let together = examine_texts(&two_clocks(0));
    assert_eq!(clocks(&together), None);
    assert_eq!(together.root.as_ref().unwrap().place.node.as_deref(), Some("node-b"));
    for (ahead, told) in [
        (7200, "2 h ahead of"),
        (300, "5 min ahead of"),
        (-75, "1 min 15 s behind"),
    ] {
        let report = examine_texts(&two_clocks(ahead));
        let said = clocks(&report).unwrap_or_default();
        assert!(said.contains(told), "{ahead}: {said}");
        assert_eq!(said.contains("time zones"), ahead == 7200, "{said}");
        assert_eq!(verdict(&report), verdict(&together), "{ahead}");
    }
}

#[test]
fn clocks_that_share_no_moment_are_not_set_right() {
    let mut nodes = two_clocks(7200);
    for node in &mut nodes {
        let kept: String = node
            .text()
            .lines()
            .filter(|l| !l.contains("is assigned as"))
            .map(|l| format!("{l}\n"))
            .collect();
        node.bytes = kept.into_bytes();
    }
    let report = examine_texts(&nodes);
    assert!(!report.findings.iter().any(|f| f.id == "clocks.differ"));
}

/// Two nodes that fail of their own before they meet, at these seconds and by clocks of these zones.
fn unmet(failed: [i64; 2], began: [i64; 2]) -> Report {
    let node = |name: &str, at: i64, began: i64, error: &str| {
        let clock = |s: i64| format!("11-29 {:02}:{:02}:{:02}", 12 + s / 3600, s / 60 % 60, s % 60);
        let p = |level: &str, s: i64| format!("(Worker_TP0 pid=50) {level} {}", clock(began + s));
        let text = format!(
            "{} [gpu_model_runner.py:5209] Starting to load model /models/llama-8b...\n{}",
            p("INFO", 0),
            common::load_failure(&p("ERROR", at), error),
        );
        Text::new(format!("{name}.log"), text)
    };
    let memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
                  79.10 GiB of which 1.00 GiB is free.";
    let full = "OSError: [Errno 28] No space left on device: '/cache/vllm/torch_compile_cache'";
    examine_texts(&[
        node("node-a", failed[0], began[0], memory),
        node("node-b", failed[1], began[1], full),
    ])
}

#[test]
fn seconds_between_clocks_that_nothing_compares_tell_no_order() {
    let unknown = |report: &Report| {
        let found = report.findings.iter().find(|f| f.id == "order.unknown");
        found.map(|f| f.title.clone())
    };
    let told = unknown(&unmet([58, 55], [0, 0])).expect("three seconds may be the clocks'");
    assert!(
        told.contains("nothing in the logs compares the clocks of node-a and node-b")
            || told.contains("nothing in the logs compares the clocks of node-b and node-a"),
        "{told}"
    );
    // Clocks that are set right from time to time are not minutes apart.
    let apart = unmet([400, 55], [0, 0]);
    assert_eq!(unknown(&apart), None);
    assert_eq!(apart.root.as_ref().unwrap().place.node.as_deref(), Some("node-b"));
    // Two hours may be two zones.
    assert!(unknown(&unmet([400, 55], [0, 7200])).is_some());
    // Where they met, the stamps tell.
    assert_eq!(unknown(&examine_texts(&two_clocks(0))), None);
}

#[test]
fn two_nodes_of_ray_have_one_verdict_as_one_stream_and_as_files() {
    for id in ["flagship-b-ray255-monitor", "flagship-b-ray260-monitor"] {
        let folder = format!("corpus/{id}.d");
        let mut lines: Vec<(String, String)> = Vec::new();
        for (node, file) in [("node-a", "node-a.log"), ("node-b", "node-b/raylet.out")] {
            let mut last = String::new();
            for line in Text::read(Path::new(&folder).join(file)).text().lines() {
                // `05-20 08:16:47` of either program.
                if let Some(at) = line.find("05-20 ").filter(|at| *at < 80) {
                    last = line.get(at..at + 14).unwrap_or(&last).to_owned();
                }
                lines.push((last.clone(), format!("{node}  | {line}\n")));
            }
        }
        lines.sort_by(|a, b| a.0.cmp(&b.0));
        let stream = Text::new("both.log", lines.into_iter().map(|(_, line)| line).collect::<String>());
        let (stream, files) = (examine_texts(&[stream]), examine(&[folder.into()]));
        assert_eq!(verdict(&stream), verdict(&files), "{id}");
        assert_eq!(stream.cause.map(|c| c.id).as_deref(), Some("host-mem.ray-monitor"));
        assert_eq!(stream.root.unwrap().place.node.as_deref(), Some("node-b"));
    }
}

#[test]
fn the_call_that_noticed_a_death_is_no_root() {
    let report = examine(&["corpus/flagship-b-ray260-monitor.d/node-a.log".into()]);
    let root = &report.root.as_ref().unwrap().place;
    assert!(!root.text.contains("Executor failed"), "{}", root.text);
    assert_eq!(report.phase.as_deref(), Some("graph-capture"));
}

#[test]
fn nobody_has_waited_in_vain_while_the_launch_runs() {
    let log = Text::read("corpus/nccl-64-ranks-one-absent.log");
    let waiting = Text::new("all.log", &log.text()[..log.text().find("[rank0]").unwrap()]);
    let report = examine_texts(&[waiting]);
    assert_eq!(report.outcome.id(), "running");
    assert!(
        report
            .headline
            .contains("Rank 37 (node-e) has not joined: 63 of 64 ranks wait"),
        "{}",
        report.headline
    );
}

#[test]
fn story_and_table_quote_the_root_at_one_line() {
    for case in common::cases().into_iter().filter(|c| c.log().is_some()) {
        let report = examine(&[case.log().unwrap()]);
        let Some(root) = &report.root else { continue };
        for victim in report.rows.iter().filter(|r| r.victim) {
            assert_eq!(victim.line, Some(root.place.line), "{}", case.id);
        }
    }
}

#[test]
fn the_time_to_death_is_by_the_victims_own_clock_where_nothing_compares_it_with_the_others() {
    let agent = |node: &str, start: &str, first: u32, end: &str| {
        Text::new(
            format!("{node}.log"),
            format!(
                "W0620 {start}.500000 4100 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n\
                 INFO 06-20 {start} [infer.py:44] init_process_group rank={first} world=2 master=node-a:29400\n{end}"
            ),
        )
    };
    let killed = "E0620 11:02:31.202000 4100 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: -9) local_rank: 0 (pid: 5203) of binary: /opt/venv/bin/python3\n";
    // One clock is seven minutes slow.
    let report = examine_texts(&[
        agent("node-a", "10:53:01", 0, ""),
        agent("node-b", "11:00:02", 1, killed),
    ]);
    assert_eq!(report.cause.unwrap().id, "process.sigkill");
    let seconds = report.launch.seconds_to_death.unwrap();
    assert!((148.0..150.0).contains(&seconds), "{seconds}");
}
