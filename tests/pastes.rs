//! Single logs as people paste them: what supervisors, clients, notebooks and terminals add, and what they leave out.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::{Outcome, Report};

fn report(log: &str) -> Report {
    examine_texts(&[Text::new("launch.log", log)])
}

fn cause(report: &Report) -> &str {
    report.cause.as_ref().map_or("none", |cause| cause.id.as_str())
}

fn root_line(report: &Report) -> u64 {
    report.root.as_ref().map_or(0, |root| root.place.line)
}

const WAITED: &str = "\
Events:
  Warning  FailedScheduling  21m    default-scheduler  0/6 nodes are available: 6 Insufficient nvidia.com/gpu.
";
const PLACED: &str = "  Normal   Scheduled  20m   default-scheduler  Successfully assigned llm/vllm-7c9d to gpu-2\n";
const PROBED: &str =
    "  Warning  Unhealthy  18m (x9 over 20m)  kubelet  Startup probe failed: HTTP probe failed with statuscode: 503\n";
const ENDED: &str = "  Normal   Killing    3m   kubelet  Container vllm failed startup probe, will be restarted\n";

#[test]
fn what_a_pod_waited_for_and_got_is_no_failure() {
    let ready = "    Ready:          True\n    Restart Count:  0\n";
    for log in [
        format!("{ready}{WAITED}{PLACED}{PROBED}"),
        format!("{ready}Events:\n{PROBED}"),
        format!("{WAITED}{PLACED}"),
    ] {
        assert_ne!(report(&log).outcome, Outcome::Failed, "{log}");
    }
    assert_eq!(cause(&report(WAITED)), "process.scheduler-limit");
    assert_eq!(
        cause(&report(&format!("{ready}{WAITED}{PLACED}{PROBED}{ENDED}"))),
        "process.startup-timeout"
    );
}

#[test]
fn what_a_supervisor_says_is_not_outlived_by_the_log_pasted_below_it() {
    let describe = "\
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
";
    let log = "\
[2026-03-03 08:15:31 TP0] Init torch distributed begin.
[2026-03-03 08:15:32 TP0] Load weight begin. avail mem=77.62 GB
Loading pt checkpoint shards:  20% Completed | 3/15 [00:59<03:58, 19.9s/it]
[2026-03-03 08:16:47] Rank 1 scheduler is dead. Please check if there are relevant logs.
[2026-03-03 08:16:48] Exit code: -9
";
    for (order, line) in [(format!("{describe}{log}"), 4), (format!("{log}{describe}"), 9)] {
        let told = report(&order);
        assert_eq!(
            (cause(&told), root_line(&told)),
            ("host-mem.oom-killer", line),
            "{order}"
        );
        assert_eq!(told.phase.as_deref(), Some("weight-load"));
    }
}

#[test]
fn the_bar_of_compose_is_known_by_the_line_that_says_how_the_container_ended() {
    let told = report("vllm-1  | exec /usr/bin/python3: exec format error\nvllm-1 exited with code 255\n");
    assert_eq!((cause(&told), root_line(&told)), ("env.wrong-arch", 1));
}

#[test]
fn a_notebook_names_types_of_any_ending() {
    let log = |kind: &str| {
        report(&format!(
            "INFO 11-02 10:10:30 [model.py:547] Resolved architecture: LlamaForCausalLM\n\
             ---------------------------------------------------------------------------\n\
             {kind}                      Traceback (most recent call last)\n\
             /tmp/ipython-input-1234.py in <cell line: 0>()\n      1 from vllm import LLM\n----> 2 llm = LLM(model='m')\n\n\
             /usr/lib/python3/dist-packages/vllm/utils/system_utils.py in suppress_stdout()\n    102     fd = sys.stdout.fileno()\n\n\
             {kind}: fileno\n"
        ))
    };
    for kind in ["UnsupportedOperation", "PanicException"] {
        let told = log(kind);
        let exception = told.exception.as_ref().expect("an exception");
        assert_eq!(
            (cause(&told), &*exception.kind, &*exception.message),
            ("unknown.exception", kind, "fileno")
        );
    }
    assert_eq!(cause(&log("KeyboardInterrupt")), "process.interrupted");
}

const NINJA: &str = "\
[2026-04-04 04:04:04] Scheduler hit an exception: Traceback (most recent call last):
  File \"/usr/lib/python3/dist-packages/flashinfer/jit/cpp_ext.py\", line 344, in run_ninja
    subprocess.run(
subprocess.CalledProcessError: Command '['ninja', '-v', '-C', '/root/.cache/flashinfer']' returned non-zero exit status 1.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File \"/usr/lib/python3/dist-packages/sglang/srt/managers/scheduler.py\", line 2937, in run_scheduler_process
    scheduler = Scheduler(
RuntimeError: Ninja build failed. Ninja output:
[1/41] nvcc -c moe.cu -o moe.cuda.o
FAILED: [code=137] moe.cuda.o
nvcc -c moe.cu -o moe.cuda.o
";

#[test]
fn what_a_build_printed_says_more_than_that_its_command_failed() {
    let killed = report(&format!("{NINJA}Killed\nninja: build stopped: subcommand failed.\n"));
    assert_eq!(
        (cause(&killed), killed.phase.as_deref()),
        ("host-mem.oom-killer", Some("compile"))
    );
    let failed = report(&format!(
        "{NINJA}moe.cu(3): error: identifier \"x\" is undefined\nninja: build stopped: subcommand failed.\n"
    ));
    assert_eq!(cause(&failed), "env.kernel-compile");
}

#[test]
fn that_a_launch_began_outlives_nothing() {
    let told = report(
        "Failed to initialize NVML: Unknown Error\n\
         INFO 02-02 05:05:05 [__init__.py:228] No platform detected, vLLM is running on UnspecifiedPlatform\n\
         RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.\n",
    );
    assert_eq!(cause(&told), "cuda.device-lost");
}

#[test]
fn a_key_that_a_terminal_echoes_stands_in_no_program_s_line() {
    let log = "\
(APIServer pid=7) INFO 11-30 09:12:09 [model.py:1510] Using max model len 40960
(EngineCore_DP0 pid=205) INFO 11-30 09:12:26 [gpu_model_runner.py:2998] Starting to load model m...
^C(APIServer pid=7) Traceback (most recent call last):
(APIServer pid=7)   File \"/usr/local/bin/vllm\", line 7, in <module>
(APIServer pid=7)     sys.exit(main())
(APIServer pid=7) KeyboardInterrupt
";
    let told = report(log);
    assert_eq!((cause(&told), root_line(&told)), ("process.interrupted", 6));
    assert_eq!(
        told.phase.as_deref(),
        Some("weight-load"),
        "the engine had been started"
    );
}

const CLIENT: &str = "\
Traceback (most recent call last):
  File \"/home/me/chat.py\", line 14, in <module>
    r = client.chat.completions.create(model='m', messages=m)
  File \"/home/me/venv/lib/python3.11/site-packages/openai/_base_client.py\", line 1004, in request
    raise APIConnectionError(request=request) from err
openai.APIConnectionError: Connection error.
";

#[test]
fn a_call_that_a_client_lost_is_no_launch_and_one_beside_an_engine_s_line_is_none_of_its_failures() {
    assert_eq!(report(CLIENT).outcome, Outcome::NoLaunch);
    let gateway = "litellm.exceptions.InternalServerError: InternalServerError: OpenAIException - Connection error.. \
                   Received Model Group=qwen3\nAvailable Model Group Fallbacks=None LiteLLM Retried: 2 times\n";
    assert_eq!(report(gateway).outcome, Outcome::NoLaunch);
    // The same libraries serve a launch: what an engine's command, its code or an unknown package called may be one.
    for other in [
        CLIENT.replace("/home/me/chat.py", "/usr/local/bin/vllm"),
        CLIENT.replace(
            "/home/me/chat.py",
            "/usr/lib/python3/dist-packages/vllm/engine/arg_utils.py",
        ),
        CLIENT.replace(
            "site-packages/openai/_base_client.py",
            "site-packages/huggingface_hub/file_download.py",
        ),
        format!("[rank0]:[W1125 12:00:00.000 ProcessGroupNCCL.cpp:1] Warning: x\n{CLIENT}"),
    ] {
        assert_eq!(report(&other).outcome, Outcome::Failed, "{other}");
    }
}

#[test]
fn commands_beside_an_engine_that_did_their_work_are_no_launch() {
    for log in [
        "INFO 10-11 10:10:10 [__init__.py:216] Automatically detected platform cuda.\n\
         Starting initial single prompt test run...\n============ Serving Benchmark Result ============\n",
        "Fetching 15 files: 100%|██████████| 15/15 [03:31<00:00, 14.11s/it]\n\
         /root/.cache/huggingface/hub/models--demo--8b/snapshots/b968826d9c46\n",
        "Collecting environment information...\nGPU Topology:\n  Failed to initialize NVML: Driver/library version mismatch\n",
    ] {
        assert_eq!(report(log).outcome, Outcome::NoLaunch, "{log}");
    }
}

#[test]
fn a_node_of_ray_that_came_up_is_healthy_until_something_waits_on_it() {
    let up = "Local node IP: 10.3.0.5\nRay runtime started.\n";
    assert_eq!(report(up).outcome, Outcome::Healthy);
    let waits = format!(
        "{up}2026-03-01 10:00:00,123\tINFO worker.py:1694 -- Connecting to existing Ray cluster at address: 10.3.0.5:6379...\n"
    );
    assert_eq!(report(&waits).outcome, Outcome::Running);
}

#[test]
fn tests_that_passed_have_ended() {
    let mut log = common::healthy_vllm();
    log.bytes
        .extend(b"\n=================== 2 passed, 1 xfailed in 92.10s (0:01:32) ====================\n");
    assert_eq!(examine_texts(&[log]).outcome, Outcome::Stopped);
}

#[test]
fn an_engine_core_that_exits_without_a_traceback_died_silently() {
    let told = report(
        "(EngineCore pid=60) INFO 05-05 05:05:35 [gpu_model_runner.py:2998] Starting to load model a/b...\n\
         (APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}\n",
    );
    assert_eq!(cause(&told), "unknown.silent");
    assert!(!told.headline.contains("RuntimeError"), "{}", told.headline);
}

#[test]
fn the_path_of_shared_code_and_the_label_of_a_line_tell_the_engine() {
    let nccl = report(
        "[2026-06-09 17:41:02 TP4] Scheduler hit an exception: Traceback (most recent call last):\n  \
         File \"/opt/sglang/python/sglang/srt/distributed/device_communicators/pynccl_wrapper.py\", line 366, in NCCL_CHECK\n    \
         raise RuntimeError(x)\nRuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)\n",
    );
    assert_eq!(nccl.engine.name.as_deref(), Some("sglang"));
    let ray = report(
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. Worker PID: 5188 Worker exit type: SYSTEM_ERROR\n\
         (EngineCore_DP0 pid=500) ERROR 12-01 01:01:01 [core.py:866] ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n",
    );
    assert_eq!((ray.engine.name.as_deref(), ray.phase.as_deref()), (Some("vllm"), None));
}

#[test]
fn a_class_that_pydantic_names_tells_phase_and_family() {
    let refused = |class: &str, why: &str| {
        report(&format!(
            "(APIServer pid=1) INFO 03-02 10:10:10 [utils.py:293] non-default args: {{'model': 'm'}}\n\
             (APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for {class}\n\
             (APIServer pid=1)   Value error, {why} [type=value_error, input_value=ArgsKwargs((), {{}}), input_type=ArgsKwargs]\n"
        ))
    };
    let draft = refused(
        "SpeculativeConfig",
        "num_speculative_tokens:5 must be divisible by n_predict=2",
    );
    assert_eq!(
        (cause(&draft), draft.phase.as_deref(), root_line(&draft)),
        ("config.speculative", Some("config"), 3)
    );
    let known = refused(
        "ModelConfig",
        "The checkpoint you are trying to load has model type `x` but Transformers does not recognize this architecture.",
    );
    assert_eq!(
        (cause(&known), known.phase.as_deref()),
        ("config.unsupported-arch", Some("config"))
    );
}

#[test]
fn frames_that_span_phases_leave_the_phase_to_markers_and_compilers_have_their_own() {
    let loaded = "\
[2026-02-11 04:59:20] server_args=ServerArgs(model_path='acme/y', tp_size=1)
[2026-02-11 04:59:31] Load weight begin. avail mem=78.71 GB
[2026-02-11 05:00:01] KV Cache is allocated. #tokens: 402112, K size: 24.54 GB, V size: 24.54 GB
[2026-02-11 05:00:02] Scheduler hit an exception: Traceback (most recent call last):
  File \"/opt/sglang/python/sglang/srt/managers/scheduler.py\", line 2937, in run_scheduler_process
    scheduler = Scheduler(
pyo3_runtime.PanicException: called `Option::unwrap()` on a `None` value
";
    assert_eq!(report(loaded).phase.as_deref(), Some("kv-cache"));
    let traced = "\
(EngineCore pid=205) ERROR 05-09 09:12:39 [core.py:791] Traceback (most recent call last):
(EngineCore pid=205) ERROR 05-09 09:12:39 [core.py:791]   File \"/opt/vllm/vllm/v1/worker/gpu_worker.py\", line 401, in determine_available_memory
(EngineCore pid=205) ERROR 05-09 09:12:39 [core.py:791]     self.model_runner.profile_run()
(EngineCore pid=205) ERROR 05-09 09:12:39 [core.py:791]   File \"/opt/torch/_dynamo/eval_frame.py\", line 841, in compile_wrapper
(EngineCore pid=205) ERROR 05-09 09:12:39 [core.py:791]     raise e.with_traceback(None) from e.__cause__
(EngineCore pid=205) ERROR 05-09 09:12:39 [core.py:791] torch._dynamo.exc.Unsupported: Data-dependent branching
";
    assert_eq!(report(traced).phase.as_deref(), Some("compile"));
}

#[test]
fn the_words_of_an_exception_in_native_code_are_kept_where_no_rule_knows_them() {
    let told = report(
        "terminate called after throwing an instance of 'std::runtime_error'\n  \
         what():  parse error at line 1, column 1\nFatal Python error: Aborted\n\n\
         Current thread 0x00007f22 (most recent call first):\n  \
         File \"/usr/lib/python3/dist-packages/xgrammar/compiler.py\", line 77 in __init__\n  \
         File \"/usr/lib/python3/dist-packages/sglang/srt/managers/scheduler.py\", line 2937 in run_scheduler_process\n\
         Aborted (core dumped)\n",
    );
    assert_eq!(cause(&told), "process.abort");
    assert!(root_line(&told) < 3, "line {}", root_line(&told));
    let known = report(
        "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: device-side assert triggered\nFatal Python error: Aborted\n",
    );
    assert_eq!(cause(&known), "cuda.launch-failure");
}

#[test]
fn the_headline_says_what_happened_in_this_form_of_the_cause() {
    let early = report(
        "Jan 15 10:22:01 spark earlyoom[811]: sending SIGTERM to process 40221 uid 0 \"VLLM::EngineCor\": badness 1233, VmRSS 9120 MiB\n\
         Jan 15 10:22:02 spark vllm[40100]: (APIServer pid=40100) ERROR 01-15 10:22:02 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n",
    );
    assert_eq!(cause(&early), "host-mem.oom-killer");
    assert!(
        early.headline.contains("earlyoom") && !early.story.contains("SIGKILL"),
        "{} {}",
        early.headline,
        early.story
    );
    assert_eq!(early.remedies[0].id, "earlyoom-threshold");
    let vocabulary = report(
        "(APIServer pid=1) openai_harmony.HarmonyError: error downloading or loading vocab file: failed to download or load vocab file\n",
    );
    assert!(vocabulary.headline.contains("vocabulary"), "{}", vocabulary.headline);
    let ids: Vec<&str> = vocabulary.remedies.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids, ["preload-vocabulary", "allow-artifact-host"]);
    let rank = report("(APIServer pid=1) RuntimeError: Message from engine with unexpected data parallel rank: 8\n");
    assert_eq!(
        rank.root.as_ref().unwrap().place.process.as_deref(),
        Some("APIServer pid=1")
    );
    assert_eq!(rank.remedies[0].id, "data-parallel-ranks");
}

#[test]
fn what_a_library_s_class_does_not_have_is_a_matter_of_versions_and_what_a_model_s_code_lacks_is_its_own() {
    let raised = |file: &str, function: &str, message: &str| {
        report(&format!(
            "(APIServer pid=1) Traceback (most recent call last):\n\
             (APIServer pid=1)   File \"/usr/lib/python3/dist-packages/vllm/model_executor/models/transformers.py\", line 96, in __init__\n\
             (APIServer pid=1)     load()\n\
             (APIServer pid=1)   File \"{file}\", line 12, in {function}\n\
             (APIServer pid=1)     raise AttributeError(name)\n\
             (APIServer pid=1) AttributeError: {message}\n"
        ))
    };
    let gone = raised(
        "/usr/lib/python3/dist-packages/transformers/tokenization_utils_base.py",
        "__getattr__",
        "DemoTokenizer has no attribute all_special_tokens_extended",
    );
    assert_eq!(cause(&gone), "env.dependency-version");
    let own = raised(
        "/root/.cache/huggingface/modules/transformers_modules/acme/9f1c/modeling_acme.py",
        "<module>",
        "'AcmeConfig' object has no attribute 'rope_parameters'",
    );
    assert_eq!(
        (cause(&own), own.phase.as_deref()),
        ("model.custom-code", Some("weight-load"))
    );
}

/// The lines with a prefix before each.
fn prefixed(prefix: &str, lines: &str) -> String {
    lines.lines().map(|line| format!("{prefix}{line}\n")).collect()
}

/// A loading that fails with `error`, whose traceback an engine prints with a record's header before each line, or before
/// the first one only, or with none, and `below` right under it. With the form and the line of the exception.
fn failed_loads(error: &str, below: &str) -> [(&'static str, u64, Report); 4] {
    let frames = "  File \"/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py\", line 1912, in load_model\n    \
                  foo()\n";
    let traceback = format!("Traceback (most recent call last):\n{frames}{error}");
    let vllm = "(EngineCore pid=20) INFO 08-02 09:00:25 [core.py:114] Initializing a V1 LLM engine (v0.8.5) with config: \
                model='x/y', dtype=torch.bfloat16";
    let record = prefixed("(EngineCore pid=20) ERROR 08-02 09:01:25 [core.py:708] ", &traceback);
    let sglang = "[2026-03-03 08:15:31] server_args=ServerArgs(model_path='x/y', tp_size=1, mem_fraction_static=0.88)";
    let head = format!("[2026-03-03 08:16:27 TP0] Scheduler hit an exception: {traceback}");
    let ranks = prefixed("[rank0]: ", &format!("{traceback}\n{below}"));
    [
        ("raw", 5, report(&format!("{vllm}\n{traceback}\n{below}\n"))),
        ("a record", 5, report(&format!("{vllm}\n{record}{below}\n"))),
        ("a header above", 5, report(&format!("{sglang}\n{head}\n{below}\n"))),
        ("torch's prefix", 5, report(&format!("{vllm}\n{ranks}"))),
    ]
}

/// Expects of a loading that fails so, however it is printed, this cause, stated this many lines below the exception line.
fn assert_fails(error: &str, below: &str, right: &str, down: u64) {
    for (form, line, report) in failed_loads(error, below) {
        assert_eq!(
            (cause(&report), root_line(&report)),
            (right, line + down),
            "{form}\n{error}\n{below}"
        );
    }
}

#[test]
fn what_stands_right_below_an_exception_is_no_part_of_what_it_says() {
    let errors = [
        ("KeyError: 'layers.0.mlp.w'", "model.missing-weights"),
        ("KeyboardInterrupt: terminated", "process.sigterm"),
        ("AssertionError", "unknown.exception"),
        (
            "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "nccl.system-error",
        ),
        ("ValueError: the planes do not fit.", "unknown.exception"),
    ];
    let below = [
        "nanobind: leaked 2 instances!",
        "/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 \
         leaked shared_memory objects to clean up at shutdown",
        "Exception ignored in: <function ExactWeakKeyDictionary.__setitem__.<locals>.<lambda> at 0x7f>",
        "/usr/lib/python3.12/tempfile.py:1075: ResourceWarning: Implicitly cleaning up <TemporaryDirectory>",
        "sys:1: DeprecationWarning: builtin type swigvarlink has no __module__ attribute",
        "root@gpu-01:/workspace# ",
        "ERROR conda.cli.main_run:execute(49): `conda run vllm` failed. (See above for error)",
        "BrokenPipeError: [Errno 32] Broken pipe",
        "With the other checkpoint I get CUDA out of memory instead.",
        "There I hit \"NCCL error: remote process exited or there was a network error\" as well.",
    ];
    for (error, right) in errors {
        for line in below {
            assert_fails(error, line, right, 0);
        }
    }
}

#[test]
fn what_an_exception_announces_below_its_first_line_is_what_it_says() {
    let shm = "RuntimeError: NCCL error in: a.cpp:9, unhandled system error, NCCL version 2.27.5\n\
               ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\n\
               Last error:\n\
               Error while creating shared memory segment /dev/shm/nccl-v2jS20 (size 9637888)";
    assert_fails(shm, "", "nccl.shm", 3);
    let below = "Last error:\nError while creating shared memory segment /dev/shm/nccl-v2jS20 (size 9637888)";
    assert_fails(
        &format!("RuntimeError: Internal check failed.\n{below}"),
        "",
        "nccl.shm",
        2,
    );
}

#[test]
fn what_an_exception_announces_has_an_end() {
    let nccl = "torch.distributed.DistBackendError: NCCL error in: a.cpp:9, invalid usage, NCCL version 2.27.5\n\
                ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n\
                Last error:\n\
                Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000";
    let field = "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig\n\
                 gpu_memory_utilization\n  \
                 Input should be less than or equal to 1 [type=less_than_equal, input_value=1.5, input_type=float]";
    let native = "torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n\
                  Exception raised from recvBytes at /pytorch/Utils.hpp:670 (most recent call first):\n\
                  frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f)";
    for below in [
        "With the other checkpoint I get CUDA out of memory instead.",
        "I had \"No space left on device\" before.",
    ] {
        assert_fails(nccl, below, "nccl.duplicate-gpu", 3);
        assert_fails(field, below, "config.invalid-value", 2);
        assert_fails(native, below, "dist.store-unreachable", 0);
    }
    let second = format!("{field}\nmodel\n  Value error, Invalid repository ID or local directory specified: 'foo'.");
    assert_fails(&second, "", "model.not-found", 4);
}

#[test]
fn what_a_build_printed_is_what_its_exception_says() {
    let build = "RuntimeError: Error building extension 'moe': [1/2] /usr/local/cuda/bin/nvcc -c moe.cu -o moe.cuda.o";
    let flashinfer = "RuntimeError: Ninja build failed. Ninja output:";
    let captured = "RuntimeError: ninja exited with status 1\nstdout:";
    let printed = [
        (
            "a.cpp:1:10: fatal error: Python.h: No such file or directory\n    1 | #include <Python.h>",
            "env.compiler",
        ),
        (
            "nvcc fatal   : Unsupported gpu architecture 'compute_121a'",
            "cuda.toolkit-mismatch",
        ),
        (
            "/usr/bin/ld: cannot find -lcudart: No such file or directory",
            "env.compiler",
        ),
        ("/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found", "env.compiler"),
        (
            "fatal error: error writing to /tmp/ccX.s: No space left on device",
            "env.disk-full",
        ),
    ];
    let failed = "FAILED: [code=1] moe.cuda.o\n/usr/local/cuda/bin/nvcc -c moe.cu -o moe.cuda.o";
    let stopped = "ninja: build stopped: subcommand failed.";
    let warned = "moe.cu(3): warning #177-D: variable \"x\" was declared but never referenced\n    int x;\n        ^\n\n\
                  Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n";
    for (line, right) in printed {
        for (error, down) in [(build, 3), (flashinfer, 3), (captured, 4)] {
            assert_fails(&format!("{error}\n{failed}\n{line}\n{stopped}"), "", right, down);
        }
        assert_fails(&format!("{build}\n{failed}\n{warned}\n{line}\n{stopped}"), "", right, 9);
    }
    let killed = format!("{build}\n{failed}\nKilled\n{stopped}");
    assert_fails(&killed, "", "host-mem.oom-killer", 3);
    let unknown = format!("{build}\n{failed}\n{stopped}");
    let below = "With the other compiler I get CUDA out of memory instead.";
    assert_fails(&unknown, below, "env.kernel-compile", 0);
}

#[test]
fn what_a_compiler_or_a_loader_says_right_below_an_exception_is_what_it_says() {
    let printed = [
        (
            "nvcc fatal   : Unsupported gpu architecture 'compute_121a'",
            "cuda.toolkit-mismatch",
        ),
        (
            "/usr/bin/ld: cannot find -lcuda: No such file or directory",
            "env.compiler",
        ),
        (
            "/opt/venv/lib/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEab",
            "env.abi",
        ),
        (
            "libcudart.so.12: cannot open shared object file: No such file or directory",
            "env.shared-lib",
        ),
        (
            "CUDA error: no kernel image is available for execution on the device",
            "cuda.no-kernel-image",
        ),
    ];
    for (line, right) in printed {
        let error = format!("RuntimeError: Failed to load the extension.\n{line}");
        assert_fails(&error, "", right, 1);
    }
}

#[test]
fn what_a_person_writes_below_an_exception_in_the_form_of_a_tool_or_a_list_is_no_part_of_it() {
    for below in [
        "cc: @someone: I get CUDA out of memory too",
        "make: CUDA out of memory happens only in the other env",
        "sh: I ran the same and saw No space left on device",
        "ninja: CUDA out of memory is from another run",
        "/opt/conf.h: I changed there CUDA_HOME environment variable is not set",
        "CUDA error: out of memory is what I get with the old driver",
        "stderr: nothing else, but yesterday CUDA out of memory",
        "\n    Yesterday it was: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "  > RuntimeError: CUDA error: an illegal memory access was encountered (the other day)",
        "  - No space left on device: checked with df, there is enough\n  - CUDA out of memory: no, 70 GiB are free",
    ] {
        assert_fails(
            "RuntimeError: Failed to start the planes.",
            below,
            "unknown.exception",
            0,
        );
    }
}

#[test]
fn a_build_that_a_paste_cuts_ends_where_a_person_writes_on() {
    let cut = "RuntimeError: Error building extension 'moe': [1/2] nvcc -c moe.cu\nFAILED: [code=1] moe.o\nnvcc -c moe.cu\n\
               moe.cu(12): error: identifier \"x\" is undefined\n\n1 error detected in the compilation of \"moe.cu\".";
    let below = "\n\nOn my other box c++: fatal error: Killed signal terminated program cc1plus";
    let alone = failed_loads(cut, "");
    for ((form, line, report), (_, _, alone)) in failed_loads(cut, below).iter().zip(&alone) {
        assert_eq!(cause(report), "env.kernel-compile", "{form}");
        assert_eq!(root_line(report), root_line(alone), "{form}, raised at {line}");
    }
}

#[test]
fn a_line_that_a_terminal_broke_goes_on_and_one_that_is_only_long_does_not() {
    let long =
        "ValueError: the planes of the experts could not be split over the devices of this node as they were cut";
    let below = "with another checkpoint I see CUDA out of memory instead.";
    assert_fails(long, below, "unknown.exception", 0);
    assert_fails(long, &below.replace("with", "With"), "unknown.exception", 0);
    // No line is longer, and another one ends in the same column.
    let log = |below: &str| {
        let width = long.chars().count();
        report(&format!(
            "INFO 08-02 09:00:25 [core.py:114] Initializing a V1 LLM engine (v0.8.5)\n{:=<width$}\n\
             Traceback (most recent call last):\n  File \"/opt/vllm/v1/worker/gpu_worker.py\", line 9, in load_model\n{long}\n\
             {below}\n",
            ""
        ))
    };
    assert_eq!(cause(&log("short: CUDA out of memory.")), "gpu-oom.weights");
    assert_eq!(
        cause(&log("With others I see CUDA out of memory instead.")),
        "unknown.exception"
    );
}

#[test]
fn what_a_daemon_of_ray_says_below_a_worker_s_exception_is_the_daemon_s() {
    let nccl = "torch.distributed.DistBackendError: NCCL error in: a.cpp:9, remote process exited or there was a network \
                error, NCCL version 2.27.5\n\
                ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n\
                Last error:\n\
                socketProgressOpt: Call to recv from 10.0.0.2<41234> failed : Connection reset by peer";
    let raylet = "(raylet, ip=10.0.0.2) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due \
                  to other reasons at node (ID: 4f0e, IP: 10.0.0.2) over the last time period.";
    for (form, line, report) in &failed_loads(nccl, raylet)[..2] {
        assert_eq!(
            (cause(report), root_line(report)),
            ("host-mem.ray-monitor", line + 4),
            "{form}"
        );
    }
}
