//! The fields of structured records, by the names that collectors and JSON loggers give them.
//!
//! Owns the lists of names, and the reading of an object's fields of use. What a field says is `json`'s business.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// What stands before the first `end` that no backslash escapes, and what follows it.
pub(super) fn split_unescaped(s: &str, end: char) -> Option<(&str, &str)> {
    let (value, behind) = s
        .match_indices(end)
        .map(|(at, _)| s.split_at(at))
        .find(|(value, _)| !value.ends_with('\\'))?;
    Some((value, behind.strip_prefix(end)?))
}

/// Fields that hold the program's text, best first.
pub(super) const TEXT: [&str; 11] = [
    "MESSAGE",
    "log",
    "message",
    "msg",
    "textPayload",
    "line",
    "@message",
    "body",
    "event",
    "text",
    "Message",
];
/// Objects that hold the record of a cloud export.
pub(super) const NESTED: [&str; 2] = ["jsonPayload", "_source"];
pub(super) const STAMP: [&str; 15] = [
    "_SOURCE_REALTIME_TIMESTAMP",
    "__REALTIME_TIMESTAMP",
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "asctime",
    "datetime",
    "date",
    "timestamp_ns",
    "eventTimestamp",
    "receiveTimestamp",
    "Timestamp",
    "t",
    "record",
];
pub(super) const LEVEL: [&str; 8] = [
    "level",
    "levelname",
    "severity",
    "lvl",
    "log_level",
    "log.level",
    "PRIORITY",
    "severityText",
];
pub(super) const STREAM: [&str; 1] = ["stream"];
pub(super) const NODE: [&str; 16] = [
    "_HOSTNAME",
    // Two pods of one host are as far apart as two hosts.
    "pod",
    "pod_name",
    "podName",
    "kubernetes.pod_name",
    "kubernetes_pod_name",
    "k8s.pod.name",
    "hostname",
    "host",
    "host_name",
    "source_hostname",
    "node",
    "node_name",
    "nodeName",
    "instance",
    "Host",
];
/// Names that only a collector of containers' logs gives; with a text, they are enough to know its records by.
pub(super) const CONTAINER: [&str; 7] = [
    "container_name",
    "container",
    "CONTAINER_NAME",
    "containerName",
    "kubernetes.container_name",
    "kubernetes_container_name",
    "k8s.container.name",
];
pub(super) const SERVICE: [&str; 1] = ["service"];
/// The mark of a part of a line: `P` of the kubelet's own layout, `true` of Docker's drivers.
pub(super) const PART: [&str; 4] = ["logtag", "_p", "partial_message", "CONTAINER_PARTIAL_MESSAGE"];
/// Docker's mark of the last part.
pub(super) const LAST_PART: &str = "partial_last";
pub(super) const UNIT: [&str; 4] = ["SYSLOG_IDENTIFIER", "_SYSTEMD_UNIT", "unit", "component"];
pub(super) const PID: [&str; 5] = ["_PID", "pid", "process", "SYSLOG_PID", "source_pid"];
/// Texts that continue the message, each in lines of its own.
pub(super) const MORE: [&str; 5] = ["exc_info", "exc_text", "exception", "stack_info", "stack_trace"];
/// Objects with the labels of the place a line comes from.
pub(super) const PLACES: [&str; 4] = ["kubernetes", "labels", "resource", "stream"];
pub(super) const OTHER: [&str; 5] = ["name", "processName", "label", "source_type", LAST_PART];

/// Whether a field of this name holds the program's text.
pub(super) fn is_text(name: &str) -> bool {
    TEXT.contains(&name)
}

/// Whether a line of an indented object holds the program's text.
pub(super) fn is_text_key(line: &str) -> bool {
    let key = line
        .trim_start()
        .strip_prefix('"')
        .and_then(|rest| rest.split_once("\":"));
    key.is_some_and(|(key, _)| is_text(key))
}

/// The fields of an object that are of use; the others are skipped unread.
pub(super) struct Fields(pub Vec<(String, Value)>);

impl Fields {
    /// The value of a field.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    if is_of_use(&key) {
                        fields.push((key, map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

fn is_of_use(key: &str) -> bool {
    let lists: [&[&str]; 13] = [
        &TEXT, &NESTED, &STAMP, &LEVEL, &STREAM, &NODE, &CONTAINER, &SERVICE, &UNIT, &PID, &MORE, &PLACES, &PART,
    ];
    lists.iter().any(|list| list.contains(&key)) || OTHER.contains(&key)
}
