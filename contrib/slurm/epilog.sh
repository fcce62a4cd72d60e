#!/usr/bin/env bash
# EpilogSlurmctld of Slurm: leaves a report beside the output of a job that failed. slurm.conf: EpilogSlurmctld=/etc/slurm/epilog.sh
#
# Slurm sets SLURM_JOB_ID, SLURM_JOB_EXIT_CODE2 and SLURM_JOB_STDOUT (24.11 and later). An epilog that fails drains
# the node, so this one always ends with 0, and within a minute.
set -u
log=${SLURM_JOB_STDOUT:-}
if [ -z "$log" ]; then
  log=$(scontrol show job "$SLURM_JOB_ID" 2> /dev/null | sed -n 's/^ *StdOut=//p' | head -n 1)
fi
case ${SLURM_JOB_EXIT_CODE2:-1:0} in 0:0) exit 0 ;; esac
[ -r "$log" ] || exit 0
timeout 60 coroner --no-config --exit-zero --format "markdown=${log%.out}.coroner.md" --format oneline -- "$log" 2>&1 |
  logger -t coroner || true
exit 0
