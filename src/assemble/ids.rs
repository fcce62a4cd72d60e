//! What other systems know the launch by: Slurm's job, the pod and the container, Ray's session.
//!
//! Owns where such an id stands in a log. Gives none where the logs name several. Never looks at what failed.

use std::collections::BTreeSet;

use super::places::Names;
use crate::catalog::Catalog;
use crate::event::Event;
use crate::launch::files::file_of;
use crate::launch::folders::session;
use crate::report::model::LaunchIds;
use crate::verdict::Verdict;
use crate::verdict::failure::Failure;

/// What Slurm's programs write before the number of a job, or of one of its steps.
const JOBS: [&str; 4] = ["StepId=", "step=", "*** JOB ", "*** STEP "];

/// The ids of the launch, and of the place where its root arose.
pub fn ids(catalog: &Catalog, names: &Names<'_>, verdict: &Verdict, root: Option<&Failure>) -> LaunchIds {
    let events = || names.launches.events_of(verdict.attempt).map(|placed| &placed.event);
    let program = |event: &Event| catalog.signature(event.signature).map(|s| s.def.program.as_str());
    let of_slurm = events().filter(|event| program(event) == Some("slurm"));
    let files: BTreeSet<String> = events()
        .map(|event| names.input(event.place.input).replace('\\', "/"))
        .collect();
    let raised = root.and_then(|failure| Some((failure, &names.launches.events.get(failure.event)?.event)));
    let pod = raised.and_then(|(_, event)| match event.victim.node.as_ref() {
        Some(node) if program(event) == Some("k8s") => Some(node.to_string()),
        _ => pod_of_prefix(&event.place.text).map(ToOwned::to_owned),
    });
    let container = raised.and_then(|(failure, _)| names.launches.processes.get(failure.process).container.clone());
    LaunchIds {
        slurm_job: only(of_slurm.filter_map(|event| job(&event.place.text)))
            .or_else(|| only(files.iter().filter_map(|name| job_of_file(name)))),
        pod,
        container: container.map(|name| name.to_string()),
        ray_session: only(files.iter().filter_map(|name| session(name))),
    }
}

/// `[pod/qwen-0-1/vllm] …`, as `kubectl logs --prefix` writes.
fn pod_of_prefix(line: &str) -> Option<&str> {
    line.strip_prefix("[pod/")?.split_once('/').map(|(pod, _)| pod)
}

/// The job that a line of Slurm's names: `StepId=884213.0`, `*** JOB 6753 ON gpu-04 CANCELLED …`.
fn job(line: &str) -> Option<&str> {
    JOBS.iter().find_map(|before| number(line.split_once(before)?.1))
}

/// `slurm-884213.out`, which `sbatch` writes unless told otherwise.
fn job_of_file(name: &str) -> Option<&str> {
    number(file_of(name).strip_prefix("slurm-")?)
}

/// The number with which a text begins.
fn number(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end).filter(|digits| !digits.is_empty())
}

fn only<'a>(found: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut found: BTreeSet<&str> = found.collect();
    let first = found.pop_first()?;
    found.is_empty().then(|| first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_ids_stand() {
        assert_eq!(
            job("slurmstepd: error: Detected 1 oom_kill event in StepId=884213.0."),
            Some("884213")
        );
        assert_eq!(
            job("slurmstepd: error: *** STEP 6753.0 ON gpu-04 CANCELLED AT 2026-01-07T10:29:37 ***"),
            Some("6753")
        );
        assert_eq!(job("srun: error: gpu-04: task 3: Out Of Memory"), None);
        assert_eq!(job_of_file("logs/slurm-884213_4.out"), Some("884213"));
        assert_eq!(job_of_file("logs/slurm-launch.out"), None);
        let session_name = "session_2026-11-29_14-11-02_112233_1";
        assert_eq!(
            session(&format!("/tmp/ray/{session_name}/logs/raylet.out")),
            Some(session_name)
        );
        assert_eq!(session("/tmp/ray/session_latest/logs/raylet.out"), None);
        assert_eq!(pod_of_prefix("[pod/qwen-0-1/vllm] INFO"), Some("qwen-0-1"));
        assert_eq!(only(["1", "1"].into_iter()), Some("1".to_owned()));
        assert_eq!(only(["1", "2"].into_iter()), None, "jobs of several launches");
    }
}
