//! Placeholders in the texts of remedies.
//!
//! `{to}` is a value of the formula, `{setting:NAME}` a setting of the launch, `{figure:NAME}` a figure with its unit,
//! `{node}`, `{ip}`, `{pid}` and `{pod}` say where the root process ran, `{head}` at which host its nodes meet, `{model}` in
//! which folder the model lies; `{to|TEXT}` has a text for when there is none. Other braces (JSON, shell) stay as they are.
//! Never computes anything.

use super::evidence::Evidence;
use super::units::Gib;

/// Placeholder names that formulas give.
const NAMES: &[&str] = &["from", "to", "gib", "pids", "threshold", "device", "rank"];
/// Placeholder names that the evidence gives.
const PLACES: &[&str] = &["node", "ip", "pid", "pod", "head", "model"];
/// Settings that name the host at which the nodes of a launch meet.
const HEADS: &[&str] = &[
    "ray_address",
    "dist_init_addr",
    "master_addr",
    "data_parallel_address",
    "head_node",
];

/// The text with its placeholders filled; `None` if one has neither value nor default.
pub fn fill(text: &str, vars: &[(&'static str, String)], e: &Evidence) -> Option<String> {
    fill_with(text, &|placeholder| placeholder.value(vars, e))
}

/// The text as it stands without a launch: defaults only; `None` if a placeholder has none.
pub fn plain(text: &str) -> Option<String> {
    fill_with(text, &|_| None)
}

fn fill_with(text: &str, value: &dyn Fn(&Placeholder) -> Option<String>) -> Option<String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, from_brace) = rest.split_at(start);
        filled.push_str(before);
        let (piece, length) = match Placeholder::parse(from_brace) {
            Some(placeholder) => {
                let piece = value(&placeholder).or_else(|| placeholder.default.map(str::to_owned))?;
                (piece, placeholder.length)
            }
            None => ("{".to_owned(), 1),
        };
        filled.push_str(&piece);
        rest = from_brace.get(length..).unwrap_or_default();
    }
    filled.push_str(rest);
    Some(filled)
}

/// Whether the text has placeholders that need a formula.
pub fn needs_formula(text: &str) -> bool {
    text.match_indices('{').any(|(start, _)| {
        text.get(start..)
            .and_then(Placeholder::parse)
            .is_some_and(|p| NAMES.contains(&p.name) && p.default.is_none())
    })
}

struct Placeholder<'a> {
    name: &'a str,
    default: Option<&'a str>,
    length: usize,
}

impl<'a> Placeholder<'a> {
    /// Reads one at the start of the text, which begins with a brace.
    fn parse(text: &'a str) -> Option<Self> {
        let end = text.find('}')?;
        let inner = text.get(1..end)?;
        let (key, default) = match inner.split_once('|') {
            Some((key, default)) => (key, Some(default)),
            None => (inner, None),
        };
        let word = key.strip_prefix("setting:").or_else(|| key.strip_prefix("figure:"));
        let known = word.is_some_and(|s| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        (known || NAMES.contains(&key) || PLACES.contains(&key)).then_some(Self {
            name: key,
            default,
            length: end + 1,
        })
    }

    fn value(&self, vars: &[(&'static str, String)], e: &Evidence) -> Option<String> {
        let var = || vars.iter().find(|(name, _)| *name == self.name);
        match self.name.split_once(':') {
            Some(("setting", "gpu_memory_utilization")) => e.utilization().map(|u| u.to_string()),
            Some(("figure", name)) if name.ends_with("_gib") => e.gib(name).map(Gib::in_words),
            Some(("figure", name)) => e.figure(name).map(|value| value.to_string()),
            Some((_, name)) => e.setting(name).map(str::to_owned),
            None => match self.name {
                "node" => e.node.map(str::to_owned),
                "ip" => e
                    .node
                    .filter(|node| node.parse::<std::net::IpAddr>().is_ok())
                    .map(str::to_owned),
                "pod" => e.node.filter(|_| e.under.contains(&"kubernetes")).map(str::to_owned),
                "pid" => e.pid.map(|pid| pid.to_string()),
                "head" => HEADS.iter().find_map(|name| host(e.setting(name)?)).map(str::to_owned),
                "model" => folder(e).map(str::to_owned),
                _ => var().map(|(_, value)| value.clone()),
            },
        }
    }
}

/// The host of an address, if it is one that other machines know it by.
fn host(address: &str) -> Option<&str> {
    let bare = address.rsplit("://").next()?;
    let host = bare.rsplit_once(':').map_or(bare, |(host, _)| host);
    let own = ["None", "auto", "local", "127.", "0.0.0.0", "::", "[::"];
    (is_plain(host) && !own.iter().any(|own| host.starts_with(own))).then_some(host)
}

/// The model's folder, where the launch names one and no entry of the hub.
fn folder<'e>(e: &'e Evidence) -> Option<&'e str> {
    let model = e.setting("model").or_else(|| e.setting("model_path"))?;
    (model.starts_with(['/', '~']) && is_plain(model)).then_some(model)
}

/// Whether a text of the log means nothing else to a shell.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/~@+=".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::super::evidence::testing::Case;
    use super::*;

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let case = Case::figures(&[]).set("tp_size", "2");
        let e = case.evidence("gpu-oom.weights", "sglang", "", "");
        let vars = [("to", "4".to_owned())];
        assert_eq!(
            fill("--tp-size {setting:tp_size} to {to}", &vars, &e).as_deref(),
            Some("--tp-size 2 to 4")
        );
        assert_eq!(
            fill("{\"a\": [1]} {medium: x} ${V:-{to}}", &vars, &e).as_deref(),
            Some("{\"a\": [1]} {medium: x} ${V:-4}")
        );
        assert_eq!(
            fill("{{.Architecture}} {", &vars, &e).as_deref(),
            Some("{{.Architecture}} {")
        );
    }

    #[test]
    fn a_placeholder_without_value_needs_a_default() {
        let case = Case::figures(&[]);
        let e = case.evidence("gpu-oom.weights", "sglang", "", "");
        assert_eq!(fill("lower it to {to}", &[], &e), None);
        assert_eq!(fill("kill {pids|PID}", &[], &e).as_deref(), Some("kill PID"));
        assert_eq!(fill("{setting:tp_size|unset}", &[], &e).as_deref(), Some("unset"));
        assert_eq!(
            plain("kill {pids|PID} of {setting:tp_size|all}").as_deref(),
            Some("kill PID of all")
        );
        assert_eq!(plain("to {to}"), None);
        let mut case = Case::figures(&[("gpu_free_gib", 0.0401), ("gpu_total_gib", 79.19), ("wait_s", 600.0)]);
        case.under = vec!["kubernetes"];
        case.node = Some("vllm-0");
        let e = case.evidence("gpu-oom.weights", "vllm", "", "");
        assert_eq!(
            fill(
                "{figure:gpu_free_gib} of {figure:gpu_total_gib}, {figure:wait_s} s, {pod|POD} {pid|PID}",
                &[],
                &e
            )
            .as_deref(),
            Some("41.06 MiB of 79.19 GiB, 600 s, vllm-0 PID")
        );
        assert_eq!(fill("{figure:weights_gib}", &[], &e), None);
        let told = |name: &str, value: &str, text: &str| {
            let case = Case::figures(&[]).set(name, value);
            fill(text, &[], &case.evidence("gpu-oom.weights", "vllm", "", "")).unwrap()
        };
        assert_eq!(
            told("ray_address", "10.0.0.1:6379", "nc -vz {head|HEAD_IP}"),
            "nc -vz 10.0.0.1"
        );
        assert_eq!(told("head_node", "tcp://node-a:29550", "{head|HEAD_IP}"), "node-a");
        for own in ["auto", "127.0.0.1:6379", "[::1]:6379", "a;reboot:1"] {
            assert_eq!(told("ray_address", own, "{head|HEAD_IP}"), "HEAD_IP", "{own}");
        }
        assert_eq!(told("model", "/models/a", "ls {model|MODEL_DIR}"), "ls /models/a");
        for other in ["org/name", "/models/a; reboot", "/models/$(reboot)"] {
            assert_eq!(told("model", other, "{model|MODEL_DIR}"), "MODEL_DIR", "{other}");
        }
        assert!(!needs_formula("{figure:gpu_free_gib} {node}"));
        assert!(needs_formula("to {to}") && !needs_formula("{to|x} {setting:a} {}"));
    }
}
