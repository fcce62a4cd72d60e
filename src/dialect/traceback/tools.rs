//! Which lines below an exception are of a program that builds or loads code, or CUDA's own: the library that raises puts
//! them there without a word before them.
//!
//! Owns the forms of such lines. A person's sentence may begin with the same word (`cc: …`, `make: …`), so that what
//! stands behind it must itself be what such a program says. Never knows what a line means.

/// Programs that build and load code, as they name themselves at the head of their lines.
const TOOLS: &[&str] = &[
    "nvcc",
    "ptxas",
    "cicc",
    "fatbinary",
    "nvlink",
    "hipcc",
    "gcc",
    "g++",
    "cc",
    "c++",
    "cc1",
    "cc1plus",
    "clang",
    "clang++",
    "ld",
    "ld.lld",
    "ld.gold",
    "lld",
    "collect2",
    "ninja",
    "cmake",
    "make",
    "sh",
];

/// How they begin behind their name.
const SAID: &[&str] = &[
    "error: ",
    "fatal: ",
    "fatal error: ",
    "internal compiler error: ",
    "warning: ",
    "note: ",
    "*** ",
    "build stopped: ",
    "Entering directory ",
    "cannot find ",
    "cannot open ",
    "cannot create ",
    "final link failed: ",
    "skipping incompatible ",
    "undefined reference to ",
    "out of memory allocating ",
    "memory exhausted",
];

/// How they end where a file or a program is missing, whose name stands before.
const MISSING: &[&str] = &["not found", "No such file or directory", "Permission denied"];

/// Ends of the names of files that such programs speak of.
const CODE: &[&str] = &[".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".o", ".so"];

/// How a loader begins behind the name of a library.
const LOADING: &[&str] = &[
    "undefined symbol: ",
    "cannot open shared object file",
    "cannot allocate memory in static TLS block",
    "cannot enable executable stack",
    "cannot read file data",
    "failed to map segment from shared object",
    "file too short",
    "invalid ELF header",
    "wrong ELF class: ",
    "version `",
    "symbol lookup error: ",
];

/// How a line begins that has a text of CUDA's, and how CUDA's of its linear algebra ends.
const CUDA: &str = "CUDA error: ";
const CUBLAS: (&str, &str) = ("CUBLAS_STATUS_", "`");

/// CUDA's texts of errors (`cudaGetErrorString`), each without the stop that some have.
const CUDA_TEXTS: &[&str] = &[
    "a kernel launch error has occurred due to cluster misconfiguration",
    "a PTX JIT compilation failed",
    "an illegal instruction was encountered",
    "an illegal memory access was encountered",
    "API call is not supported in the installed CUDA driver",
    "attempt to terminate a thread-local capture sequence from another thread",
    "cannot set while device is active in this process",
    "capturing stream has unjoined work",
    "context is destroyed",
    "CUDA driver is a stub library",
    "CUDA driver version is insufficient for CUDA runtime version",
    "CUDA-capable device(s) is/are busy or unavailable",
    "dependency created on uncaptured work in another stream",
    "device kernel image is invalid",
    "device-side assert triggered",
    "driver shutting down",
    "forward compatibility was attempted on non supported HW",
    "GPU fabric is not ready within the probe wait budget; application may retry (see CUDA_FABRIC_INIT_TIMEOUT_MS)",
    "hardware stack error",
    "initialization error",
    "Invalid access of peer GPU memory over nvlink or a hardware error",
    "invalid argument",
    "invalid configuration argument",
    "invalid device context",
    "invalid device function",
    "invalid device ordinal",
    "invalid program counter",
    "invalid resource handle",
    "mapping of buffer object failed",
    "misaligned address",
    "MPS client failed to connect to the MPS control daemon or the MPS server",
    "MPS server is not ready to accept new MPS client requests",
    "named symbol not found",
    "no CUDA-capable device is detected",
    "no kernel image is available for execution on the device",
    "operation failed due to a previous error during capture",
    "operation not permitted",
    "operation not permitted on an event last recorded in a capturing stream",
    "operation not permitted when stream is capturing",
    "operation not supported",
    "operation not supported on global/shared address space",
    "operation would make the legacy stream depend on a capturing blocking stream",
    "operation would result in a merge of separate capture sequences",
    "OS call failed or operation not supported on this OS",
    "out of memory",
    "part or all of the requested memory range is already mapped",
    "peer access has not been enabled",
    "peer access is already enabled",
    "peer access is not supported between these two devices",
    "peer mapping resources exhausted",
    "PTX JIT compiler library not found",
    "shared object initialization failed",
    "shared object symbol not found",
    "system has unsupported display driver / cuda driver combination",
    "system not yet initialized",
    "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update",
    "the hardware resources required to create MPS client have been exhausted",
    "the hardware resources required to support device connections have been exhausted",
    "the launch timed out and was terminated",
    "the MPS client has been terminated by the server",
    "the operation cannot be performed in the present state",
    "the provided PTX was compiled with an unsupported toolchain",
    "the remote procedural call between the MPS server and the MPS client failed",
    "too many blocks in cooperative launch",
    "too many resources requested for launch",
    "uncorrectable ECC error encountered",
    "uncorrectable NVLink error detected during the execution",
    "unknown error",
    "unspecified launch failure",
    "wait operation timed out",
];

/// How the lines of a build begin, behind a blank one, that neither a program nor a file heads.
const BUILDING: &[&str] = &[
    "FAILED: ",
    "In file included from ",
    "Remark: ",
    "error: ",
    "fatal error: ",
    "Error limit reached",
    "compilation terminated",
    "Killed",
    "ninja: ",
];

/// What stands in a compiler's count of its errors: `1 error detected in the compilation of "a.cu".`
const COUNTED: &[&str] = &[" detected in the compilation of ", " generated."];

/// Whether a line is one of a compiler's, linker's or loader's, which begins with the program or a file of code, or
/// CUDA's own: `nvcc fatal   : …`, `/usr/bin/ld: cannot find …`, `a.cu(12): error: …`, `libx.so.1: undefined symbol: …`.
pub(super) fn is_of_tool(line: &str) -> bool {
    if let Some(text) = line.strip_prefix(CUDA) {
        return is_of_cuda(text.trim_end());
    }
    let Some((head, said)) = line.split_once(':') else {
        return false;
    };
    let mut words = head.split_whitespace();
    let (Some(first), grade, None) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let name = first.rsplit('/').next().unwrap_or(first);
    match grade {
        // NVIDIA's set a grade before the colon, in a column of its own.
        Some(grade) => matches!(grade, "fatal" | "error" | "warning") && head.ends_with(' ') && is_tool(name),
        None if is_tool(name) => says(said),
        None => is_at(name, said),
    }
}

/// Whether a line that stands at the margin below a blank one is of the build whose output stands above.
pub(super) fn is_of_build(line: &str) -> bool {
    let begins = BUILDING.iter().any(|head| line.starts_with(head)) || is_step(line);
    let counted = line.starts_with(|c: char| c.is_ascii_digit()) && COUNTED.iter().any(|part| line.contains(part));
    let mut words = line.split_whitespace();
    let program = words.next().and_then(|word| word.rsplit('/').next());
    let command = program.is_some_and(is_tool) && words.any(|word| word.len() > 1 && word.starts_with('-'));
    begins || counted || command || is_of_tool(line)
}

/// `[1/12] …`: a step of ninja's.
fn is_step(line: &str) -> bool {
    let step = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    step.and_then(|(step, _)| step.split_once('/'))
        .is_some_and(|(done, all)| is_number(done) && is_number(all))
}

/// Whether that is a program's name, be it a cross compiler's, one of several versions' (`x86_64-linux-gnu-gcc-12`) or of
/// a `make` below another (`make[1]`).
fn is_tool(name: &str) -> bool {
    let name = name
        .strip_suffix(']')
        .and_then(|name| name.split_once('['))
        .map_or(name, |(name, _)| name);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
    [name, plain]
        .iter()
        .any(|name| TOOLS.contains(&name.rsplit('-').next().unwrap_or(name)))
}

/// Whether that is what a program says behind its name: something of its own, or a place first.
fn says(said: &str) -> bool {
    let Some(said) = said.strip_prefix([' ', '\t']).map(str::trim) else {
        return false;
    };
    let (place, more) = said.split_once(": ").unwrap_or((said, ""));
    let number = is_number(place.strip_prefix("line ").unwrap_or(place));
    let file = place.contains('/') && !place.contains(' ');
    let missing = MISSING.iter().any(|end| more.ends_with(end)) && !place.contains(' ');
    SAID.iter().any(|head| said.starts_with(head)) || missing || !more.is_empty() && (number || file)
}

/// Whether that is a file of code with a place in it, or with what a loader says of it.
fn is_at(name: &str, said: &str) -> bool {
    let (file, place) = name.split_once('(').unwrap_or((name, ""));
    let library = file.contains(".so.") || file.len() > ".so".len() && file.ends_with(".so");
    let loading = || LOADING.iter().any(|head| said.trim_start().starts_with(head));
    let code = CODE.iter().any(|end| file.len() > end.len() && file.ends_with(end));
    let line = said.split_once(':').is_some_and(|(line, _)| is_number(line)) || said.starts_with("(.text");
    let at = place.strip_suffix(')').is_some_and(is_number);
    library && loading() || code && (at && said.starts_with(' ') || place.is_empty() && line)
}

fn is_of_cuda(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    CUDA_TEXTS.contains(&text) || text.starts_with(CUBLAS.0) && text.ends_with(CUBLAS.1)
}

/// Whether that is a number of decimal digits.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_compiler_a_linker_or_a_loader_says_is_told_from_prose() {
        for line in [
            "nvcc fatal   : Unsupported gpu architecture 'compute_121a'",
            "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
            "ptxas error   : Entry function uses too much shared data",
            "/usr/bin/ld: cannot find -lcuda",
            "/usr/bin/ld: /tmp/ccX.o: undefined reference to `x'",
            "/usr/bin/ld: final link failed: No space left on device",
            "/usr/bin/x86_64-linux-gnu-gcc-12: fatal error: cannot execute 'cc1plus'",
            "c++: fatal error: Killed signal terminated program cc1plus",
            "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes",
            "collect2: error: ld returned 1 exit status",
            "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found",
            "/bin/sh: line 1: nvcc: command not found",
            "sh: nvcc: command not found",
            "make: *** [Makefile:12: all] Error 1",
            "make[1]: *** [Makefile:12: all] Error 1",
            "make: gcc: No such file or directory",
            "ninja: build stopped: subcommand failed.",
            "/root/x/bind.cpp:1:10: fatal error: Python.h: No such file or directory",
            "csrc/moe.cu(12): error: identifier \"x\" is undefined",
            "/usr/lib/python3.12/site-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c10",
            "libcudart.so.12: cannot open shared object file: No such file or directory",
            "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /opt/a.so)",
            "CUDA error: no kernel image is available for execution on the device",
            "CUDA error: the provided PTX was compiled with an unsupported toolchain.",
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        ] {
            assert!(is_of_tool(line), "{line}");
        }
        for line in [
            "Update: CUDA out of memory with the other one",
            "vllm/vllm-openai:latest says CUDA out of memory",
            "Qwen/Qwen3-8B: CUDA out of memory",
            "/models/a: CUDA out of memory",
            "With gcc I get this: no room",
            "make sure: nothing else runs",
            "https://host/a.c: see there",
            "entrypoint.sh: line 7: vllm: command not found",
            "cc: @someone: I get CUDA out of memory too",
            "cc: error I get there is CUDA out of memory",
            "make: CUDA out of memory happens only in the other env",
            "make error: CUDA out of memory happens with it",
            "sh: I ran the same and saw No space left on device",
            "sh: I tried: No such file or directory",
            "ninja: CUDA out of memory is from another run",
            "gcc: with version 12 I see No space left on device",
            "/opt/conf.h: I changed there CUDA_HOME environment variable is not set",
            "libnccl.so.2: this is the one from pip, no undefined symbol: there",
            "moe.cu (see above): No space left on device",
            "CUDA error: out of memory is what I get with the old driver",
            "CUDA error: I do not know which one",
        ] {
            assert!(!is_of_tool(line), "{line}");
        }
    }

    #[test]
    fn what_goes_on_with_a_build_below_a_blank_line_is_told_from_prose() {
        for line in [
            "FAILED: [code=1] a.o",
            "[2/12] c++ -c a.cpp",
            "/usr/local/cuda/bin/nvcc -c a.cu",
            "1 error detected in the compilation of \"a.cu\".",
            "2 warnings generated.",
            "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"",
            "a.cu(3): warning #177-D: variable \"x\" was declared but never referenced",
            "Killed",
        ] {
            assert!(is_of_build(line), "{line}");
        }
        for line in [
            "On my other box c++: fatal error: Killed signal terminated program cc1plus",
            "on my other box it works",
            "[later] No space left on device",
            "nvcc says No space left on device",
            "make sure - nothing else runs",
            "8 GiB are free, CUDA out of memory",
        ] {
            assert!(!is_of_build(line), "{line}");
        }
    }

    #[test]
    fn each_text_of_cuda_s_that_the_catalog_knows_is_known() {
        let catalog = include_str!("../../catalog/data/cuda-errors.toml");
        let texts: Vec<&str> = catalog
            .split(CUDA)
            .filter_map(|part| Some(part.split_once("\\nSearch for ")?.0))
            .filter(|text| !text.contains('\n'))
            .collect();
        assert!(texts.len() > 40);
        for text in texts {
            assert!(is_of_cuda(text), "{text}");
        }
    }
}
