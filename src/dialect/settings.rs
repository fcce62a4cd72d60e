//! Reads the settings a launch prints about itself: `non-default args: {…}`, `ServerArgs(…)`, `Namespace(…)`
//! and the engine's config string.
//!
//! Owns the grammar of Python's `repr` of flat key–value lists. Never interprets a value, and drops secrets.

use std::sync::Arc;

use nom::branch::alt;
use nom::bytes::complete::{is_not, tag, take_while1};
use nom::character::complete::{char, space0};
use nom::combinator::recognize;
use nom::multi::many0_count;
use nom::sequence::delimited;
use nom::{IResult, Parser};

/// Settings read from one dump at most.
const MAX_SETTINGS: usize = 1024;
/// Bytes kept of one value.
const MAX_VALUE: usize = 512;
/// Where a dump begins.
const OPENERS: &[(&str, char)] = &[
    ("non-default args: {", '}'),
    ("server_args=ServerArgs(", ')'),
    ("args: Namespace(", ')'),
    (") with config: ", '\0'),
];
/// Settings whose flag takes several words.
const LISTS: &[&str] = &["served_model_name", "cudagraph_capture_sizes", "cuda_graph_sizes"];
/// Words in a setting's name that make its value a secret.
const SECRETS: &[&str] = &["api_key", "token", "password", "secret", "hf_token", "auth"];

/// The settings of a dump in `message`, name and value as printed (quotes taken off); empty if there is none.
pub fn parse(message: &str) -> Vec<(Arc<str>, Arc<str>)> {
    // Nearly every message ends here: a dump has pairs.
    if memchr::memchr2(b'=', b'{', message.as_bytes()).is_none() {
        return Vec::new();
    }
    let Some((start, close)) = OPENERS
        .iter()
        .find_map(|(opener, close)| message.find(opener).map(|at| (at + opener.len(), *close)))
    else {
        return Vec::new();
    };
    let (pairs, _) = pairs(message.get(start..).unwrap_or(""), close);
    let settings = pairs.into_iter().filter(|(name, _)| !is_secret(name));
    settings
        .map(|(name, value)| {
            let plain = unquoted(value).unwrap_or(value);
            let cut = plain.get(..plain.floor_char_boundary(MAX_VALUE)).unwrap_or(plain);
            (Arc::from(name), Arc::from(cut))
        })
        .collect()
}

/// The pairs of a dump, values as printed, and what follows them.
fn pairs(dump: &str, close: char) -> (Vec<(&str, &str)>, &str) {
    let mut rest = dump;
    let mut pairs = Vec::new();
    while pairs.len() < MAX_SETTINGS {
        rest = rest.trim_start_matches([',', ' ']);
        if rest.is_empty() || rest.starts_with(close) {
            break;
        }
        let Ok((after, (name, value))) = pair(rest) else { break };
        pairs.push((name, value.trim()));
        rest = after;
    }
    (pairs, rest)
}

fn is_secret(name: &str) -> bool {
    let harmless = name.contains("tokens") || name.contains("tokenizer");
    !harmless && SECRETS.iter().any(|secret| name.contains(secret))
}

fn unquoted(value: &str) -> Option<&str> {
    value.strip_prefix(['\'', '"'])?.strip_suffix(['\'', '"'])
}

/// The command line `vllm serve` as a JSON list of its words, rebuilt from `non-default args`; `None` where a value
/// cannot be written as it was, the dump is torn, or one of them is a secret.
pub fn argv(message: &str) -> Option<String> {
    let (_, dump) = message.split_once("non-default args: {")?;
    let (pairs, rest) = pairs(dump, '}');
    if rest.trim_end() != "}" || pairs.iter().any(|(name, _)| is_secret(name)) {
        return None;
    }
    let value = |wanted: &str| pairs.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    // Only `vllm serve MODEL` has this; other entry points name the model by a flag.
    let model = value("model_tag")?;
    let mut words = vec!["vllm".to_owned(), "serve".to_owned(), word(model)?];
    for (name, value) in pairs.iter().filter(|(name, _)| *name != "model_tag") {
        let flag = name.replace('_', "-");
        match *value {
            _ if *name == "model" => (*value == model).then_some(())?,
            "True" => words.push(format!("--{flag}")),
            "False" => words.push(format!("--no-{flag}")),
            list if LISTS.contains(name) => {
                let items = list.strip_prefix('[')?.strip_suffix(']')?;
                words.push(format!("--{flag}"));
                words.extend(items.split(", ").map(word).collect::<Option<Vec<_>>>()?);
            }
            dict if dict.starts_with('{') => {
                words.push(format!("--{flag}"));
                words.push(json(dict)?);
            }
            value => {
                words.push(format!("--{flag}"));
                words.push(word(value)?);
            }
        }
    }
    serde_json::to_string(&words).ok()
}

/// A string or a number of Python's, as one word.
fn word(value: &str) -> Option<String> {
    match unquoted(value) {
        Some(text) => (!text.contains(['\\', '\'', '"'])).then(|| text.to_owned()),
        None => value
            .parse::<f64>()
            .ok()
            .filter(|n| n.is_finite())
            .map(|_| value.to_owned()),
    }
}

/// A dictionary of Python's as JSON. Only where exchanging quotes and constants is all it takes.
fn json(dict: &str) -> Option<String> {
    if dict.contains(['\\', '"', '<', '(']) {
        return None;
    }
    let text = dict
        .replace('\'', "\"")
        .replace(": True", ": true")
        .replace(": False", ": false")
        .replace(": None", ": null");
    serde_json::from_str::<serde_json::Value>(&text).ok()?;
    Some(text)
}

/// `'name': value` or `name=value`.
fn pair(input: &str) -> IResult<&str, (&str, &str)> {
    let word = |i| take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')).parse(i);
    let quoted = alt((
        delimited(char('\''), word, char('\'')),
        delimited(char('"'), word, char('"')),
    ));
    let (rest, name) = alt((quoted, word)).parse(input)?;
    let (rest, _) = (space0, alt((char(':'), char('='))), space0).parse(rest)?;
    let (rest, value) = value(rest, 0)?;
    Ok((rest, (name, value)))
}

/// Anything up to the next comma or closing bracket of this level.
fn value(input: &str, depth: usize) -> IResult<&str, &str> {
    if depth > 32 {
        return Err(nom::Err::Error(nom::error::Error::new(
            input,
            nom::error::ErrorKind::TooLarge,
        )));
    }
    let nested = |i| -> IResult<&str, &str> {
        recognize(delimited(
            alt((char('{'), char('('), char('['), char('<'))),
            |i| inside(i, depth + 1),
            alt((char('}'), char(')'), char(']'), char('>'))),
        ))
        .parse(i)
    };
    recognize(many0_count(alt((string, nested, is_not(",'\"{([<})]>"))))).parse(input)
}

fn inside(input: &str, depth: usize) -> IResult<&str, &str> {
    recognize((value_at(depth), many0_count((char(','), value_at(depth))))).parse(input)
}

fn value_at(depth: usize) -> impl Fn(&str) -> IResult<&str, &str> {
    move |i| value(i, depth)
}

/// A quoted string with backslash escapes.
fn string(input: &str) -> IResult<&str, &str> {
    let quote = if input.starts_with('"') { "\"" } else { "'" };
    let (mut rest, _) = tag(quote)(input)?;
    loop {
        let Some(at) = rest.find(['\\', quote.chars().next().unwrap_or('\'')]) else {
            // A torn dump: the string runs to the end of the line.
            return Ok((input.get(input.len()..).unwrap_or(""), input));
        };
        let escaped = rest.as_bytes().get(at) == Some(&b'\\');
        rest = rest.get(at + 1..).unwrap_or("");
        if !escaped {
            let used = input.len() - rest.len();
            return Ok((rest, input.get(..used).unwrap_or(input)));
        }
        let mut chars = rest.chars();
        chars.next();
        rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(message: &str, name: &str) -> Option<String> {
        parse(message)
            .iter()
            .find(|(n, _)| &**n == name)
            .map(|(_, v)| v.to_string())
    }

    #[test]
    fn dumps_of_every_kind() {
        let args = "non-default args: {'model': '/models/a, b', 'max_model_len': 4096, 'compilation_config': {'cudagraph_mode': 'FULL', 'sizes': [1, 2]}, 'api_key': ['x'], 'gpu_memory_utilization': 0.85}";
        assert_eq!(get(args, "model").as_deref(), Some("/models/a, b"));
        assert_eq!(get(args, "gpu_memory_utilization").as_deref(), Some("0.85"));
        assert_eq!(get(args, "api_key"), None);
        let server = "server_args=ServerArgs(model_path='m', tp_size=2, mem_fraction_static=0.85, dist_init_addr=None, json=\"{'a': 1}\")";
        assert_eq!(get(server, "tp_size").as_deref(), Some("2"));
        assert_eq!(get(server, "json").as_deref(), Some("{'a': 1}"));
        let config = "Initializing a V1 LLM engine (v0.25.1) with config: model='m', dtype=torch.bfloat16, structured=Config(backend='auto', x=1), enforce_eager=False";
        assert_eq!(get(config, "enforce_eager").as_deref(), Some("False"));
        assert_eq!(get(config, "dtype").as_deref(), Some("torch.bfloat16"));
        assert_eq!(
            get("args: Namespace(host=None, port=8000, max_tokens=5)", "port").as_deref(),
            Some("8000")
        );
    }

    fn words(message: &str) -> Option<Vec<String>> {
        argv(message).map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn the_command_is_rebuilt_where_nothing_is_lost() {
        let dump = "non-default args: {'model_tag': '/models/a b', 'port': 8110, 'model': '/models/a b', 'enforce_eager': True, 'enable_prefix_caching': False, 'served_model_name': ['a', 'b'], 'gpu_memory_utilization': 0.95, 'speculative_config': {'method': 'eagle3', 'num_speculative_tokens': 3, 'x': None}}";
        let expected = [
            "vllm",
            "serve",
            "/models/a b",
            "--port",
            "8110",
            "--enforce-eager",
            "--no-enable-prefix-caching",
            "--served-model-name",
            "a",
            "b",
            "--gpu-memory-utilization",
            "0.95",
            "--speculative-config",
            "{\"method\": \"eagle3\", \"num_speculative_tokens\": 3, \"x\": null}",
        ];
        assert_eq!(words(dump).unwrap(), expected);
    }

    #[test]
    fn a_command_is_not_rebuilt_from_what_is_lost() {
        for dump in [
            "non-default args: {'model': 'm', 'max_model_len': 256}",
            "non-default args: {'model_tag': 'm', 'model': 'm', 'api_key': ['***']}",
            "non-default args: {'model_tag': 'm', 'model': 'm', 'hf_token': '***'}",
            "non-default args: {'model_tag': 'm', 'model': 'm', 'pooler_config': PoolerConfig(x='LAST')}",
            "non-default args: {'model_tag': 'm', 'model': 'm', 'mode': <Mode.A: 3>}",
            "non-default args: {'model_tag': 'm', 'model': 'm', 'x': None}",
            "non-default args: {'model_tag': 'm', 'model': 'm', 'middleware': ['a']}",
            "non-default args: {'model_tag': 'm', 'model': 'm', 'max_model_len': 40",
            "non-default args: {'model_tag': 'm', 'model': 'm', 'max_num_seqs': 32} and more",
            "server_args=ServerArgs(model_path='m', tp_size=2)",
        ] {
            assert_eq!(words(dump), None, "{dump}");
        }
    }

    #[test]
    fn torn_and_hostile_dumps_end_quietly() {
        assert_eq!(
            get("non-default args: {'model': '/models/a", "model").as_deref(),
            Some("'/models/a")
        );
        assert!(parse(&format!("server_args=ServerArgs(a={}", "[".repeat(100_000))).len() <= 1);
        assert!(parse("nothing here").is_empty());
    }
}
