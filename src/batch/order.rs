//! Records in the order of their incidents, whatever the order they are finished in.
//!
//! Owns the waiting of records for those before them. How many incidents may wait is bounded by whoever starts them.

use std::collections::BTreeMap;

use super::record::Record;

/// What a worker tells.
#[derive(Debug)]
pub enum Message {
    /// A record of the incident with this number.
    Record(u64, Record),
    /// The incident with this number, and so many stored bytes, is finished.
    Done(u64, u64),
}

/// Records that wait.
#[derive(Debug)]
pub struct Order {
    strict: bool,
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    records: Vec<Record>,
    done: bool,
}

impl Order {
    /// Nothing yet. Without `strict` nothing ever waits.
    pub fn new(strict: bool) -> Self {
        Self {
            strict,
            next: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Takes a message; gives the records whose turn it is, and how many incidents are thereby over.
    pub fn take(&mut self, message: Message) -> (Vec<Record>, usize) {
        match message {
            Message::Record(n, record) if !self.strict || n == self.next => (vec![record], 0),
            Message::Record(n, record) => {
                self.waiting.entry(n).or_default().records.push(record);
                (Vec::new(), 0)
            }
            Message::Done(..) if !self.strict => (Vec::new(), 1),
            Message::Done(n, _) => {
                self.waiting.entry(n).or_default().done = true;
                self.advance()
            }
        }
    }

    fn advance(&mut self) -> (Vec<Record>, usize) {
        let (mut records, mut over) = (Vec::new(), 0);
        while let Some(first) = self.waiting.get_mut(&self.next) {
            records.append(&mut first.records);
            if !first.done {
                break;
            }
            self.waiting.remove(&self.next);
            self.next += 1;
            over += 1;
        }
        (records, over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(source: &str) -> Record {
        Record::error(source, "x", "y")
    }

    fn play(strict: bool) -> (Vec<String>, usize) {
        let mut order = Order::new(strict);
        let messages = [
            Message::Record(1, record("b")),
            Message::Done(1, 0),
            Message::Record(2, record("c1")),
            Message::Record(0, record("a")),
            Message::Done(0, 0),
            Message::Record(2, record("c2")),
            Message::Done(2, 0),
        ];
        let (mut sources, mut over) = (Vec::new(), 0);
        for message in messages {
            let (records, n) = order.take(message);
            sources.extend(records.into_iter().map(|r| r.source));
            over += n;
        }
        (sources, over)
    }

    #[test]
    fn records_come_in_order_or_as_they_are() {
        assert_eq!(play(true), (["a", "b", "c1", "c2"].map(String::from).to_vec(), 3));
        assert_eq!(play(false), (["b", "c1", "a", "c2"].map(String::from).to_vec(), 3));
    }
}
