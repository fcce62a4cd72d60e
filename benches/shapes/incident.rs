//! One incident of 512 ranks on 64 nodes, a file for each node: one rank runs out of memory while it loads its weights,
//! and ten minutes later all others give up the collective in which they wait for it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{OUT_OF_MEMORY, Random, SITE, nccl_start_of};

const NODES: u32 = 64;
const RANKS_OF_A_NODE: u32 = 8;
/// The rank that dies.
pub const DEAD: u32 = 301;

/// The node of a rank.
pub fn node(rank: u32) -> String {
    format!("node-{:02}", rank / RANKS_OF_A_NODE)
}

/// Writes the folder of about `bytes` in all, and gives its path.
pub fn write(folder: &Path, bytes: usize) -> io::Result<PathBuf> {
    let path = folder.join("S7-incident.d");
    fs::create_dir_all(&path)?;
    let mut rnd = Random(7);
    for of in 0..NODES {
        let ranks: Vec<u32> = (of * RANKS_OF_A_NODE..(of + 1) * RANKS_OF_A_NODE).collect();
        let mut out = start(of, &ranks);
        let tail = end(&ranks);
        while out.len() + tail.len() < bytes / NODES as usize {
            let rank = ranks[rnd.below(ranks.len() as u64) as usize];
            nccl_start_of(u64::from(rank), &mut rnd, &mut out);
        }
        out.push_str(&tail);
        fs::write(path.join(format!("{}.log", node(ranks[0]))), out)?;
    }
    Ok(path)
}

fn start(of: u32, ranks: &[u32]) -> String {
    let mut out = format!(
        "[2026-11-25 11:58:00] server_args=ServerArgs(model_path='/models/big-moe', tp_size=512, mem_fraction_static=0.88, nnodes=64, node_rank={of}, dist_init_addr='10.1.0.1:5000')\n"
    );
    for rank in ranks {
        let p = format!("[2026-11-25 11:58:0{} TP{rank}]", rank % 8);
        let _ = writeln!(
            out,
            "{p} Init torch distributed begin.\n{p} Init torch distributed ends. mem usage=1.02 GB"
        );
    }
    out
}

fn end(ranks: &[u32]) -> String {
    let mut out = String::new();
    for rank in ranks {
        let _ = writeln!(
            out,
            "[2026-11-25 12:00:02 TP{rank}] Load weight begin. avail mem=77.90 GB"
        );
    }
    for rank in ranks.iter().filter(|r| **r == DEAD) {
        let _ = writeln!(
            out,
            "[2026-11-25 12:00:14 TP{rank}] Scheduler hit an exception: Traceback (most recent call last):\n  \
             File \"{SITE}sglang/srt/managers/scheduler.py\", line 2311, in run_scheduler_process\n    \
             scheduler = Scheduler(\n  \
             File \"{SITE}sglang/srt/model_executor/model_runner.py\", line 700, in load_model\n    \
             self.model = get_model(\n\
             {OUT_OF_MEMORY}\n\n\
             [2026-11-25 12:00:15] Received sigquit from a child process. It usually means the child failed."
        );
    }
    for rank in ranks.iter().filter(|r| **r != DEAD) {
        watchdog(*rank, &mut out);
    }
    out
}

/// What torch prints when a collective does not end.
fn watchdog(rank: u32, out: &mut String) {
    let at = format!(
        "[rank{rank}]:[E1125 12:10:2{}.{rank:06}000 ProcessGroupNCCL.cpp",
        rank % 10
    );
    let _ = writeln!(
        out,
        "{at}:683] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600017 milliseconds before timing out.\n\
         {at}:2241] [PG ID 2 PG GUID 3 Rank {rank}] failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 7, last completed work: 6\n\
         {at}:730] Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.\n\
         {at}:745] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n\
         {at}:759] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.\n\
         terminate called after throwing an instance of 'c10::DistBackendError'\n  \
         what():  [PG ID 2 PG GUID 3 Rank {rank}] Process group watchdog thread terminated with exception: [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600017 milliseconds before timing out."
    );
    for frame in 0..14 {
        let _ = writeln!(
            out,
            "frame #{frame}: c10d::ProcessGroupNCCL::watchdogHandler() + 0x{:x} (0x7f{:08x} in {SITE}torch/lib/libtorch_cuda.so)",
            1000 + frame * 37,
            frame * 7919
        );
    }
}
