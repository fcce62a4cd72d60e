//! The lines of launches, failures and refused requests in the generated logs.

use std::fmt::Write as _;

use super::Random;

pub const SITE: &str = "/usr/local/lib/python3.12/dist-packages/";
pub const OUT_OF_MEMORY: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 79.19 GiB of which 11.06 MiB is free. Including non-PyTorch memory, this process has 79.17 GiB memory in use. Of the allocated memory 77.20 GiB is allocated by PyTorch, with 118.00 MiB allocated in private pools (e.g., CUDA Graphs), and 160.73 MiB is reserved by PyTorch but unallocated.";

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A vLLM 0.25.1 launch of two workers up to the start of graph capture.
pub fn loading(api: u32, core: u32, at: &str) -> String {
    let (a, c) = (
        format!("(APIServer pid={api}) INFO {at}"),
        format!("(EngineCore pid={core}) INFO {at}"),
    );
    let mut lines = vec![
        format!("{a}:00 [api_utils.py:339]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.25.1"),
        format!("{a}:00 [api_utils.py:339]   █▄█▀ █     █     █     █  model   /models/llama-8b"),
        format!(
            "{a}:00 [api_utils.py:273] non-default args: {{'model_tag': '/models/llama-8b', 'model': '/models/llama-8b', 'max_model_len': 4096, 'tensor_parallel_size': 2}}"
        ),
        format!("{a}:02 [model.py:619] Resolved architecture: LlamaForCausalLM"),
        format!("{a}:02 [model.py:1776] Using max model len 4096"),
        format!(
            "{c}:09 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: model='/models/llama-8b', tensor_parallel_size=2, enforce_eager=False"
        ),
    ];
    for r in 0..2 {
        let w = format!("(Worker_TP{r} pid={}) INFO {at}", core + 10 + r);
        lines.extend([
            format!("{w}:12 [parallel_state.py:1607] world_size=2 rank={r} local_rank={r} distributed_init_method=tcp://192.0.2.2:45907 backend=nccl"),
            format!("{w}:13 [parallel_state.py:1942] rank {r} in world size 2 is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank {r}, EP rank N/A, EPLB rank N/A"),
            format!("{w}:14 [gpu_model_runner.py:5209] Starting to load model /models/llama-8b..."),
            format!("{w}:20 [gpu_model_runner.py:5306] Model loading took 7.51 GiB memory and 5.399689 seconds"),
            format!("{w}:38 [monitor.py:53] torch.compile took 21.62 s in total"),
            format!("{w}:40 [gpu_worker.py:538] Available KV cache memory: 61.28 GiB"),
        ]);
    }
    lines.push(format!(
        "{c}:41 [kv_cache_utils.py:2146] GPU KV cache size: 919,824 tokens"
    ));
    lines.push(format!(
        "(Worker_TP0 pid={}) Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   0%|          | 0/51 [00:00<?, ?it/s]\rCapturing CUDA graphs (mixed prefill-decode, PIECEWISE):   6%|6         | 3/51 [00:00<00:02, 22.83it/s]",
        core + 10
    ));
    joined(&lines)
}

/// The rest of that launch.
pub fn ready(api: u32, core: u32, at: &str) -> String {
    joined(&[
        format!(
            "(Worker_TP0 pid={}) INFO {at}:46 [gpu_model_runner.py:6722] Graph capturing finished in 5 secs, took 0.98 GiB",
            core + 10
        ),
        format!(
            "(EngineCore pid={core}) INFO {at}:47 [core.py:337] init engine (profile, create kv cache, warmup model) took 45.47 s (compilation: 21.62 s)"
        ),
        format!("(APIServer pid={api}) INFO {at}:48 [api_server.py:616] Starting vLLM server on http://0.0.0.0:8000"),
        format!("(APIServer pid={api}) INFO:     Started server process [{api}]"),
        format!("(APIServer pid={api}) INFO:     Waiting for application startup."),
        format!("(APIServer pid={api}) INFO:     Application startup complete."),
    ])
}

/// Worker 1 runs out of memory in graph capture; the usual consequences follow.
pub fn capture_failure(api: u32, core: u32, at: &str) -> String {
    let p = format!(
        "(Worker_TP1 pid={}) ERROR {at}:44 [multiproc_executor.py:1007] ",
        core + 11
    );
    let e = format!("(EngineCore pid={core}) ERROR {at}:46 [core.py:1231] ");
    joined(&[
        format!("{p}WorkerProc hit an exception."),
        format!("{p}Traceback (most recent call last):"),
        format!("{p}  File \"{SITE}vllm/v1/worker/gpu_worker.py\", line 640, in compile_or_warm_up_model"),
        format!("{p}    cuda_graph_memory_bytes = self.model_runner.capture_model()"),
        format!("{p}  File \"{SITE}vllm/v1/worker/gpu_model_runner.py\", line 6700, in capture_model"),
        format!("{p}{OUT_OF_MEMORY}"),
        format!("{e}EngineCore failed to start."),
        format!("{e}Traceback (most recent call last):"),
        format!(
            "{e}RuntimeError: Worker failed with error 'CUDA out of memory.', please check the stack trace above for the root cause"
        ),
        format!(
            "(APIServer pid={api}) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"
        ),
    ])
}

/// A request that is refused with a traceback, which is none of the launch's business.
pub fn refusal(rnd: &mut Random, out: &mut String) {
    let p = format!(
        "(APIServer pid=1) ERROR 11-25 12:{:02}:{:02} [serving_chat.py:257] ",
        rnd.below(60),
        rnd.below(60)
    );
    let _ = writeln!(
        out,
        "{p}Error in preprocessing prompt inputs\n{p}Traceback (most recent call last):"
    );
    for (file, line, function) in [
        ("serving_chat.py", 237, "create_chat_completion"),
        ("serving_engine.py", 1088, "_preprocess_chat"),
        ("serving_engine.py", 671, "_validate_input"),
    ] {
        let _ = writeln!(
            out,
            "{p}  File \"{SITE}vllm/entrypoints/openai/{file}\", line {line}, in {function}\n{p}    return await self.{function}(request)"
        );
    }
    let _ = writeln!(
        out,
        "{p}ValueError: This model's maximum context length is 4096 tokens. However, your request has {} input tokens. Please reduce the length of the input messages.",
        4097 + rnd.below(9000)
    );
    let _ = writeln!(
        out,
        "(APIServer pid=1) INFO:     10.0.0.{}:40000 - \"POST /v1/chat/completions HTTP/1.1\" 400 Bad Request",
        rnd.below(250)
    );
}

/// What one of 512 ranks says that cannot reach its peer.
pub fn nccl_failure() -> String {
    let p = "node-37:4104:5104 [4]";
    joined(&[
        format!(
            "[2026-11-25 12:00:40] {p} misc/socket.cc:523 NCCL WARN socketStartConnect: Connect to 10.1.0.7<40001> failed : Connection refused"
        ),
        format!("{p} NCCL INFO misc/socket.cc:567 -> 2"),
        format!("{p} NCCL INFO bootstrap.cc:285 -> 2"),
        format!("{p} NCCL INFO init.cc:1501 -> 2"),
    ])
}

/// An SGLang launch of two ranks up to graph capture.
pub fn sglang_loading() -> String {
    let mut lines = vec![settings()];
    for r in 0..2 {
        let p = format!("[2026-11-25 11:58:0{r} TP{r}]");
        lines.extend([
            format!("{p} Init torch distributed begin."),
            format!("{p} Init torch distributed ends. mem usage=1.02 GB"),
            format!("{p} Load weight begin. avail mem=77.90 GB"),
            format!("{p} Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=62.50 GB, mem usage=15.40 GB."),
            format!("{p} KV Cache is allocated. #tokens: 400000, K size: 24.41 GB, V size: 24.41 GB"),
            format!("{p} Memory pool end. avail mem=12.97 GB"),
            format!("{p} Capture cuda graph begin. This can take up to several minutes. avail mem=12.40 GB"),
        ]);
    }
    joined(&lines)
}

fn settings() -> String {
    let mut args =
        "model_path='/models/llama-8b', tokenizer_path='/models/llama-8b', tp_size=2, mem_fraction_static=0.88"
            .to_owned();
    for n in 0..360 {
        let _ = write!(args, ", some_option_{n:03}='value {n}'");
    }
    format!("[2026-11-25 11:58:00] server_args=ServerArgs({args})")
}

/// A line of a launch that goes on and on: settings printed again, or the states of a bar.
pub fn sglang_line(rnd: &mut Random, out: &mut String) {
    if rnd.below(8) == 0 {
        let _ = writeln!(out, "{}", settings());
        return;
    }
    for step in 0..24 {
        let _ = write!(
            out,
            "\rCapturing batches (bs={} avail_mem=12.{:02} GB): {:3}%|##        | {step}/24 [00:0{}<00:09,  2.{}it/s]",
            160 - step,
            rnd.below(100),
            step * 4,
            rnd.below(10),
            rnd.below(10)
        );
    }
    out.push('\n');
}

/// Rank 1 runs out of memory in graph capture.
pub fn sglang_failure() -> String {
    joined(&[
        "[2026-11-25 12:00:14 TP1] Scheduler hit an exception: Traceback (most recent call last):".to_owned(),
        format!("  File \"{SITE}sglang/srt/managers/scheduler.py\", line 2311, in run_scheduler_process"),
        "    scheduler = Scheduler(".to_owned(),
        format!("  File \"{SITE}sglang/srt/model_executor/cuda_graph_runner.py\", line 388, in capture"),
        "    graph = self.capture_one_batch_size(bs)".to_owned(),
        OUT_OF_MEMORY.to_owned(),
        String::new(),
        "[2026-11-25 12:00:15] Received sigquit from a child process. It usually means the child failed.".to_owned(),
        "Killed".to_owned(),
    ])
}
