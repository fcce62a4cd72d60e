//! Many incidents: walk, examine in parallel, hand over the records.
//!
//! Owns the flow from the walk to the records and its bounds: the memory of a scan does not grow with the number of
//! logs. Never judges, and never stops at an input that cannot be read.

pub mod columns;
pub mod csv;
pub mod digest;
pub mod group;
pub mod incident;
mod order;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
pub mod parquet;
pub mod record;
pub mod resume;
pub mod sink;
pub mod summary;
pub mod walk;

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rayon::iter::{ParallelBridge, ParallelIterator};

use crate::catalog::Catalog;
use crate::examine::Options;
use order::{Message, Order};
use record::{Bench, Record, Redaction};
use resume::Known;
use walk::Found;

/// Incidents that may be under way or wait for their turn, for each thread.
const WINDOW: usize = 64;

/// Records between the workers and the one who takes them.
const QUEUE: usize = 32;

/// Stack of a worker, as large as that of a main thread.
const STACK: usize = 8 << 20;

/// How a scan runs.
pub struct Settings<'a> {
    /// The rules.
    pub catalog: &'a Catalog,
    /// Options of every examination.
    pub options: Options,
    /// What a record depends on besides the content of the logs.
    pub basis: String,
    /// Records of earlier scans, which stand for incidents that have not changed.
    pub known: Known,
    /// What is taken out of the records.
    pub redaction: &'a Redaction,
    /// Threads; 0 for one on each core.
    pub threads: usize,
    /// Whether records come in the order of the walk, or as they are finished.
    pub ordered: bool,
    /// When this is raised no further incident is begun; those begun are finished.
    pub stop: &'a AtomicBool,
}

/// Takes what a scan yields.
pub trait Sink: Send {
    /// Takes a record. An error ends the scan.
    fn record(&mut self, record: &Record) -> io::Result<()>;
    /// An incident, whose files have so many stored bytes, is finished; its records may still wait for their turn.
    fn examined(&mut self, bytes: u64);
}

/// Examines all that the walk finds.
///
/// # Errors
/// When the sink gives one, or threads cannot be started.
pub fn scan(found: impl Iterator<Item = Found> + Send, settings: &Settings<'_>, sink: &mut dyn Sink) -> io::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .stack_size(STACK)
        .thread_name(|n| format!("examiner-{n}"))
        .build()
        .map_err(io::Error::other)?;
    let (gate, passed) = sync_channel(WINDOW * pool.current_num_threads());
    let (sender, messages) = sync_channel(QUEUE);
    let numbered = Gated {
        found,
        gate,
        stop: settings.stop,
    }
    .zip(0u64..);
    let bench = Bench {
        catalog: settings.catalog,
        options: &settings.options,
        basis: &settings.basis,
        known: &settings.known,
        redaction: settings.redaction,
        turn: Mutex::new(()),
    };
    let order = Order::new(settings.ordered);
    thread::scope(|scope| {
        let sink = scope.spawn(move || drain(&messages, &passed, order, sink));
        pool.install(|| {
            numbered.par_bridge().for_each_with(sender, |to, (found, n)| {
                // Sending fails when the sink has failed; then the gate is shut too, and this was the last.
                examine(&bench, &found, &mut |record| _ = to.send(Message::Record(n, record)));
                _ = to.send(Message::Done(n, bytes(&found)));
            });
        });
        sink.join()
            .unwrap_or_else(|_| Err(io::Error::other("the records cannot be taken")))
    })
}

fn examine(bench: &Bench<'_>, found: &Found, take: &mut dyn FnMut(Record)) {
    match found {
        Found::Incident(incident) => bench.records(incident, take),
        Found::Unreadable { source, text } => take(bench.error(source, "input.unreadable", text)),
    }
}

fn bytes(found: &Found) -> u64 {
    match found {
        Found::Incident(incident) => incident.bytes,
        Found::Unreadable { .. } => 0,
    }
}

/// The walk, held back while too many incidents are under way.
struct Gated<'a, I> {
    found: I,
    gate: SyncSender<()>,
    stop: &'a AtomicBool,
}

impl<I: Iterator<Item = Found>> Iterator for Gated<'_, I> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let found = self.found.next()?;
        self.gate.send(()).ok()?;
        Some(found)
    }
}

/// Hands the records over until the last worker is gone, or the sink fails.
fn drain(messages: &Receiver<Message>, passed: &Receiver<()>, mut order: Order, sink: &mut dyn Sink) -> io::Result<()> {
    for message in messages {
        if let Message::Done(_, bytes) = message {
            sink.examined(bytes);
        }
        let (records, over) = order.take(message);
        for record in &records {
            sink.record(record)?;
        }
        passed.iter().take(over).for_each(drop);
    }
    Ok(())
}
