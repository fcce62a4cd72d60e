//! Communicators of a part of the ranks: who never came to one, by which of its names, and what is not known.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::{Outcome, Report};

/// Sixteen ranks on two nodes.
const RANKS: u32 = 16;
const NODES: [&str; 2] = ["gx-a", "gx-b"];

/// A job whose ranks meet as a whole, if they do, and then in parts.
struct Job {
    /// Whether there is a communicator of all.
    world: bool,
    /// The global ranks of each part.
    parts: Vec<Vec<u32>>,
    /// Ranks that come to no part.
    absent: Vec<u32>,
    /// Whether the watchdogs of those that wait end it.
    ends: bool,
}

impl Job {
    /// Parts of consecutive ranks, as tensor parallelism has them.
    fn tensor(absent: &[u32]) -> Self {
        let parts = vec![(0..8).collect(), (8..16).collect()];
        Self::of(parts, absent)
    }

    /// Pairs across the nodes, as pipeline parallelism has them.
    fn pairs(absent: &[u32]) -> Self {
        Self::of((0..8).map(|rank| vec![rank, rank + 8]).collect(), absent)
    }

    fn of(parts: Vec<Vec<u32>>, absent: &[u32]) -> Self {
        Self {
            world: true,
            parts,
            absent: absent.to_vec(),
            ends: true,
        }
    }

    /// The lines of each node.
    fn nodes(&self) -> [String; 2] {
        let mut out = [String::new(), String::new()];
        let mut say = |rank: u32, text: &str| {
            let (node, local) = ((rank / 8) as usize, rank % 8);
            let pid = 4000 + 3000 * node + rank as usize;
            out[node].push_str(&format!("{}:{pid}:{pid} [{local}] NCCL INFO {text}\n", NODES[node]));
        };
        for rank in 0..RANKS {
            say(rank, "NCCL version 2.27.5+cuda12.9");
        }
        let whole: Vec<Vec<u32>> = if self.world {
            vec![(0..RANKS).collect()]
        } else {
            Vec::new()
        };
        let mut waiting: Vec<u32> = Vec::new();
        for (nth, group) in whole.iter().chain(&self.parts).enumerate() {
            let came: Vec<u32> = group
                .iter()
                .copied()
                .filter(|r| nth < whole.len() || !self.absent.contains(r))
                .collect();
            let comm = |rank: u32| {
                let (local, size) = (rank % 8, group.len());
                let own = group.iter().position(|r| *r == rank).unwrap();
                format!(
                    "ncclCommInitRankConfig comm 0x8e{nth:02x}{rank:02x} rank {own} nranks {size} cudaDev {local} nvmlDev {local} \
                     busId {local}b000 commId 0x6f3c1d2e88a90b{nth:02x}"
                )
            };
            for &rank in &came {
                say(rank, &format!("{} - Init START", comm(rank)));
            }
            for &rank in came.iter().filter(|_| came.len() == group.len()) {
                say(
                    rank,
                    "Bootstrap timings total 0.12 (create 0.01, send 0.01, recv 0.08, ring 0.01, delay 0.01)",
                );
                say(rank, &format!("{} - Init COMPLETE", comm(rank)));
            }
            if came.len() < group.len() {
                waiting.extend(came);
            }
        }
        for rank in waiting.into_iter().filter(|_| self.ends) {
            out[(rank / 8) as usize].push_str(&format!(
                "[rank{rank}]:[E1130 11:10:12.018123412 ProcessGroupNCCL.cpp:688] [Rank {rank}] Watchdog caught \
                 collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, \
                 Timeout(ms)=600000) ran for 600028 milliseconds before timing out.\n"
            ));
        }
        out
    }

    /// A file for each node.
    fn files(&self) -> Report {
        let nodes = self.nodes();
        examine_texts(&[0, 1].map(|n| Text::new(format!("{}.log", NODES[n]), nodes[n].clone())))
    }

    /// One stream.
    fn stream(&self) -> Report {
        examine_texts(&[Text::new("all.log", self.nodes().concat())])
    }
}

fn absent(report: &Report) -> Vec<&str> {
    let found = report.findings.iter().filter(|f| f.id == "arrival.absent");
    found.map(|f| f.title.as_str()).collect()
}

#[test]
fn a_rank_that_never_came_to_a_part_is_named_by_its_global_rank_and_node() {
    let job = Job::tensor(&[13]);
    for report in [job.files(), job.stream()] {
        assert_eq!(
            report.headline,
            "Rank 13 (gx-b) never joined a communicator of 8 ranks: ranks 8–12, 14, 15 waited for it"
        );
        assert_eq!(
            absent(&report),
            [
                "Communicator 0x6f3c1d2e88a90b02 of 8 ranks: ranks 8–12, 14, 15 came; rank 13 (gx-b), its rank 5, did not: \
                 it is in the logs and stopped short of it"
            ]
        );
        assert_eq!(report.launch.world_size, Some(16));
        assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
    }
}

#[test]
fn a_rank_that_left_its_partner_alone_is_known_by_the_other_pairs() {
    let report = Job::pairs(&[13]).files();
    assert_eq!(
        report.headline,
        "Rank 13 (gx-b) never joined a communicator of 2 ranks: rank 5 waited for it"
    );
    assert_eq!(report.launch.world_size, Some(16));
}

#[test]
fn ranks_that_no_pair_places_are_named_together() {
    let report = Job::pairs(&(8..16).collect::<Vec<_>>()).stream();
    assert_eq!(
        report.headline,
        "Ranks 8–15 (gx-b) never joined 8 communicators of 2 ranks: 8 ranks waited for them"
    );
    assert_eq!(
        absent(&report).first(),
        Some(&"Communicator 0x6f3c1d2e88a90b01 of 2 ranks: rank 0 came; its rank 1, one of ranks 8–15 (gx-b), did not")
    );
}

#[test]
fn without_a_communicator_of_all_the_process_is_named_and_the_size_of_a_part_is_not_the_launchs() {
    let mut job = Job::tensor(&[13]);
    job.world = false;
    for report in [job.files(), job.stream()] {
        assert_eq!(
            report.headline,
            "Worker pid=7013 @gx-b never joined a communicator of 8 ranks: 7 of its ranks waited for it"
        );
        assert_eq!(report.launch.world_size, None);
    }
}

#[test]
fn a_part_whose_other_node_has_no_log_is_not_said_to_lack_a_rank() {
    let [a, _] = Job::pairs(&[13]).nodes();
    let report = examine_texts(&[Text::new("gx-a.log", a)]);
    assert_eq!(
        absent(&report),
        [
            "Communicator 0x6f3c1d2e88a90b06 of 2 ranks: rank 5 came; whether its rank 1 came is not known: its log is not in \
             the input"
        ]
    );
    assert_eq!(report.log.missing, ["rank 1 of communicator 0x6f3c1d2e88a90b06"]);
}

#[test]
fn a_log_that_stops_there_tells_who_is_waited_for_and_no_failure() {
    let mut job = Job::tensor(&[13]);
    job.ends = false;
    let report = job.files();
    assert_eq!(report.outcome, Outcome::Running);
    assert_eq!(
        report.headline,
        "Rank 13 (gx-b) has not joined a communicator of 8 ranks: ranks 8–12, 14, 15 wait for it"
    );
}

#[test]
fn where_all_came_nobody_is_missed() {
    for job in [Job::tensor(&[]), Job::pairs(&[])] {
        for report in [job.files(), job.stream()] {
            assert_eq!(report.outcome, Outcome::Running);
            assert!(absent(&report).is_empty(), "{:?}", absent(&report));
            assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
        }
    }
}

#[test]
fn whoever_died_of_its_own_is_no_absentee() {
    let [a, mut b] = Job::tensor(&[13]).nodes();
    b.push_str(
        "[rank13]: Traceback (most recent call last):\n[rank13]:   File \"/w/train.py\", line 10, in <module>\n\
         [rank13]:     x = torch.empty(10**12, device=\"cuda\")\n\
         [rank13]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.64 TiB. GPU 5 has a total capacity of \
         79.10 GiB of which 78.51 GiB is free.\n",
    );
    let report = examine_texts(&[Text::new("gx-a.log", a), Text::new("gx-b.log", b)]);
    assert_eq!(report.cause.as_ref().map(|c| c.id.as_str()), Some("gpu-oom.other"));
    assert!(absent(&report).is_empty(), "{:?}", absent(&report));
}

#[test]
fn an_absentee_that_raised_something_died_of_that() {
    let raised = "[rank13]: Traceback (most recent call last):\n[rank13]:   File \"/app/train.py\", line 44, in <module>\n[rank13]:     x = plan(cfg)\n[rank13]: ValueError: the planes do not fit\n";
    let mut whole = Job::of(vec![(0..RANKS).collect()], &[13]);
    whole.world = false;
    for job in [Job::tensor(&[13]), whole] {
        let [first, second] = job.nodes();
        let (waits, dumps) = second.split_at(second.find("[rank").unwrap());
        let report = examine_texts(&[
            Text::new("gx-a.log", first),
            Text::new("gx-b.log", format!("{waits}{raised}{dumps}")),
        ]);
        assert_eq!(
            report.headline,
            "Rank 13 (gx-b) died of ValueError: the planes do not fit"
        );
        assert_eq!(absent(&report).len(), 1, "that it did not come stands behind");
    }
}
