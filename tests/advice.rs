//! Advice on whole logs: what the log itself advises and is wrong, the form of the change, what to look at next, and
//! one pool of memory recognised from what the log says.

mod common;

use common::{Text, cases, examine, examine_texts};
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

// --- the machine and the transport that the log shows, and the values that it states

fn ids(report: &Report) -> Vec<&str> {
    report.remedies.iter().map(|remedy| remedy.id.as_str()).collect()
}

/// The first remedy with what it changes: name, from, to.
fn first(report: &Report) -> (&str, Vec<(&str, &str, &str)>) {
    let remedy = &report.remedies[0];
    let changes = remedy.change.iter();
    let shown = changes.map(|c| {
        let (from, to) = (c.from.as_deref(), c.to.as_deref());
        (c.name.as_str(), from.unwrap_or(""), to.unwrap_or(""))
    });
    (remedy.id.as_str(), shown.collect())
}

const VLLM_HEAD: &str = "\
(APIServer pid=7) INFO 11-11 10:00:00 [utils.py:253] non-default args: ARGS
(EngineCore_DP0 pid=50) INFO 11-11 10:00:10 [core.py:96] Initializing a V1 LLM engine (v0.28.0) with config: model='m', speculative_config=None, quantization=None, kv_cache_dtype=KV
";

fn vllm(args: &str, kv: &str, failure: &str) -> Report {
    let head = VLLM_HEAD.replace("ARGS", args).replace("KV", kv);
    report(&format!(
        "{head}(EngineCore_DP0 pid=50) ERROR 11-11 10:02:00 [core.py:866] EngineCore failed to start.
(EngineCore_DP0 pid=50) ERROR 11-11 10:02:00 [core.py:866] Traceback (most recent call last):
(EngineCore_DP0 pid=50) ERROR 11-11 10:02:00 [core.py:866]   File \"/opt/vllm/v1/engine/core.py\", line 800, in run_engine_core
(EngineCore_DP0 pid=50) ERROR 11-11 10:02:00 [core.py:866]     engine_core = EngineCoreProc(*args, **kwargs)
(EngineCore_DP0 pid=50) ERROR 11-11 10:02:00 [core.py:866] {failure}
"
    ))
}

fn nccl(environment: &str, failure: &str) -> Report {
    report(&format!(
        "\
[2026-03-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, nnodes=2, node_rank=0, dist_init_addr='10.0.0.1:5000')
[2026-03-01 10:00:08] Init torch distributed begin.
h1:900:900 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
{environment}h1:900:955 [0] {failure}
[2026-03-01 10:00:31] Received sigquit from a child process. It usually means the child failed.
"
    ))
}

#[test]
fn pods_are_spoken_of_where_there_are_pods() {
    let slurm = |why: &str| {
        report(&format!(
            "{SGLANG_HEAD}slurmstepd: error: *** JOB 90114 ON gpu-11 CANCELLED AT 2026-03-01T10:00:40 DUE TO {why} ***\n"
        ))
    };
    let preempted = slurm("PREEMPTION");
    assert_eq!(cause(&preempted), "process.preempted");
    assert_eq!(ids(&preempted)[..2], ["start-again", "slurm-requeue"]);
    assert_eq!(
        first(&slurm("NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")).0,
        "start-without-the-node"
    );
    let named = slurm("NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\nsrun: error: Node failure on gpu-12\n#");
    assert_eq!(first(&named).1[1], ("sbatch --exclude", "", "gpu-12"));
    assert_eq!(first(&slurm("TIME LIMIT")).0, "longer-time-limit");
    let full = vllm(
        "{}",
        "auto",
        "OSError: [Errno 28] No space left on device: '/root/.cache/vllm/x.tmp'",
    );
    assert_eq!(cause(&full), "env.disk-full");
    assert_eq!(ids(&full), ["caches-elsewhere", "free-disk"]);
    // Lines joined by node name the node; no pod is called so.
    let joined = report(
        "node-b  | [2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.60 GB\n\
         node-b  | RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.\n",
    );
    assert_eq!(cause(&joined), "process.sigkill");
    assert!(
        commands(&joined).iter().all(|c| !c.contains("kubectl")),
        "{:?}",
        commands(&joined)
    );
    let waiting = report(
        "Events:\n  Type     Reason            Age   From               Message\n  Warning  FailedScheduling  30s  default-scheduler  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.\n",
    );
    assert_eq!(ids(&waiting), ["fit-scheduler-request", "make-room-in-the-cluster"]);
}

#[test]
fn the_limit_that_was_hit_comes_first_with_what_the_victim_held() {
    let kill = |constraint: &str, out: &str| {
        examine_texts(&[
            Text::new("serve.log", SGLANG_HEAD),
            Text::new(
                "dmesg.txt",
                format!(
                    "[Sun Mar  1 10:00:40 2026] oom-kill:constraint=CONSTRAINT_{constraint},task=sglang::schedul,pid=7714,uid=0\n\
                     [Sun Mar  1 10:00:40 2026] {out}: Killed process 7714 (sglang::schedul) total-vm:401204512kB, anon-rss:201204512kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
                ),
            ),
        ])
    };
    let group = kill(
        "MEMCG,nodemask=(null),cpuset=docker-9f.scope,mems_allowed=0,oom_memcg=/system.slice/docker-9f.scope,task_memcg=/system.slice/docker-9f.scope",
        "Memory cgroup out of memory",
    );
    assert_eq!(cause(&group), "host-mem.oom-killer");
    let raise = &group.remedies[0];
    assert_eq!(raise.id, "raise-group-memory");
    assert!(raise.title.contains("/system.slice/docker-9f.scope"), "{}", raise.title);
    // 201204512 kB / 2^20
    assert!(
        raise.arithmetic.as_deref().unwrap_or_default().contains("191.88 GiB"),
        "{raise:?}"
    );
    assert!(!ids(&group).contains(&"stop-other-memory-users"));
    let node = kill(
        "NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice",
        "Out of memory",
    );
    assert_eq!(first(&node).0, "stop-other-memory-users");
}

#[test]
fn a_switch_that_the_log_shows_is_undone_and_never_set_again() {
    let no_transport = "NCCL WARN No transport found for rank 0[1a000] -> rank 1[1b000]";
    let off = "h1:900:900 [0] NCCL INFO NCCL_SHM_DISABLE set by environment to 1.\nh1:900:900 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n";
    let told = nccl(off, no_transport);
    assert_eq!(cause(&told), "nccl.p2p");
    let (id, changes) = first(&told);
    assert_eq!(
        (id, changes[1]),
        ("undo-transport-switches", ("NCCL_P2P_DISABLE", "1", "unset"))
    );
    assert!(!ids(&told).contains(&"p2p-disable"));

    let refused = "NCCL WARN Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_4:1, curr state INIT, next state RTR, local GID index 1, local GID fe80::1, remote GID fe80::2";
    let told = nccl(
        "h1:900:900 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 1.\n",
        refused,
    );
    let (id, changes) = first(&told);
    assert_eq!(
        (id, changes[0].0, changes[0].1),
        ("unset-gid-index", "NCCL_IB_GID_INDEX", "1")
    );
    assert!(changes[0].2.starts_with("unset"));
    assert_eq!(first(&nccl("", refused)).0, "check-ib-link");
    let same = told.remedies.iter().flat_map(|remedy| &remedy.change);
    for change in same.filter(|change| change.from.is_some()) {
        assert_ne!(change.from, change.to, "{change:?}");
    }
    // NCCL informs already.
    let closed = nccl(
        "",
        "NCCL WARN socketProgress: Connection closed by remote peer h2<5000>",
    );
    assert_eq!(cause(&closed), "nccl.peer-died");
    assert!(!ids(&closed).contains(&"nccl-debug"), "{:?}", ids(&closed));
}

#[test]
fn advice_is_of_the_part_that_failed() {
    let ofi = nccl(
        "",
        "nccl_net_ofi_create_plugin:231 NCCL WARN NET/OFI Unable to register memory (type = 1) for device 0. RC: -12, Error: Cannot allocate memory",
    );
    assert_eq!(
        ids(&ofi),
        ["raise-memlock-for-ofi", "check-ofi-provider", "ofi-off-for-a-test"]
    );
    let attach = nccl(
        "",
        "misc/shmutils.cc:135 NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-Vq2P1c (size 9637888), error: No such file or directory (2)",
    );
    assert_eq!(ids(&attach), ["one-ipc-namespace", "nccl-shm-disable"]);
    let amd = nccl(
        "RCCL version : 2.21.5-HEAD:4d5c1a3\nHIP version  : 6.3.42131\nROCm version : 6.3.0.0\n",
        "rocmwrap.cc:170 NCCL WARN ROCr Driver version found is 0. Minimum requirement is 1",
    );
    assert_eq!(cause(&amd), "cuda.driver-too-old");
    assert_eq!(ids(&amd), ["load-amdgpu-driver", "rocm-build-for-driver"]);
    assert!(!amd.headline.contains("NVIDIA") && amd.will_not_help.is_empty());
    let ptx = vllm(
        "{}",
        "auto",
        "RuntimeError: Triton Error [CUDA]: PTX JIT compiler library not found",
    );
    assert_eq!(first(&ptx).0, "driver-capabilities");
    let cpu = vllm("{}", "auto", "AssertionError: Torch not compiled with CUDA enabled");
    assert_eq!(first(&cpu).0, "torch-with-cuda");
    let store = report(
        "ValueError: The configured object store size (200.0 GB) exceeds /dev/shm size (64.0 GB). This will harm performance.\n",
    );
    let (id, changes) = first(&store);
    // 0.95 x 64 GB
    assert_eq!((id, changes[0].2), ("object-store-to-shm", "60800000000"));
    let ports = report(
        "[2026-02-20 11:00:09,114 E 812 812] (raylet) worker_pool.cc:571: No available ports. Please specify a wider port range using --min-worker-port and --max-worker-port.\n",
    );
    assert_eq!(first(&ports).0, "ray-more-worker-ports");
    let parser = report("TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser\n");
    assert_eq!(cause(&parser), "config.feature-conflict");
    assert_eq!(first(&parser).1[0].0, "--tool-call-parser");
    assert!(!ids(&parser).contains(&"drop-one-option"));
    let shard = vllm(
        "{}",
        "auto",
        "FileNotFoundError: Weight files referenced in index but missing: {'model-00003-of-00005.safetensors'}",
    );
    assert_eq!(first(&shard).0, "download-missing-files");
    assert!(shard.remedies[0].title.contains("model-00003-of-00005.safetensors"));
    assert!(!ids(&shard).contains(&"drop-quantization-flag"));
}

#[test]
fn numbers_of_the_message_are_the_values_to_set() {
    let refused = "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size=576, kv_cache_dtype=fp8). Reasons: {A: [kv_cache_dtype not supported, compute capability not supported], B: [kv_cache_dtype not supported]}.";
    let kv = vllm("{'kv_cache_dtype': 'fp8'}", "fp8", refused);
    assert_eq!(
        first(&kv),
        ("kv-type-for-backend", vec![("--kv-cache-dtype", "fp8", "auto")])
    );
    assert!(!ids(&kv).contains(&"vllm-other-attention-backend"));
    let lora = vllm(
        "{'max_lora_rank': 16}",
        "auto",
        "ValueError: LoRA rank 64 is greater than max_lora_rank 16.",
    );
    assert_eq!(first(&lora), ("max-lora-rank", vec![("--max-lora-rank", "16", "64")]));
    let heads = vllm(
        "{}",
        "auto",
        "ValueError: Total number of attention heads (32) must be divisible by tensor parallel size (3).",
    );
    assert_eq!(first(&heads).1, [("--tensor-parallel-size", "3", "2")]);
    let item = vllm(
        "{}",
        "auto",
        "ValueError: Chunked MM input disabled but max_tokens_per_mm_item (16384) is larger than max_num_batched_tokens (4096). Please increase max_num_batched_tokens.",
    );
    assert_eq!(first(&item).1[0].2, "16384");
    // The cache is positive, and the blocks that are lacking would take more than the card has.
    let blocks = vllm(
        "{'gpu_memory_utilization': 0.8}",
        "auto",
        "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (612). Each decode sequence requires one Mamba cache block.",
    );
    assert_eq!(cause(&blocks), "gpu-mem.state-cache");
    assert_eq!(first(&blocks).1, [("--max-num-seqs", "1024", "612")]);
    assert!(
        blocks
            .remedies
            .iter()
            .all(|r| r.id == "mamba-seqs-to-blocks" || r.change[0].to.is_none()),
        "{:?}",
        ids(&blocks)
    );
    let beside = vllm(
        "{'gpu_memory_utilization': 0.92}",
        "auto",
        "ValueError: Free memory on device cuda:0 (30.00/79.10 GiB) on startup is less than the engine's budget after excluding external process's weights (0.92, 52.78 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    );
    assert!(
        ids(&beside).iter().all(|id| *id != "budget-for-external-weights"),
        "a larger share needs still more free memory: {:?}",
        ids(&beside)
    );
    let occupied = vllm(
        "{'gpu_memory_utilization': 0.95}",
        "auto",
        "ValueError: Free memory on device cuda:0 (31.02/79.18 GiB) on startup is less than desired GPU memory utilization (0.95, 75.22 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    );
    assert!(
        ids(&occupied).iter().all(|id| *id != "budget-for-external-weights"),
        "{:?}",
        ids(&occupied)
    );
}

#[test]
fn the_other_nodes_come_before_the_time_limit() {
    let args = "{'data_parallel_size': 16, 'data_parallel_size_local': 8, 'data_parallel_address': '10.0.7.1', 'data_parallel_rpc_port': 13345}";
    let met = vllm(
        args,
        "auto",
        "RuntimeError: Did not receive response from front-end process within 5 minutes",
    );
    assert_eq!(cause(&met), "process.handshake-timeout");
    let (id, changes) = first(&met);
    assert_eq!((id, changes[0].1), ("check-data-parallel-address", "10.0.7.1"));
    assert!(changes[2].0.starts_with("nc -vz 10.0.7.1 13345"));
    assert!(!ids(&met).contains(&"engine-ready-timeout"));
    let late = vllm(
        args,
        "auto",
        "TimeoutError: Timed out waiting for engine core processes to start. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S).",
    );
    assert_eq!(first(&late).0, "start-remote-engines");
    let alone = vllm(
        "{'data_parallel_size': 1}",
        "auto",
        "TimeoutError: Timed out waiting for engine core processes to start. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S).",
    );
    assert_eq!(first(&alone).0, "engine-ready-timeout");
}

#[test]
fn a_connection_that_the_other_side_closed_sends_to_the_other_side() {
    let gloo = vllm(
        "{'tensor_parallel_size': 2}",
        "",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer [10.4.0.13]:41200",
    );
    assert_eq!(cause(&gloo), "dist.gloo");
    assert!(
        gloo.headline
            .ends_with("lost the connection of its Gloo (CPU) group to 10.4.0.13"),
        "{}",
        gloo.headline
    );
    assert_eq!(ids(&gloo)[0], "read-other-side");
    assert!(
        commands(&gloo).iter().all(|c| !c.contains("getent")),
        "{:?}",
        commands(&gloo)
    );
    let store = report(
        "W0621 04:10:00.100000 900 torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1292] The node 'na_900_0' has failed to send a keep-alive heartbeat to the rendezvous 'job7' due to an error of type RendezvousConnectionError.\n\
         Traceback (most recent call last):\n  File \"/opt/venv/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n\
         torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n",
    );
    assert_eq!(cause(&store), "dist.store-unreachable");
    assert!(store.story.contains("had been reached"), "{}", store.story);
    assert_eq!(ids(&store)[0], "read-store-keeper");
    // A store that was never reached is another matter.
    let never = report(
        "Traceback (most recent call last):\n  File \"/opt/venv/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n\
         torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (10.1.0.2, 29500).\n",
    );
    assert_eq!(ids(&never)[0], "check-master-address");
}

#[test]
fn the_story_is_that_of_the_line_and_not_of_its_cause_in_general() {
    let args = "[2026-02-02 02:00:02] server_args=ServerArgs(model_path='/m/a', tp_size=16, dist_init_addr='10.2.0.1:5000', nnodes=2, node_rank=1)\n";
    let node_1 = report(&format!(
        "{args}[2026-02-02 02:10:02] DataParallelController hit an exception: Traceback (most recent call last):\n\
         \x20 File \"/sgl-workspace/sglang/python/sglang/srt/managers/data_parallel_controller.py\", line 330, in _broadcast_worker_ports\n\
         \x20   raise RuntimeError(\nRuntimeError: Failed to receive worker ports from node 0 within timeout\n"
    ));
    assert_eq!(node_1.headline, "SGLang waited in vain for node 0");
    assert!(!node_1.story.contains("head waited"), "{}", node_1.story);
    let slurm = report(&format!("{args}srun: error: Node failure on gpu-h13\n"));
    assert_eq!(cause(&slurm), "process.preempted");
    assert!(
        slurm.headline.ends_with("lost a node of its job") && !slurm.story.contains("evicted"),
        "{}",
        slurm.story
    );
    let taken = report(&format!(
        "{args}[2026-02-02 02:00:09 TP8] Init torch distributed begin.\n\
         [W202 02:00:09.101010101 socket.cpp:200] [c10d] The server socket has failed to bind to [::]:5000 (errno: 98 - Address already in use).\n"
    ));
    assert_eq!(cause(&taken), "dist.port-in-use");
    let flags = taken
        .remedies
        .iter()
        .flat_map(|r| &r.change)
        .any(|c| c.name.contains("MASTER_PORT"));
    assert!(!flags && ids(&taken)[0] == "sglang-other-ports", "{:?}", ids(&taken));
}

#[test]
fn a_ray_worker_whose_reason_was_not_passed_on_is_named_with_where_it_stands() {
    let report = report(
        "(EngineCore pid=1200) INFO 11-25 09:00:11 [core.py:114] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a', tensor_parallel_size=2\n\
         (EngineCore pid=1200) ERROR 11-25 09:00:52 [core.py:1510] EngineCore failed to start.\n\
         (EngineCore pid=1200) ERROR 11-25 09:00:52 [core.py:1510] Traceback (most recent call last):\n\
         (EngineCore pid=1200) ERROR 11-25 09:00:52 [core.py:1510]   File \"/usr/lib/python3.12/dist-packages/vllm/v1/executor/ray_executor_v2.py\", line 400, in _init_executor\n\
         (EngineCore pid=1200) ERROR 11-25 09:00:52 [core.py:1510]     raise RuntimeError(f\"Worker {i} failed to initialize: {result}\")\n\
         (EngineCore pid=1200) ERROR 11-25 09:00:52 [core.py:1510] RuntimeError: Worker 1 failed to initialize: {'status': 'FAILED'}\n",
    );
    assert_eq!(
        report.headline,
        "Rank 1 failed to initialize, and why stands in its own output"
    );
    assert_eq!(ids(&report)[0], "ray-own-output");
    assert!(report.remedies.iter().all(|r| !r.title.contains("SIGKILL")));
}

#[test]
fn a_plain_job_is_told_nothing_of_an_engine() {
    let job = "INFO 06-20 11:00:02 [infer.py:44] init_process_group rank=1 world=2 master=xe-a:29400\n\
               [rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ml/infer.py\", line 88, in <module>\n[rank1]:     main()\n";
    for error in [
        "ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    ] {
        let end = "E0620 11:02:31.202000 5100 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) local_rank: 1 (pid: 5203) of binary: /opt/venv/bin/python3.12\n";
        let report = report(&format!("{job}[rank1]: {error}\n{end}"));
        let changes = report.remedies.iter().flat_map(|r| &r.change);
        let texts: Vec<String> = changes
            .map(|c| format!("{} {:?}", c.name, c.to).to_lowercase())
            .collect();
        assert!(
            texts.iter().all(|t| !t.contains("vllm") && !t.contains("sglang")),
            "{error}: {texts:?}"
        );
        assert!(
            commands(&report).iter().all(|c| !c.contains("grep LIB")),
            "{:?}",
            commands(&report)
        );
    }
}

#[test]
fn flags_are_those_of_the_release_whose_words_the_log_has() {
    let log = |joined: &str| {
        report(&format!(
            "[2026-01-12 10:00:01] server_args=ServerArgs(model_path='/m/a', tp_size=1, mem_fraction_static=0.88, cuda_graph_max_bs=256)\n\
             [2026-01-12 10:00:09 TP0] Init torch distributed ends. {joined}mem usage=1.42 GB\n\
             [2026-01-12 10:00:31 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=7.80 GB\n\
             [2026-01-12 10:00:40 TP0] Scheduler hit an exception: Traceback (most recent call last):\n\
             \x20 File \"/sgl-workspace/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py\", line 400, in capture\n\
             \x20   ) = self.capture_one_batch_size(bs, forward)\n\
             torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 12.00 MiB is free.\n"
        ))
    };
    let flags = |report: &Report| -> Vec<String> {
        let changes = report.remedies.iter().flat_map(|r| &r.change);
        changes.filter(|c| c.kind == "flag").map(|c| c.name.clone()).collect()
    };
    let old = flags(&log(""));
    assert!(old.iter().any(|f| f == "--cuda-graph-max-bs"), "{old:?}");
    assert!(
        old.iter()
            .all(|f| !f.contains("backend-decode") && !f.contains("max-bs-decode")),
        "{old:?}"
    );
    // Nothing in this one says how new it is at most.
    let open = report(
        "[2026-01-12 10:00:01] server_args=ServerArgs(model_path='/m/a', tp_size=1, mem_fraction_static=0.88)\n\
         [2026-01-12 10:00:40 TP0] Scheduler hit an exception: Traceback (most recent call last):\n\
         \x20 File \"/sgl-workspace/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py\", line 400, in capture\n\
         \x20   ) = self.capture_one_batch_size(bs, forward)\n\
         torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 12.00 MiB is free.\n",
    );
    let newest = flags(&open);
    assert!(newest.iter().all(|f| f != "--disable-cuda-graph"), "{newest:?}");
}

#[test]
fn the_gpu_of_the_tight_rank_is_freed_before_any_fraction_is_raised() {
    let mut log =
        "[2026-05-11 03:00:02] server_args=ServerArgs(model_path='/m/a', tp_size=2, mem_fraction_static=0.8)\n"
            .to_owned();
    for (rank, before, after) in [(0, "77.9", "16.7"), (1, "63.1", "1.9")] {
        log += &format!(
            "[2026-05-11 03:00:16 TP{rank}] Load weight begin. avail mem={before} GB\n\
             [2026-05-11 03:02:16 TP{rank}] Load weight end. elapsed=119.20 s, type=Qwen3MoeForCausalLM, quant=fp8, avail mem={after} GB, mem usage=61.20 GB.\n"
        );
    }
    log += "[2026-05-11 03:02:17 TP0] Scheduler hit an exception: Traceback (most recent call last):\n\
            \x20 File \"/sgl-workspace/sglang/python/sglang/srt/model_executor/model_runner.py\", line 1900, in init_memory_pool\n\
            \x20   raise RuntimeError(\n\
            RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.8\n";
    let tight = report(&log);
    assert_eq!(cause(&tight), "gpu-mem.static-fraction");
    assert_eq!(ids(&tight)[0], "free-tight-rank");
    let title = &tight.remedies[0].title;
    assert!(title.contains("TP1") && title.contains("14.80 GiB"), "{title}");
    assert!(!ids(&tight).contains(&"mem-fraction-static-up"));
    // Where all ranks find the same, the weights are what is too large for the fraction.
    let even = report(&log.replace("63.1", "77.9").replace("=1.9 GB", "=16.7 GB"));
    assert!(!ids(&even).contains(&"free-tight-rank"), "{:?}", ids(&even));
}

/// A launch whose worker the kernel killed, with the kernel's report.
fn killed_in(group: &str) -> Report {
    let serve = Text::new(
        "node-b.log",
        "(APIServer pid=1) INFO 11-20 08:00:01 [api_utils.py:339]   █▄█▀ █     █     █     █  version 0.25.1\n\
         (EngineCore pid=1822300) INFO 11-20 08:00:20 [core.py:140] Initializing a V1 LLM engine (v0.25.1) with config: model='/m/a', tensor_parallel_size=1\n\
         (EngineCore pid=1822300) INFO 11-20 08:00:33 [model_runner.py:281] Loading model from scratch...\n\
         RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': -9}\n",
    );
    let kernel = Text::new(
        "kernel-node-b.txt",
        format!(
            "[Fri Nov 20 08:01:02 2026] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c7,mems_allowed=0-1,oom_memcg={group},task_memcg={group}/c7,task=VLLM::EngineCor,pid=1822300,uid=0\n\
             [Fri Nov 20 08:01:02 2026] Memory cgroup out of memory: Killed process 1822300 (VLLM::EngineCor) total-vm:98304000kB, anon-rss:65011712kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:1000\n"
        ),
    );
    examine_texts(&[serve, kernel])
}

#[test]
fn the_group_whose_limit_was_hit_tells_what_to_change_and_nothing_given_is_asked_for() {
    for (group, first, other) in [
        (
            "/kubepods.slice/kubepods-pod12ab.slice",
            "raise-pod-memory-limit",
            "docker",
        ),
        (
            "/system.slice/slurmstepd.scope/slurm/job_7",
            "raise-job-memory",
            "docker",
        ),
        ("/docker/4f1c", "raise-group-memory", "resources.limits"),
    ] {
        let report = killed_in(group);
        assert_eq!(cause(&report), "host-mem.oom-killer", "{group}");
        assert_eq!(ids(&report)[0], first, "{group}");
        let mut changes = report.remedies.iter().flat_map(|r| &r.change);
        assert!(
            changes.all(|c| !c.name.contains(other)),
            "{group}: {:?}",
            report.remedies
        );
        assert!(
            commands(&report).iter().all(|c| !c.contains("journalctl")),
            "{group}: {:?}",
            commands(&report)
        );
    }
}

#[test]
fn a_stated_pod_limit_is_the_value_to_raise() {
    let report = report(
        "(EngineCore pid=130) INFO 11-20 08:00:20 [core.py:140] Initializing a V1 LLM engine (v0.25.1) with config: model='/m/a', tensor_parallel_size=1\n\
         (EngineCore pid=130) INFO 11-20 08:00:33 [model_runner.py:281] Loading model from scratch...\n\
         Name:             qwen-0\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n\
         \x20   Limits:\n      memory:          200Gi\n      nvidia.com/gpu:  4\n    Requests:\n      memory:          100Gi\n",
    );
    let limit = &report.remedies[0].change[0];
    assert_eq!(
        (limit.name.as_str(), limit.from.as_deref()),
        ("resources.limits.memory", Some("200Gi"))
    );
    assert!(
        commands(&report).iter().all(|c| !c.contains("describe")),
        "{:?}",
        commands(&report)
    );
}

#[test]
fn a_gpu_is_reset_only_where_that_can_help() {
    let xid = |number: u32, text: &str, action: &str| {
        let action = match action {
            "" => String::new(),
            action => format!(
                "NVRM: Xid (PCI:0000:3b:00): 154, pid=7203, name=python3, GPU recovery action changed from 0x0 (None) to 0x2 ({action})\n"
            ),
        };
        report(&format!(
            "(EngineCore pid=130) INFO 11-20 08:00:33 [model_runner.py:281] Loading model from scratch...\n\
             NVRM: Xid (PCI:0000:3b:00): {number}, pid=7203, name=python3, {text}\n{action}"
        ))
    };
    let lost = "GPU has fallen off the bus.";
    for (report, first) in [
        (xid(79, lost, ""), "reboot-for-lost-gpu"),
        (xid(79, lost, "Node Reboot Required"), "reboot-node"),
        (
            xid(
                119,
                "Timeout after 6s of waiting for RPC response from GPU0 GSP!",
                "Node Reboot Required",
            ),
            "reboot-node",
        ),
        (
            xid(
                119,
                "Timeout after 6s of waiting for RPC response from GPU0 GSP!",
                "GPU Reset Required",
            ),
            "reset-gpu",
        ),
    ] {
        assert_eq!(ids(&report)[0], first, "{}", report.headline);
        assert_eq!(ids(&report).contains(&"reset-gpu"), first == "reset-gpu");
        assert!(commands(&report).is_empty(), "{:?}", commands(&report));
    }
}

#[test]
fn the_figures_of_an_error_that_a_message_quotes_are_those_of_the_account() {
    let report = report(
        "(Worker_TP6 pid=311) INFO 11-20 08:00:33 [gpu_model_runner.py:5200] Starting to load model /m/a...\n\
         (Worker_TP6 pid=311) ERROR 11-20 08:00:47 [gpu_model_runner.py:5301] Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights, increasing --tensor-parallel-size, or using --quantization. (original error: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 2 has a total capacity of 79.18 GiB of which 1.06 GiB is free. Including non-PyTorch memory, this process has 78.11 GiB memory in use. Of the allocated memory 76.90 GiB is allocated by PyTorch, and 215.08 MiB is reserved by PyTorch but unallocated.)\n",
    );
    assert_eq!(cause(&report), "gpu-oom.weights");
    for (name, value) in [
        ("gpu_free_gib", 1.06),
        ("process_in_use_gib", 78.11),
        ("torch_allocated_gib", 76.9),
    ] {
        assert_eq!(report.figures.get(name), Some(&value), "{name}");
    }
    let memory = report.memory.unwrap();
    assert_eq!((memory.short_by_gib, memory.requested_gib), (Some(0.44), None));
}

#[test]
fn no_larger_share_where_one_sequence_is_many_times_what_the_cache_holds() {
    let small = |share: &str, total: &str| {
        report(&format!(
            "INFO 01-12 10:22:00 [llm_engine.py:240] Initializing a V0 LLM engine (v0.8.5) with config: model='m', speculative_config=None\n\
             INFO 01-12 10:22:20 [worker.py:267] the current vLLM instance can use total_gpu_memory ({total}GiB) x gpu_memory_utilization ({share}) = 19.85GiB\n\
             INFO 01-12 10:22:20 [worker.py:267] model weights take 14.99GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.19GiB; the rest of the memory reserved for KV Cache is 3.57GiB.\n\
             ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (29264). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
        ))
    };
    let told = small("0.90", "22.06");
    assert_eq!(cause(&told), "gpu-mem.kv-too-small");
    assert!(
        !ids(&told).contains(&"utilization-up-for-one-sequence"),
        "{:?}",
        ids(&told)
    );
}

#[test]
fn what_the_log_names_stands_in_the_change() {
    let changes = |log: &str, id: &str| {
        let told = report(log);
        let remedy = told.remedies.iter().find(|r| r.id == id);
        let remedy = remedy.unwrap_or_else(|| panic!("no {id}: {:?}", ids(&told)));
        let text = |c: &coroner::report::model::Change| {
            let of = |value: &Option<String>| value.clone().unwrap_or_default();
            format!("{} {} -> {}", c.name, of(&c.from), of(&c.to))
        };
        remedy.change.iter().map(text).collect::<Vec<_>>().join("; ")
    };
    let refused = |class: &str, rest: &str| {
        format!(
            "(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for {class}\n(APIServer pid=1)   {rest}\n"
        )
    };
    let world = refused(
        "ParallelConfig",
        "Value error, World size (8) is larger than the number of available GPUs (2) in this node. If this is intended and you are using:",
    );
    assert!(changes(&world, "smaller-world").contains("-> 2"));
    let ordinal = "\
[2026-05-05 10:11:12] server_args=ServerArgs(model_path='m', tp_size=4, dp_size=1, nnodes=1)
[2026-05-05 10:11:25 TP2] Context: self.device='cuda' self.gpu_id=2 os.environ.get('CUDA_VISIBLE_DEVICES')='0,1' self.tp_rank=2 self.tp_size=4
torch.AcceleratorError: CUDA error: invalid device ordinal
";
    assert!(changes(ordinal, "sglang-fewer-gpus").starts_with("--tp-size 4 -> 2"));
    assert!(changes(ordinal, "visible-devices-count").contains("0,1 -> "));
    let interface = "\
root@node1:/w# export NCCL_SOCKET_IFNAME=eth1
node1:4188:4188 [0] bootstrap.cc:123 NCCL WARN Bootstrap : no socket interface found
";
    assert!(changes(interface, "nccl-socket-ifname").contains("NCCL_SOCKET_IFNAME eth1 -> "));
    let port = "\
(APIServer pid=4411) WARNING 12-14 14:14:14 [system_utils.py:210] port 8000 is used by process psutil.Process(pid=3120, name='python3', status='sleeping') launched with command:
(APIServer pid=4411) OSError: [Errno 98] Address already in use
";
    assert!(changes(port, "stop-port-holder").contains("3120"));
    let inner = "(APIServer pid=91) zmq.error.ZMQError: Address already in use (addr='tcp://10.0.0.5:29550')\n";
    assert!(changes(inner, "stop-port-holder").contains(":29550 "));
    assert!(changes(inner, "other-data-parallel-port").starts_with("--data-parallel-rpc-port 29550"));
    let name = "\
[rank1]:[W1125 12:00:00.000000000 socket.cpp:200] [c10d] The IPv4 network addresses of (head-svc.llm, 29500) cannot be retrieved (gai error: -2 - Name or service not known).
[rank1]: torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (head-svc.llm, 29500).
";
    assert!(changes(name, "resolve-store-name").contains("getent hosts head-svc.llm "));
    let limit = "(APIServer pid=1) huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/a/b\n";
    assert!(changes(limit, "hub-token-for-limit").starts_with("HF_TOKEN"));
    let offload = "\
(APIServer pid=1) INFO 12-03 02:10:00 [utils.py:253] non-default args: {'model': 'm', 'cpu_offload_gb': 60.0}
(EngineCore_DP0 pid=212) INFO 12-03 02:11:52 [gpu_model_runner.py:3467] Starting to load model m...
[Wed Dec  3 02:15:21 2025] Out of memory: Killed process 212 (VLLM::EngineCor) total-vm:1kB, anon-rss:121634816kB, file-rss:0kB
";
    assert!(changes(offload, "cpu-offload-down").starts_with("--cpu-offload-gb 60.0 -> "));
}

#[test]
fn a_failure_of_the_prefill_graphs_is_answered_with_theirs() {
    let told = report(
        "[2026-08-12 03:41:00] server_args=ServerArgs(model_path='m', tp_size=1, cuda_graph_max_bs_decode=256, cuda_graph_max_bs_prefill=8192, mem_fraction_static=0.93)\n\
         [2026-08-12 03:41:52 TP0] Capture target prefill CUDA graph begin. backend=breakable, num_tokens_per_req=1, avail mem=4.02 GB\n\
         [2026-08-12 03:42:01 TP0] OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 95.00 GiB of which 1.38 GiB is free.\n\
         Fail when using backend: breakable for prefill runner.\n",
    );
    assert_eq!(cause(&told), "gpu-oom.graph-capture");
    let remedy = told
        .remedies
        .iter()
        .find(|r| r.id == "cuda-graph-max-bs-prefill-down")
        .expect("the prefill graphs");
    assert_eq!(remedy.change[0].to.as_deref(), Some("4096"));
    assert!(!ids(&told).contains(&"cuda-graph-max-bs-decode-down"));
}

#[test]
fn what_a_compiler_does_not_know_is_no_matter_of_caches() {
    let told = report(
        "(EngineCore pid=70) ERROR 11-20 08:00:01 [core.py:842] triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n\
         (EngineCore pid=70) ERROR 11-20 08:00:01 [core.py:842] `ptxas` stderr:\n\
         (EngineCore pid=70) ERROR 11-20 08:00:01 [core.py:842] ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\n",
    );
    assert_eq!(
        (cause(&told), told.phase.as_deref()),
        ("cuda.toolkit-mismatch", Some("compile"))
    );
    assert_eq!(first(&told).0, "newer-ptxas");
}

#[test]
fn no_remedy_sets_what_is_set() {
    let mut seen = 0;
    for case in cases() {
        let Some(log) = case.log() else { continue };
        for remedy in examine(&[log]).remedies {
            for change in remedy.change {
                let (Some(from), Some(to)) = (change.from, change.to) else {
                    continue;
                };
                seen += 1;
                let begins = to
                    .strip_prefix(&from)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ' ']));
                assert!(!begins, "{}: {} {from} → {to}", case.id, change.name);
            }
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn weights_that_are_quantized_are_not_to_be_quantized_so() {
    let offered = |quantization: &str| {
        let log = format!(
            "INFO 11-27 06:00:00 [api_server.py:1339] vLLM API server version 0.11.0\n\
             INFO 11-27 06:00:01 [utils.py:233] non-default args: {{'model': '/m/a'{quantization}}}\n\
             (EngineCore_DP0 pid=640) INFO 11-27 06:00:40 [gpu_model_runner.py:2602] Starting to load model /m/a...\n\
             (EngineCore_DP0 pid=640) ERROR 11-27 06:00:50 [core.py:708] EngineCore failed to start.\n\
             (EngineCore_DP0 pid=640) ERROR 11-27 06:00:50 [core.py:708] Traceback (most recent call last):\n\
             (EngineCore_DP0 pid=640) ERROR 11-27 06:00:50 [core.py:708]   File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py\", line 214, in load_model\n\
             (EngineCore_DP0 pid=640) ERROR 11-27 06:00:50 [core.py:708]     self.model_runner.load_model()\n\
             (EngineCore_DP0 pid=640) ERROR 11-27 06:00:50 [core.py:708] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 79.25 GiB of which 10.75 MiB is free.\n"
        );
        let report = examine_texts(&[Text::new("a.log", log)]);
        assert_eq!(report.cause.as_ref().unwrap().id, "gpu-oom.weights");
        report.remedies.iter().any(|r| r.id == "quantized-weights")
    };
    assert!(offered(""));
    assert!(!offered(", 'quantization': 'fp8'"));
}

// --- the change that fits this message of its cause

fn first_ids(text: &str, count: usize) -> Vec<String> {
    let ids = report(text).remedies.into_iter().map(|remedy| remedy.id);
    ids.take(count).collect()
}

/// A rank that runs out of memory, with what torch says of who holds it.
fn torch_oom(who: &str) -> String {
    format!(
        "\
[rank1]: Traceback (most recent call last):
[rank1]:   File \"/app/train.py\", line 60, in main
[rank1]:     loss.backward()
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB of which 1.20 GiB is free. {who} memory in use. Of the allocated memory 50.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but unallocated.
"
    )
}

#[test]
fn nobody_else_is_stopped_where_the_process_itself_holds_the_device() {
    let others = |who: &str| {
        let ids = first_ids(&torch_oom(who), 9);
        assert!(!ids.is_empty());
        ids.iter()
            .any(|id| id == "stop-other-holder" || id == "choose-free-gpu")
    };
    assert!(!others("Including non-PyTorch memory, this process has 77.80 GiB"));
    // In a container torch prints itself under the host's pid.
    assert!(!others("Process 2345 has 77.80 GiB"));
    assert!(others("Including non-PyTorch memory, this process has 56.00 GiB"));
}

#[test]
fn a_thread_that_cannot_be_started_is_no_matter_of_locked_memory() {
    for text in ["", "thread: "] {
        let log = format!(
            "terminate called after throwing an instance of 'std::system_error'\n  what():  {text}Resource temporarily unavailable\nAborted (core dumped)\n"
        );
        assert_eq!(cause(&report(&log)), "env.limits");
        assert_eq!(first_ids(&log, 1), ["raise-nproc"]);
    }
}

#[test]
fn the_variable_that_a_message_of_nccls_is_about_comes_first() {
    let rows = [
        (
            "Call to ibv_reg_mr failed with error Bad address",
            "nccl.ib",
            "no-gpudirect",
        ),
        (
            "NET/IB : Remote RoCE device is incompatible with the local [0]mlx5_0:1/IB. Try selecting NICs of only one link type using NCCL_IB_HCA",
            "nccl.ib",
            "ib-one-link-type",
        ),
        ("NET/IB : Unable to open device mlx5_0", "nccl.ib", "ib-open-access"),
        (
            "NET/IB : Got completion from peer 10.0.0.2<40000> with status=12 opcode=0 len=0 vendor err 129 (Send)",
            "nccl.ib",
            "check-ib-link",
        ),
        (
            "P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case given their connectivity, and is probably due to a hardware issue. If you still want to proceed, you can set NCCL_IGNORE_DISABLED_P2P=1.",
            "nccl.p2p",
            "check-nvlink",
        ),
        (
            "no device found matching =mlx5_9, verify NCCL_OOB_NET_IFNAME",
            "nccl.bootstrap-net",
            "oob-ifname",
        ),
        (
            "Net : error encountered when getting address info : Name or service not known",
            "nccl.bootstrap-net",
            "resolve-host-names",
        ),
    ];
    for (message, expected, first) in rows {
        let log = format!("node-a:4000:4000 [0] init.cc:10 NCCL WARN {message}\n");
        assert_eq!(cause(&report(&log)), expected, "{message}");
        assert_eq!(first_ids(&log, 1), [first], "{message}");
    }
}
