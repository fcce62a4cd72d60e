//! JSON lines: the record inside the object that a collector or a JSON logger made of it.
//!
//! Owns the reading of one object. Whether a source's objects are envelopes at all is the profile's decision: most JSON
//! in a log is quoted text, and a quoted error is none.

use serde_json::Value;

use crate::record::Stream;
use crate::time::Stamp;

use super::fields::{
    CONTAINER, Fields, LAST_PART, LEVEL, MORE, NESTED, NODE, PART, PID, PLACES, SERVICE, STAMP, STREAM, TEXT, UNIT,
};
use super::said::Said;
use super::{journal, stamps};

/// Bytes of the parts in which Docker's json-file writes a longer line. Only a part lacks the line's end there; other
/// collectors take it off every line.
const DOCKER_PART: usize = 16 << 10;
/// The field that journald adds to every record that it gives out.
const JOURNALD: &str = "__REALTIME_TIMESTAMP";

/// Which keys make an object an envelope; equal for the objects of one writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    text: &'static str,
    nested: Option<&'static str>,
    stamp: Option<&'static str>,
    level: Option<&'static str>,
    stream: bool,
    container: bool,
}

impl Shape {
    /// The field with the text.
    pub fn text(&self) -> &'static str {
        self.text
    }
}

/// One object read as an envelope.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub shape: Shape,
    /// The program's text, possibly of several lines.
    pub text: String,
    /// What vLLM's plain layout prints before every line and its JSON layout has in fields: `(EngineCore pid=77) `.
    pub prefix: String,
    /// The writer cut the text here and goes on in its next object.
    pub partial: bool,
    node: Option<String>,
    container: Option<String>,
    unit: Option<String>,
    pid: Option<i64>,
    stream: Option<Stream>,
    level: Option<&'static str>,
    stamp: Option<Stamp>,
}

impl Entry {
    /// The record's stamp.
    pub fn stamp(&self) -> Option<&Stamp> {
        self.stamp.as_ref()
    }

    /// Adds what the object says to what the layers around it said.
    pub fn say<'a>(&'a self, said: &mut Said<'a>) {
        said.node = self.node.as_deref().or(said.node);
        said.container = self.container.as_deref().or(said.container);
        said.unit = self.unit.as_deref().or(said.unit);
        said.pid = self.pid.or(said.pid);
        said.stream = self.stream.or(said.stream);
        said.level = self.level.or(said.level);
        if let Some(stamp) = &self.stamp {
            said.at(stamp.clone());
        }
    }
}

/// Reads `s` as an envelope, if it is an object with a text beside a stamp, a level, a stream or a container's name.
pub(super) fn read(s: &str) -> Option<Entry> {
    let s = s.trim_end().trim_end_matches(',');
    if !s.ends_with('}') {
        return None;
    }
    let top: Fields = serde_json::from_str(s).ok()?;
    of(&top)
}

/// Reads named fields as an envelope.
pub(super) fn of(top: &Fields) -> Option<Entry> {
    let nested = NESTED
        .into_iter()
        .find_map(|key| Some((key, top.get(key)?.as_object()?)));
    let get = |key: &str| nested.and_then(|(_, object)| object.get(key)).or_else(|| top.get(key));
    let (key, mut text) = TEXT.into_iter().find_map(|key| Some((key, text(get(key)?)?)))?;
    let stamp = STAMP.into_iter().find_map(|key| Some((key, stamp(get(key)?)?)));
    let level = LEVEL.into_iter().find_map(|key| Some((key, level(get(key)?, key)?)));
    let stream = STREAM.into_iter().find_map(|key| stream(get(key)?));
    let places: Vec<&Value> = PLACES.into_iter().filter_map(&get).collect();
    let place = |keys: &[&str]| {
        let own = keys.iter().find_map(|key| get(key)?.as_str());
        own.or_else(|| {
            // `resource` of Google's logs holds its labels one level further down.
            let inner = places
                .iter()
                .flat_map(|place| [Some(*place), place.get("labels")])
                .flatten();
            keys.iter()
                .find_map(|key| inner.clone().find_map(|place| place.get(key)?.as_str()))
        })
        .map(str::to_owned)
    };
    let container = place(&CONTAINER);
    if stamp.is_none() && level.is_none() && stream.is_none() && container.is_none() {
        return None;
    }
    // A Ray event file writes the line ends of its message as two characters.
    if top.get("source_type").is_some() && top.get("label").is_some() {
        text = text.replace("\\n", "\n");
    }
    let mark = PART.into_iter().find_map(&get);
    let partial = match mark {
        Some(mark) => (is_set(mark) || mark == "P") && !get(LAST_PART).is_some_and(is_set),
        None => key == "log" && stream.is_some() && text.len() >= DOCKER_PART && !text.ends_with('\n'),
    };
    for more in MORE
        .into_iter()
        .filter_map(|key| get(key)?.as_str())
        .filter(|more| !more.is_empty())
    {
        if !text.contains(more) {
            text.push('\n');
            text.push_str(more);
        }
    }
    let pid = PID.into_iter().find_map(|key| integer(get(key)?));
    let process = get("processName").and_then(Value::as_str);
    let vllm = get("name")
        .and_then(Value::as_str)
        .is_some_and(|name| name.starts_with("vllm"));
    let prefix = match (process, pid) {
        (Some(process), Some(pid)) if vllm => format!("({process} pid={pid}) "),
        _ => String::new(),
    };
    // Journald tells of each record what is known of it: of a container's more than of the kernel's.
    let journald = top.get(JOURNALD).map(|_| Shape {
        text: key,
        nested: None,
        stamp: Some(JOURNALD),
        level: None,
        stream: false,
        container: false,
    });
    Some(Entry {
        shape: journald.unwrap_or(Shape {
            text: key,
            nested: nested.map(|(key, _)| key),
            stamp: stamp.as_ref().map(|(key, _)| *key),
            level: level.map(|(key, _)| key),
            stream: stream.is_some(),
            container: container.is_some(),
        }),
        text,
        prefix,
        partial,
        node: place(&NODE),
        container: container.or_else(|| place(&SERVICE)),
        unit: place(&UNIT),
        pid,
        stream,
        level: level.map(|(_, level)| level),
        stamp: stamp.map(|(_, stamp)| stamp),
    })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // journald gives a message with control characters as its bytes.
        Value::Array(bytes) => {
            let bytes: Option<Vec<u8>> = bytes.iter().map(|b| u8::try_from(b.as_u64()?).ok()).collect();
            Some(String::from_utf8_lossy(&bytes?).into_owned())
        }
        _ => None,
    }
}

fn stamp(value: &Value) -> Option<Stamp> {
    match value {
        Value::String(text) => stamps::field(text),
        Value::Number(number) => stamps::epoch(number.as_f64()?),
        // loguru: {"time": {"repr": "…", "timestamp": 1795962823.3}}
        Value::Object(record) => stamp(record.get("time")?.get("timestamp")?),
        _ => None,
    }
}

fn stream(value: &Value) -> Option<Stream> {
    match value.as_str()? {
        "stdout" => Some(Stream::Stdout),
        "stderr" => Some(Stream::Stderr),
        _ => None,
    }
}

fn level(value: &Value, key: &str) -> Option<&'static str> {
    if key == "PRIORITY" {
        return Some(journal::severity(u8::try_from(integer(value)?).ok()?));
    }
    match value {
        Value::String(name) => level_name(name),
        // bunyan and pino
        Value::Number(number) => match number.as_i64()? {
            10 => Some("TRACE"),
            20 => Some("DEBUG"),
            30 => Some("INFO"),
            40 => Some("WARNING"),
            50 => Some("ERROR"),
            60 => Some("CRITICAL"),
            _ => None,
        },
        _ => None,
    }
}

/// The usual name of a level.
fn level_name(name: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 19] = [
        ("TRACE", "TRACE"),
        ("DEBUG", "DEBUG"),
        ("INFO", "INFO"),
        ("INFORMATION", "INFO"),
        ("NOTICE", "NOTICE"),
        ("WARN", "WARNING"),
        ("WARNING", "WARNING"),
        ("ERROR", "ERROR"),
        ("ERR", "ERROR"),
        ("FATAL", "CRITICAL"),
        ("CRITICAL", "CRITICAL"),
        ("ALERT", "CRITICAL"),
        ("EMERGENCY", "CRITICAL"),
        ("D", "DEBUG"),
        ("I", "INFO"),
        ("W", "WARNING"),
        ("E", "ERROR"),
        ("C", "CRITICAL"),
        ("DEFAULT", "INFO"),
    ];
    NAMES
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known))
        .map(|(_, level)| *level)
}

fn is_set(value: &Value) -> bool {
    value == true || value == "true"
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(s: &str) -> Vec<String> {
        let entry = read(s).unwrap();
        entry
            .text
            .lines()
            .map(|line| format!("{}{line}", entry.prefix))
            .collect()
    }

    #[test]
    fn docker_json_file() {
        let entry =
            read(r#"{"log":"\u001b[36m(raylet)\u001b[0m x\n","stream":"stderr","time":"2026-11-25T12:00:00.1Z"}"#)
                .unwrap();
        assert_eq!((entry.stream, entry.partial), (Some(Stream::Stderr), false));
        assert_eq!(entry.stamp.unwrap().offset, Some(0));
    }

    #[test]
    fn parts_are_known_by_their_mark_or_by_dockers_length() {
        let partial = |fields: &str, text: &str| {
            let object = format!(r#"{{"log":"{text}","stream":"stderr","time":"2026-11-25T12:00:00.1Z"{fields}}}"#);
            read(&object).unwrap().partial
        };
        let part = "x".repeat(DOCKER_PART);
        assert!(partial("", &part) && !partial("", "no line end") && !partial("", &(part.clone() + r"\n")));
        assert!(partial(r#","_p":"P""#, "a") && !partial(r#","_p":"F""#, &part) && partial(r#","logtag":"P""#, "a"));
        assert!(partial(r#","partial_message":"true","partial_last":"false""#, "a"));
        assert!(!partial(r#","partial_message":"true","partial_last":"true""#, "a"));
    }

    #[test]
    fn journald_is_one_writer_whatever_it_knows_of_a_record() {
        let of_container = r#"{"MESSAGE":"x","PRIORITY":"6","CONTAINER_NAME":"vllm","_SOURCE_REALTIME_TIMESTAMP":"1763632801999000","__REALTIME_TIMESTAMP":"1763632802000000"}"#;
        let of_kernel = r#"{"MESSAGE":"y","_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","__REALTIME_TIMESTAMP":"1763632850000000"}"#;
        let shape = |record| read(record).map(|entry| entry.shape);
        assert!(shape(of_container).is_some());
        assert_eq!(shape(of_container), shape(of_kernel));
    }

    #[test]
    fn a_container_is_enough_to_know_an_envelope_by() {
        let stern =
            r#"{"message":"x","nodeName":"gpu-7","namespace":"llm","podName":"vllm-0","containerName":"server"}"#;
        let entry = read(stern).unwrap();
        assert_eq!(
            (entry.node.as_deref(), entry.container.as_deref()),
            (Some("vllm-0"), Some("server"))
        );
        let fluent = r#"{"log":"x","kubernetes":{"pod_name":"vllm-0","host":"gpu-7","container_name":"server"}}"#;
        assert_eq!(read(fluent).unwrap().node.as_deref(), Some("vllm-0"));
    }

    #[test]
    fn journald_json() {
        let entry = read(r#"{"MESSAGE":[104,105],"__REALTIME_TIMESTAMP":"1795962823312510","_HOSTNAME":"node-a","SYSLOG_IDENTIFIER":"vllm","_PID":"24","PRIORITY":"3"}"#).unwrap();
        let mut said = Said::default();
        entry.say(&mut said);
        assert_eq!(entry.text, "hi");
        assert_eq!(
            (said.node, said.unit, said.pid, said.level),
            (Some("node-a"), Some("vllm"), Some(24), Some("ERROR"))
        );
        assert_eq!(said.stamp.unwrap().printed(), "2026-11-29T14:33:43.312510");
    }

    #[test]
    fn cloud_exports() {
        let google = read(r#"{"textPayload":"x","timestamp":"2026-11-25T12:00:00Z","resource":{"labels":{"pod_name":"vllm-0","container_name":"server"}}}"#).unwrap();
        assert_eq!(
            (google.node.as_deref(), google.container.as_deref()),
            (Some("vllm-0"), Some("server"))
        );
        assert_eq!(
            lines(r#"{"jsonPayload":{"message":"x","levelname":"ERROR"},"timestamp":"2026-11-25T12:00:00Z"}"#),
            ["x"]
        );
        let elastic = read(r#"{"_index":"a","_source":{"message":"x","@timestamp":"2026-11-25T12:00:00Z","kubernetes":{"pod_name":"vllm-0"}}}"#).unwrap();
        assert_eq!(elastic.node.as_deref(), Some("vllm-0"));
    }

    #[test]
    fn vllm_json_layout_reads_as_its_plain_layout() {
        let line = r#"{"asctime":"11-25 13:00:07","levelname":"ERROR","name":"vllm.v1.engine.core","processName":"EngineCore","process":77,"message":"EngineCore failed to start.","exc_info":"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x"}"#;
        assert_eq!(
            lines(line),
            [
                "(EngineCore pid=77) EngineCore failed to start.",
                "(EngineCore pid=77) Traceback (most recent call last):",
                "(EngineCore pid=77)   File \"a.py\", line 1, in f",
                "(EngineCore pid=77) ValueError: x",
            ]
        );
    }

    #[test]
    fn ray_events_spell_line_ends_out() {
        let line = r#"{"custom_fields":{},"host_name":"node-a","label":"Out of Memory","message":"killed\\nOOM","severity":"ERROR","source_type":"RAYLET","timestamp":"1795962823"}"#;
        assert_eq!(lines(line), ["killed", "OOM"]);
    }

    #[test]
    fn objects_that_are_no_envelopes() {
        for line in [
            r#"{"message":"CUDA out of memory"}"#,
            r#"{"text":"x","n":3}"#,
            r#"{"level":"INFO"}"#,
            r#"{"log":"x""#,
            r#"{'log': 'x'}"#,
            r#"[1]"#,
        ] {
            assert!(read(line).is_none(), "{line}");
        }
    }
}
