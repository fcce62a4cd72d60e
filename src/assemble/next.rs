//! What to look at next, and what is said where nothing failed.
//!
//! Owns the choice by what the inputs already hold and by how the log ends. The entries of causes are data.

use crate::catalog::Catalog;
use crate::remedy::{Advice, Evidence};
use crate::report::model::{LogState, NextEvidence, Outcome, Retry};

/// What keeps the whole output of a launch.
const KEEPERS: &[&str] = &["kubernetes", "slurm", "docker", "ray"];

/// What is said about trying again where nothing failed.
pub fn without_a_failure(outcome: Outcome) -> Advice {
    let (verdict, why) = match outcome {
        Outcome::Running => ("unknown", "The log does not show how the launch ends."),
        _ => ("unknown", "Nothing failed."),
    };
    let retry = Retry {
        verdict: verdict.to_owned(),
        why: why.to_owned(),
        same_node: None,
        after: None,
    };
    Advice {
        remedies: Vec::new(),
        will_not_help: Vec::new(),
        retry,
        next_evidence: if outcome == Outcome::Running {
            ask_the_running()
        } else {
            Vec::new()
        },
        owner: "unknown".to_owned(),
    }
}

/// What tells more of a launch whose log simply ends.
fn ask_the_running() -> Vec<NextEvidence> {
    let ask = |what: &str, why: &str, command: &str| NextEvidence {
        what: what.to_owned(),
        why: why.to_owned(),
        command: command.to_owned(),
    };
    vec![
        ask(
            "What each process of the launch is doing, on every node",
            "The log ends in mid-phase without a failure; the stacks tell work from a wait.",
            "py-spy dump --pid PID",
        ),
        ask(
            "Whether the kernel ended one of them",
            "A process that is killed from outside writes nothing.",
            "dmesg -T | grep -iE 'killed process|out of memory|NVRM'",
        ),
    ]
}

/// What to look at next, less what is among the inputs; the rest of the log first where it is cut and the cause only
/// says that something died.
pub fn wanted(
    catalog: &Catalog,
    entries: Vec<NextEvidence>,
    known: Option<&Evidence<'_>>,
    log: &LogState,
    inputs: &[String],
) -> Vec<NextEvidence> {
    let given = |file: &str| {
        inputs
            .iter()
            .any(|i| i.rsplit('/').next().is_some_and(|name| name.starts_with(file)))
    };
    let has = |w: &NextEvidence, file: &str| w.command.contains(file) && given(file);
    let rest = known.and_then(|known| {
        let weak = catalog
            .cause(known.cause)
            .is_some_and(|cause| cause.strength != "strong");
        let cut = log.head.as_deref() == Some("cut") || matches!(log.tail.as_deref(), Some("cut" | "mid-line"));
        (weak && cut).then(|| whole_log(known))
    });
    let entries = entries.into_iter().filter(|entry| {
        !["raylet.out", "gcs_server.out", "dmesg"]
            .iter()
            .any(|file| has(entry, file))
    });
    // Where the transport keeps it, the rest is one command away; else the launch has to be run again for it.
    let kept = known.is_some_and(|known| KEEPERS.iter().any(|keeper| known.under.contains(keeper)));
    let mut wanted: Vec<NextEvidence> = entries.collect();
    if let Some(rest) = rest {
        wanted.insert(if kept { 0 } else { wanted.len() }, rest);
    }
    wanted
}

/// The one command that gets the whole log, by what the launch runs under.
fn whole_log(known: &Evidence<'_>) -> NextEvidence {
    let node = known.node;
    let command = if known.under.contains(&"kubernetes") {
        format!("kubectl logs --previous {} > launch.log", node.unwrap_or("POD"))
    } else if known.under.contains(&"slurm") {
        "scontrol show job JOBID | grep -E 'StdOut|StdErr'   # then read those files".to_owned()
    } else if known.under.contains(&"docker") {
        "docker logs CONTAINER > launch.log 2>&1".to_owned()
    } else if known.under.contains(&"ray") {
        "ray job logs JOB_ID > launch.log".to_owned()
    } else {
        "COMMAND 2>&1 | tee -i launch.log   # where the output was not kept".to_owned()
    };
    NextEvidence {
        what: "The whole log of this launch".to_owned(),
        why: "This log is cut, and what is left only says that something died; the reason stands in the missing part."
            .to_owned(),
        command,
    }
}
