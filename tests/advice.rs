//! Advice on whole logs: what the log itself advises and is wrong, the form of the change, what to look at next, and
//! one pool of memory recognised from what the log says.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::{Overruled, Report};

fn report(text: &str) -> Report {
    examine_texts(&[Text::new("launch.log", text)])
}

fn cause(report: &Report) -> &str {
    report.cause.as_ref().map_or("none", |cause| cause.id.as_str())
}

fn overruled<'a>(report: &'a Report, advice: &str) -> Option<&'a Overruled> {
    report.overruled_advice.iter().find(|wrong| wrong.text.contains(advice))
}

fn commands(report: &Report) -> Vec<&str> {
    report.next_evidence.iter().map(|next| next.command.as_str()).collect()
}

// --- advice in the log that is wrong

/// A launch of the older engine, which prints the whole budget.
fn no_kv_blocks(weights: &str, share: &str, kv: &str) -> Report {
    report(&format!(
        "\
INFO 02-10 12:00:00 [llm_engine.py:240] Initializing a V0 LLM engine (v0.8.5) with config: model='m', speculative_config=None
INFO 02-10 12:01:00 [worker.py:267] Memory profiling takes 5.00 seconds
INFO 02-10 12:01:00 [worker.py:267] the current vLLM instance can use total_gpu_memory (79.10GiB) x gpu_memory_utilization ({share}) = 75.15GiB
INFO 02-10 12:01:00 [worker.py:267] model weights take {weights}GiB; non_torch_memory takes 0.15GiB; PyTorch activation peak memory takes 1.20GiB; the rest of the memory reserved for KV Cache is {kv}GiB.
Traceback (most recent call last):
  File \"/opt/vllm/engine/llm_engine.py\", line 420, in _initialize_kv_caches
    self.model_executor.initialize_cache(num_gpu_blocks, num_cpu_blocks)
  File \"/opt/vllm/worker/worker.py\", line 580, in raise_if_cache_size_invalid
    raise ValueError(\"No available memory for the cache blocks. \"
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
"
    ))
}

#[test]
fn no_larger_share_where_the_weights_fill_the_card() {
    let told = no_kv_blocks("76.20", "0.95", "-2.40");
    assert_eq!(cause(&told), "gpu-mem.no-kv-blocks");
    let wrong = overruled(&told, "increase gpu_memory_utilization").expect("overruled");
    assert!(wrong.why.contains("76.20 GiB"), "{}", wrong.why);
    let raised = |told: &Report| {
        let mut titles = told.remedies.iter().map(|remedy| remedy.title.as_str());
        titles.any(|title| title.starts_with("Raise --gpu-memory-utilization"))
    };
    assert!(!raised(&told), "{:#?}", told.remedies);
    // With room to raise it the advice is right.
    let told = no_kv_blocks("30.50", "0.40", "-0.21");
    assert!(told.overruled_advice.is_empty(), "{:?}", told.overruled_advice);
    assert!(raised(&told));
}

const SGLANG_HEAD: &str = "\
[2026-03-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=1, mem_fraction_static=FRACTION, api_key='sk-hidden0123456789')
[2026-03-01 10:00:08] Init torch distributed begin.
[2026-03-01 10:00:09] Init torch distributed ends. mem usage=0.00 GB
[2026-03-01 10:00:09] Load weight begin. avail mem=78.60 GB
[2026-03-01 10:00:29] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=9.60 GB, mem usage=69.00 GB.
";

const NO_POOL: &str = "\
[2026-03-01 10:00:30] Scheduler hit an exception: Traceback (most recent call last):
  File \"/opt/sglang/srt/managers/scheduler.py\", line 2510, in run_scheduler_process
    scheduler = Scheduler(server_args, port_args)
  File \"/opt/sglang/srt/model_executor/model_runner.py\", line 1300, in init_memory_pool
    raise RuntimeError(
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.

[2026-03-01 10:00:31] Received sigquit from a child process. It usually means the child failed.
";

const NO_GRAPHS: &str = "\
[2026-03-01 11:00:31] KV Cache is allocated. #tokens: 40000, K size: 2.10 GB, V size: 2.10 GB
[2026-03-01 11:00:31] Memory pool end. avail mem=3.10 GB
[2026-03-01 11:00:32] Capture cuda graph begin. This can take up to several minutes. avail mem=2.60 GB
[2026-03-01 11:00:33] Capture cuda graph bs [1, 2, 4, 8, 16, 24, 32, 160]
[2026-03-01 11:00:40] Scheduler hit an exception: Traceback (most recent call last):
  File \"/opt/sglang/srt/model_executor/cuda_graph_runner.py\", line 390, in __init__
    self.capture()
  File \"/opt/sglang/srt/model_executor/cuda_graph_runner.py\", line 480, in capture
    ) = self.capture_one_batch_size(bs, forward)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 0.62 GiB is free. Including non-PyTorch memory, this process has 78.48 GiB memory in use. Of the allocated memory 77.20 GiB is allocated by PyTorch, and 88.41 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"/opt/sglang/srt/managers/scheduler.py\", line 2510, in run_scheduler_process
    scheduler = Scheduler(server_args, port_args)
  File \"/opt/sglang/srt/model_executor/cuda_graph_runner.py\", line 392, in __init__
    raise Exception(
Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 3.00 GiB.
Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
2. set --cuda-graph-max-bs to a smaller value (e.g., 16)

[2026-03-01 11:00:41] Received sigquit from a child process. It usually means the child failed.
";

/// A first attempt that had no room for the pool, a second one with a larger fraction that has none for the graphs.
fn two_attempts() -> Report {
    let first = SGLANG_HEAD.replace("FRACTION", "0.85");
    let second = SGLANG_HEAD
        .replace("FRACTION", "0.95")
        .replace("2026-03-01 10:", "2026-03-01 11:");
    report(&format!("{first}{NO_POOL}{second}{NO_GRAPHS}"))
}

#[test]
fn no_larger_static_fraction_against_a_capture_that_ran_out() {
    let told = two_attempts();
    assert_eq!(cause(&told), "gpu-oom.graph-capture");
    let wrong = overruled(&told, "increase --mem-fraction-static").expect("overruled");
    assert!(wrong.why.contains("has to be lower"), "{}", wrong.why);
    let first = &told.remedies[0];
    assert_eq!(first.id, "mem-fraction-static-down");
    // 0.95 - 3.00 / 78.60 - 0.02 = 0.8918
    assert_eq!(first.change[0].to.as_deref(), Some("0.89"));
}

#[test]
fn no_expandable_segments_where_nothing_is_fragmented() {
    let told = two_attempts();
    let wrong = overruled(&told, "expandable_segments:True").expect("overruled");
    assert!(
        wrong.why.contains("88.41 MiB") && wrong.why.contains("3.00 GiB"),
        "{}",
        wrong.why
    );
    assert!(told.remedies.iter().all(|remedy| remedy.id != "expandable-segments"));
    // With the memory lying idle the hint is right, and a remedy.
    let idle = NO_GRAPHS.replace("88.41 MiB is reserved", "5.10 GiB is reserved");
    let told = report(&format!("{}{idle}", SGLANG_HEAD.replace("FRACTION", "0.95")));
    assert!(
        overruled(&told, "expandable_segments").is_none(),
        "{:?}",
        told.overruled_advice
    );
    assert!(told.remedies.iter().any(|remedy| remedy.id == "expandable-segments"));
}

const POD_LIMIT: &str = "\
2026-03-01 10:00:00,120\tINFO worker.py:1888 -- Started a local Ray instance.
Traceback (most recent call last):
  File \"/app/serve.py\", line 40, in <module>
    ray.get(worker.load.remote())
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
\tclass_name: Shard
\tactor_id: 1b2c
\tpid: 4803
\tnamespace: 0e1f
\tip: 10.0.0.2
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits unexpectedly. Worker exits with an exit code None. The worker may have exceeded K8s pod memory limits.
";

#[test]
fn no_pod_limit_where_none_is_in_evidence() {
    let told = report(POD_LIMIT);
    assert_eq!(cause(&told), "ray.worker-died");
    let wrong = overruled(&told, "K8s pod memory limits").expect("overruled");
    assert!(wrong.why.contains("no memory limit"), "{}", wrong.why);
}

#[test]
fn no_smaller_fraction_for_a_context_that_could_not_be_created() {
    let told = report(
        "\
[2026-03-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, mem_fraction_static=0.85)
[2026-03-01 10:00:08 TP0] Init torch distributed begin.
[2026-03-01 10:00:09 TP1] Init torch distributed begin.
[2026-03-01 10:00:10 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File \"/opt/sglang/srt/managers/scheduler.py\", line 2510, in run_scheduler_process
    scheduler = Scheduler(server_args, port_args)
  File \"/opt/sglang/srt/model_executor/model_runner.py\", line 700, in init_torch_distributed
    torch.get_device_module(self.device).set_device(self.gpu_id)
  File \"/opt/torch/cuda/__init__.py\", line 567, in set_device
    torch._C._cuda_setDevice(device)
torch.AcceleratorError: CUDA error: out of memory
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.


[2026-03-01 10:00:11 TP0] Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
[2026-03-01 10:00:12] Received sigquit from a child process. It usually means the child failed.
",
    );
    assert_eq!(cause(&told), "gpu-oom.context");
    let wrong = overruled(&told, "--mem-fraction-static to a smaller value").expect("overruled");
    assert!(wrong.why.contains("not even a context"), "{}", wrong.why);
    let advised = format!("{:?}", told.remedies);
    assert!(!advised.contains("mem-fraction-static"), "{advised}");
}

// --- the change as it is pasted

#[test]
fn of_resolved_arguments_only_the_changed_flag_is_pasted() {
    let told = two_attempts();
    let patch = &told.remedies[0].patch;
    assert_eq!(patch.len(), 1, "{patch:?}");
    assert_eq!(
        (patch[0].form.as_str(), patch[0].text.as_str()),
        ("shell", "--mem-fraction-static 0.89")
    );
    let json = serde_json::to_string(&told).unwrap();
    assert!(!json.contains("sk-hidden"), "the key is nowhere in the report");
}

#[test]
fn what_compose_and_kubernetes_wrap_is_changed_in_their_files() {
    let log = Text::read("corpus/gpu-oom-graph-capture-v2.log");
    // Without the arguments' dump there is no whole command.
    let bare = log.keep(|line| !line.contains("non-default args"));
    let wrapped = |prefix: &str| {
        let lines: String = bare.text().lines().map(|line| format!("{prefix}{line}\n")).collect();
        let told = report(&lines);
        let patches = told.remedies.iter().flat_map(|remedy| &remedy.patch);
        patches
            .map(|patch| (patch.form.clone(), patch.text.clone()))
            .collect::<Vec<_>>()
    };
    let flag = "  - --gpu-memory-utilization=0.89";
    assert_eq!(
        wrapped("vllm-1  | "),
        [("compose".to_owned(), format!("command:\n{flag}"))]
    );
    assert_eq!(
        wrapped("[pod/vllm-0/server] "),
        [("kubernetes".to_owned(), format!("args:\n{flag}"))]
    );
    assert_eq!(
        wrapped(""),
        [("shell".to_owned(), "--gpu-memory-utilization 0.89".to_owned())]
    );
}

#[test]
fn a_command_rebuilt_without_loss_is_pasted_whole_and_one_with_a_key_is_not() {
    let log = Text::read("corpus/gpu-oom-graph-capture-v2.log");
    let told = report(log.text());
    let patch = told.remedies.iter().flat_map(|remedy| &remedy.patch).next().unwrap();
    let whole = "vllm serve /models/llama-8b --port 8110 --max-model-len 4096 --load-format dummy \
                 --gpu-memory-utilization 0.89";
    assert_eq!((patch.form.as_str(), patch.text.as_str()), ("command", whole));
    assert!(told.launch.command.is_some());
    let keyed = log
        .text()
        .replace("'load_format': 'dummy'}", "'load_format': 'dummy', 'api_key': ['***']}");
    let told = report(&keyed);
    let patch = told.remedies.iter().flat_map(|remedy| &remedy.patch).next().unwrap();
    assert_eq!(
        (patch.form.as_str(), patch.text.as_str()),
        ("shell", "--gpu-memory-utilization 0.89")
    );
    assert_eq!(told.launch.command, None);
    assert!(!serde_json::to_string(&told.remedies).unwrap().contains("***"));
}

// --- what to look at next

#[test]
fn a_truncated_log_asks_for_the_rest_of_it() {
    let cut = "\
[pod/vllm-0/server] (EngineCore pid=300) INFO 03-01 10:00:00 [core.py:105] Initializing a V1 LLM engine (v0.19.0) with config: model='m'
[pod/vllm-0/server] (APIServer pid=200) ERROR 03-01 10:01:00 [core_client.py:600] Engine core proc EngineCore died unexpectedly, shutting down client.
[pod/vllm-0/server] (APIServer pid=200) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': -9}
[pod/vllm-0/server] (APIServer pid=200) Traceb";
    let told = report(cut);
    assert!(
        cause(&told).starts_with("process.") || cause(&told).starts_with("unknown."),
        "{}",
        cause(&told)
    );
    let asked = commands(&told);
    assert!(asked[0].starts_with("kubectl logs --previous vllm-0"), "{asked:?}");
    assert!(
        asked.iter().any(|command| command.contains("journalctl -k")),
        "{asked:?}"
    );
}

#[test]
fn a_silent_kill_asks_the_kernel() {
    let told = report(
        "\
(EngineCore pid=300) INFO 03-01 10:00:00 [core.py:105] Initializing a V1 LLM engine (v0.19.0) with config: model='m'
(APIServer pid=200) ERROR 03-01 10:01:00 [core_client.py:600] Engine core proc EngineCore died unexpectedly, shutting down client.
(APIServer pid=200) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': -9}
",
    );
    assert!(
        ["process.sigkill", "unknown.silent"].contains(&cause(&told)),
        "{}",
        cause(&told)
    );
    let asked = commands(&told);
    assert!(
        asked.iter().any(|command| command.starts_with("journalctl -k")),
        "{asked:?}"
    );
}

#[test]
fn a_bare_system_error_asks_nccl() {
    let told = report(
        "\
[rank1]: Traceback (most recent call last):
[rank1]:   File \"/app/train.py\", line 10, in <module>
[rank1]:     dist.all_reduce(x)
[rank1]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3353, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9
",
    );
    assert_eq!(cause(&told), "nccl.system-error");
    assert!(commands(&told)[0].contains("NCCL_DEBUG=INFO"), "{:?}", commands(&told));
}

#[test]
fn a_watchdog_timeout_asks_the_flight_recorder() {
    let told = report(
        "\
[rank3]:[E301 10:10:00.000000000 ProcessGroupNCCL.cpp:685] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600043 milliseconds before timing out.
",
    );
    assert_eq!(cause(&told), "nccl.watchdog-timeout");
    assert!(
        commands(&told)[0].contains("TORCH_NCCL_TRACE_BUFFER_SIZE"),
        "{:?}",
        commands(&told)
    );
}

#[test]
fn a_worker_whose_log_is_elsewhere_is_named_with_its_file_and_node() {
    let told = report(POD_LIMIT);
    let asked = commands(&told);
    let file = "worker-*-4803.err";
    assert!(
        asked.iter().any(|c| c.contains(file) && c.contains("10.0.0.2")),
        "{asked:?}"
    );
    assert!(asked.iter().any(|c| c.ends_with("-ip 10.0.0.2")), "{asked:?}");
}

// --- one pool

#[test]
fn one_pool_is_recognised_from_what_the_log_says() {
    let b = [
        Text::read("corpus/flagship-b-ray260-monitor.d/node-a.log"),
        Text::read("corpus/flagship-b-ray260-monitor.d/node-b/raylet.out"),
    ];
    let told = examine_texts(&b);
    assert_eq!(told.launch.platform.unified_memory, Some(true));
    assert_eq!(told.memory.as_ref().map(|memory| memory.pool.as_str()), Some("unified"));
    let threshold = told
        .remedies
        .iter()
        .find(|remedy| remedy.id == "ray-memory-threshold")
        .unwrap();
    assert!(
        threshold.cost.contains("swap") && threshold.cost.contains("kernel"),
        "{}",
        threshold.cost
    );
    assert!(threshold.cost.starts_with("Only unblocks"), "{}", threshold.cost);

    let context = |name: &str| {
        report(&format!(
            "\
    Found GPU0 {name} which is of cuda capability 12.1.
[2026-03-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=1, mem_fraction_static=0.85)
[2026-03-01 10:00:09] Init torch distributed begin.
[2026-03-01 10:00:10] Scheduler hit an exception: Traceback (most recent call last):
  File \"/opt/sglang/srt/model_executor/model_runner.py\", line 700, in init_torch_distributed
    torch.get_device_module(self.device).set_device(self.gpu_id)
  File \"/opt/torch/cuda/__init__.py\", line 567, in set_device
    torch._C._cuda_setDevice(device)
torch.AcceleratorError: CUDA error: out of memory

[2026-03-01 10:00:12] Received sigquit from a child process. It usually means the child failed.
"
        ))
    };
    let told = context("NVIDIA GB10");
    assert_eq!(told.launch.platform.unified_memory, Some(true));
    let ids: Vec<&str> = told.remedies.iter().map(|remedy| remedy.id.as_str()).collect();
    assert_eq!(
        ids[..2],
        ["stop-other-holder", "drop-page-cache"],
        "other services first, then page cache"
    );
    let told = context("NVIDIA H200");
    assert_eq!(told.launch.platform.unified_memory, Some(false));
    assert!(
        told.remedies
            .iter()
            .all(|remedy| !remedy.id.starts_with("drop-page-cache"))
    );
}

/// Another service holds a small part of the pool, and most of the rest is page cache.
#[test]
fn what_free_and_nvidia_smi_say_of_the_node_enters_the_account() {
    let folder = "corpus/flagship-a-sglang-context-oom.d";
    let mut inputs = vec![
        Text::read(format!("{folder}/node-a.log")),
        Text::read(format!("{folder}/node-b.log")),
    ];
    inputs.push(Text::new(
        format!("{folder}/state.txt"),
        "\
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
|    0   N/A  N/A            4711      C   VLLM::EngineCore                      11980MiB |
               total        used        free      shared  buff/cache   available
Mem:           119Gi        18Gi       3.3Gi       1.2Gi        99Gi       101Gi
Swap:          8.0Gi          0B       8.0Gi
",
    ));
    let told = examine_texts(&inputs);
    assert_eq!(cause(&told), "gpu-oom.context");
    let first = &told.remedies[0];
    assert_eq!(
        first.title,
        "Stop the other holder of GPU memory: pid 4711 has 11.70 GiB"
    );
    let memory = told.memory.as_ref().expect("an account");
    let holds = |what: &str| {
        let found = memory.holders.iter().find(|holder| holder.what.contains(what));
        found.map(|holder| holder.gib)
    };
    assert_eq!(holds("page cache"), Some(99.0));
    assert_eq!(holds("process 4711"), Some(11.699219)); // 11980 MiB
    let said = "3.30 GiB are free and 101.00 GiB available";
    assert!(memory.notes.iter().any(|note| note.contains(said)), "{memory:?}");
}
