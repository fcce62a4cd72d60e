//! The logs that speed is measured on, each with the answer it must give: a run with another verdict has no speed.
//!
//! All are deterministic, and hold the mixture of lines that such a log has, not one line many times.

pub mod incident;
mod launches;

use std::fmt::Write as _;
use std::io::{self, Write};

use launches::{OUT_OF_MEMORY, SITE};
pub use launches::{capture_failure, loading, ready};

/// A kind of log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A launch, hours of serving, and a second launch that dies in graph capture.
    Served,
    /// The same as Docker's json-file driver stores it.
    Docker,
    /// `NCCL_DEBUG=INFO` while 512 ranks start, one of which cannot reach its peer.
    Nccl,
    /// SGLang: settings lines of 10 kB, progress bars in one line, a line of 50 MB, and a death in graph capture.
    Sglang,
    /// A server that answers one request in fifty with a traceback.
    Refusals,
    /// vLLM at `DEBUG` level, serving.
    Debug,
}

/// What a report on a shape says.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub outcome: &'static str,
    pub phase: Option<&'static str>,
    pub cause: Option<&'static str>,
    /// A part of the root line.
    pub root: Option<&'static str>,
}

impl Shape {
    pub const ALL: [Self; 6] = [
        Self::Served,
        Self::Docker,
        Self::Nccl,
        Self::Sglang,
        Self::Refusals,
        Self::Debug,
    ];

    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Served => "S1-served",
            Self::Docker => "S2-docker",
            Self::Nccl => "S3-nccl",
            Self::Sglang => "S4-sglang",
            Self::Refusals => "S5-refusals",
            Self::Debug => "S6-debug",
        }
    }

    /// The answer it must give.
    pub fn answer(self) -> Answer {
        let (outcome, phase, cause, root) = match self {
            Self::Served | Self::Docker | Self::Sglang => (
                "failed",
                Some("graph-capture"),
                Some("gpu-oom.graph-capture"),
                Some("torch.OutOfMemoryError: CUDA out of memory"),
            ),
            Self::Nccl => (
                "failed",
                Some("distributed-init"),
                Some("nccl.bootstrap-net"),
                Some("failed : Connection refused"),
            ),
            Self::Refusals | Self::Debug => ("healthy", Some("serving"), None, None),
        };
        Answer {
            outcome,
            phase,
            cause,
            root,
        }
    }

    /// Writes a log of about `bytes`.
    pub fn write(self, out: &mut dyn Write, bytes: usize) -> io::Result<()> {
        let mut rnd = Random(7);
        let mut stretch = String::new();
        let mut done = 0;
        let head = self.head();
        self.emit(out, &head)?;
        while done < bytes {
            stretch.clear();
            for _ in 0..1000 {
                self.line(&mut rnd, &mut stretch);
            }
            done += self.emit(out, &stretch)?;
        }
        self.emit(out, &self.tail())?;
        Ok(())
    }

    fn head(self) -> String {
        match self {
            Self::Served | Self::Docker | Self::Refusals | Self::Debug => {
                loading(1, 200, "11-25 11:58") + &ready(1, 200, "11-25 11:58")
            }
            Self::Nccl => loading(1, 200, "11-25 11:58")
                .lines()
                .take(6)
                .map(|l| format!("{l}\n"))
                .collect(),
            Self::Sglang => launches::sglang_loading(),
        }
    }

    fn tail(self) -> String {
        match self {
            Self::Served | Self::Docker => loading(7, 900, "11-25 13:00") + &capture_failure(7, 900, "11-25 13:00"),
            Self::Nccl => launches::nccl_failure(),
            Self::Sglang => {
                format!("[2026-11-25 12:00:00 TP0] {}\n", "prompt ".repeat(7_000_000)) + &launches::sglang_failure()
            }
            Self::Refusals | Self::Debug => String::new(),
        }
    }

    /// Puts the transport round each line, and counts the bytes.
    fn emit(self, out: &mut dyn Write, text: &str) -> io::Result<usize> {
        if self != Self::Docker {
            out.write_all(text.as_bytes())?;
            return Ok(text.len());
        }
        let mut stored = String::with_capacity(text.len() * 2);
        for line in text.lines() {
            let line = line.replace('\\', "\\\\").replace('"', "\\\"").replace('\r', "\\r");
            let stamp = "2026-11-25T12:00:00.123456789Z";
            let _ = writeln!(stored, r#"{{"log":"{line}\n","stream":"stderr","time":"{stamp}"}}"#);
        }
        out.write_all(stored.as_bytes())?;
        Ok(stored.len())
    }

    fn line(self, rnd: &mut Random, out: &mut String) {
        match self {
            Self::Served | Self::Docker => match rnd.below(11) {
                0..3 => nccl(rnd, out),
                3..8 => vllm(rnd, out),
                _ => sglang(rnd, out),
            },
            Self::Nccl => nccl_start(rnd, out),
            Self::Sglang => launches::sglang_line(rnd, out),
            Self::Refusals => {
                if rnd.below(50) == 0 {
                    launches::refusal(rnd, out);
                }
                vllm(rnd, out);
            }
            Self::Debug => debug(rnd, out),
        }
    }
}

/// A small generator of numbers that are the same everywhere (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

fn nccl(rnd: &mut Random, out: &mut String) {
    let (host, r) = (["node-a", "node-b"][rnd.below(2) as usize], rnd.below(8));
    let next = (r + 1) % 8;
    let _ = write!(out, "{host}:{}:{} [{r}] NCCL INFO ", 4100 + r, 5100 + r);
    let _ = match rnd.below(3) {
        0 => writeln!(
            out,
            "Channel {:02}/0 : {r}[{r}] -> {next}[{next}] via P2P/CUMEM/read",
            rnd.below(16)
        ),
        1 => writeln!(out, "Trees [0] {next}/-1/-1->{r}->-1 [1] {next}/-1/-1->{r}->-1"),
        _ => writeln!(out, "NET/IB : GPU Direct RDMA Enabled for HCA {r} 'mlx5_{r}'"),
    };
}

fn nccl_start(rnd: &mut Random, out: &mut String) {
    let rank = rnd.below(512);
    nccl_start_of(rank, rnd, out);
}

/// A line of one of 512 ranks.
fn nccl_start_of(rank: u64, rnd: &mut Random, out: &mut String) {
    let (node, dev) = (rank / 8, rank % 8);
    let peer = (rank + 1) % 512;
    let _ = write!(out, "node-{node:02}:{}:{} [{dev}] NCCL INFO ", 4100 + dev, 5100 + dev);
    let _ = match rnd.below(60) {
        0 => writeln!(
            out,
            "ncclCommInitRankConfig comm 0x55d{rank:06x}0 rank {rank} nranks 512 cudaDev {dev} nvmlDev {dev} busId {dev}a000 commId 0x9cf1ac5e2b1f77d2 - Init START"
        ),
        1 => writeln!(out, "NCCL_IB_HCA set to mlx5"),
        2..12 => writeln!(
            out,
            "Trees [0] {peer}/-1/-1->{rank}->{} [1] {peer}/-1/-1->{rank}->-1",
            (rank + 511) % 512
        ),
        12..20 => writeln!(out, "NET/IB : GPU Direct RDMA Enabled for HCA {dev} 'mlx5_{dev}'"),
        20..30 => writeln!(out, "P2P Chunksize set to 131072"),
        30..45 => writeln!(
            out,
            "Channel {:02}/0 : {rank}[{dev}] -> {peer}[{}] [send] via NET/IB/{dev}/GDRDMA",
            rnd.below(16),
            peer % 8
        ),
        _ => writeln!(
            out,
            "Channel {:02}/0 : {rank}[{dev}] -> {peer}[{}] via P2P/CUMEM",
            rnd.below(16),
            peer % 8
        ),
    };
}

fn vllm(rnd: &mut Random, out: &mut String) {
    let (minute, second) = (rnd.below(60), rnd.below(60));
    let mut f = |n: u64| rnd.below(n * 10) as f64 / 10.0;
    let (a, b, c, d) = (f(9000), f(900), f(100), f(100));
    let _ = match rnd.below(3) {
        0 => writeln!(
            out,
            "(APIServer pid=1) INFO:     10.0.0.{}:{} - \"POST /v1/chat/completions HTTP/1.1\" 200 OK",
            1 + rnd.below(250),
            2000 + rnd.below(58_000)
        ),
        1 => writeln!(
            out,
            "(APIServer pid=1) INFO 11-25 12:{minute:02}:{second:02} [loggers.py:127] Engine 000: Avg prompt throughput: {a:.1} tokens/s, Avg generation throughput: {b:.1} tokens/s, Running: {} reqs, Waiting: 0 reqs, GPU KV cache usage: {c:.1}%, Prefix cache hit rate: {d:.1}%",
            rnd.below(99)
        ),
        _ => writeln!(
            out,
            "(EngineCore pid=200) INFO 11-25 12:{minute:02}:{second:02} [kv_cache_utils.py:2146] Prefix cache evicted {} blocks, {} free, longest reusable prefix {} tokens",
            rnd.below(9999),
            rnd.below(9999),
            rnd.below(9999)
        ),
    };
}

fn sglang(rnd: &mut Random, out: &mut String) {
    let _ = writeln!(
        out,
        "[2026-11-25 12:{:02}:{:02} TP{}] Decode batch. #running-req: {}, #token: {}, token usage: 0.{:02}, cuda graph: True, gen throughput (token/s): {}.{:02}, #queue-req: 0",
        rnd.below(60),
        rnd.below(60),
        rnd.below(8),
        1 + rnd.below(49),
        rnd.below(9999),
        rnd.below(100),
        rnd.below(2000),
        rnd.below(100)
    );
}

fn debug(rnd: &mut Random, out: &mut String) {
    let (minute, second, n) = (rnd.below(60), rnd.below(60), rnd.below(9999));
    let core = format!("(EngineCore pid=200) DEBUG 11-25 12:{minute:02}:{second:02} ");
    let _ = match rnd.below(6) {
        0 => writeln!(out, "{core}[core.py:1012] EngineCore loop active."),
        1 => writeln!(out, "{core}[core.py:1006] EngineCore waiting for work."),
        2 => writeln!(
            out,
            "{core}[scheduler.py:700] scheduled {n} tokens of {} requests, {} free blocks",
            n % 64,
            n * 3
        ),
        3 => writeln!(
            out,
            "(APIServer pid=1) DEBUG 11-25 12:{minute:02}:{second:02} [async_llm.py:412] Added request chatcmpl-{:016x}.",
            n * 7919
        ),
        _ => {
            vllm(rnd, out);
            Ok(())
        }
    };
}
