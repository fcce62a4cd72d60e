//! Of which pod a listing of Kubernetes' tells: `kubectl describe`, or `kubectl get` as JSON or YAML.
//!
//! Owns the one thing that these have in common: an object's name stands directly above its namespace. Never looks at
//! what is said of the pod.

use std::sync::Arc;

/// The object that a listing is about at the line at hand.
#[derive(Debug, Clone, Default)]
pub(super) struct Subject {
    /// A name, if the last line gave one.
    name: Option<Arc<str>>,
    object: Option<Arc<str>>,
}

impl Subject {
    /// Reads a line of the source.
    pub fn read(&mut self, line: &str) {
        let field = || {
            let (key, value) = line.trim_start().split_once(':')?;
            let word = |text: &str| text.trim().trim_end_matches(',').trim_matches('"').to_owned();
            Some((word(key), word(value)))
        };
        let named = self.name.take();
        // Few lines begin like a field of that name.
        if !line.trim_start().trim_start_matches('"').starts_with(['N', 'n']) {
            return;
        }
        match field() {
            Some((key, value)) if key.eq_ignore_ascii_case("name") => self.name = Some(value.into()),
            Some((key, _)) if key.eq_ignore_ascii_case("namespace") => self.object = named.or(self.object.take()),
            _ => {}
        }
    }

    /// Its name.
    pub fn name(&self) -> Option<&Arc<str>> {
        self.object.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(lines: &str) -> Option<String> {
        let mut subject = Subject::default();
        lines.lines().for_each(|line| subject.read(line));
        subject.name().map(ToString::to_string)
    }

    #[test]
    fn a_name_above_a_namespace_is_the_objects() {
        let pod = Some("qwen-0-1".to_owned());
        assert_eq!(
            last("Name:             qwen-0-1\nNamespace:        llm\nNode:  gpu-h13/10.4.0.13"),
            pod
        );
        assert_eq!(last("  metadata:\n    name: qwen-0-1\n    namespace: llm"), pod);
        assert_eq!(
            last("\"metadata\": {\n  \"name\": \"qwen-0-1\",\n  \"namespace\": \"llm\",\n"),
            pod
        );
        let container =
            "\"name\": \"qwen-0-1\",\n\"namespace\": \"llm\"\n\"containers\": [\n\"name\": \"vllm\",\n\"image\": \"x\"";
        assert_eq!(last(container), pod);
        assert_eq!(last("name: vllm\nimage: x\nnamespace: llm"), None);
    }
}
