//! Which rows of a table speak of the code in a file.
//!
//! Owns what it means that a module fits a path, and finding the few rows that do. Never knows what the rows say.

use super::keys::Keys;

/// The rows of a path's table whose module fits it, by `modules`, in no order: the end of the path,
/// `vllm/v1/worker/gpu_worker.py`, or a part of it that ends in `/`. A folder may stand at any part of the path, not only
/// where its name first occurs: `/opt/pytorch/torch/nn/`.
pub fn fitting<'a>(modules: &'a Keys, path: &'a str) -> impl Iterator<Item = u32> + 'a {
    let mut at = 0;
    let parts = path.split_inclusive('/').map(move |part| {
        let rest = path.get(at..).unwrap_or_default();
        at += part.len();
        (part, rest)
    });
    let known = parts.filter(|(part, _)| modules.starting_with(part).next().is_some());
    known.flat_map(|(_, rest)| {
        let folders = memchr::memchr_iter(b'/', rest.as_bytes()).map(|end| end + 1);
        let ends = folders.chain([rest.len()]);
        ends.flat_map(|end| modules.get(rest.get(..end).unwrap_or_default()))
    })
}

/// Whether a path is that of this module.
pub fn is_end(path: &str, module: &str) -> bool {
    path.strip_suffix(module)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_at_the_end_of_a_path_and_a_folder_anywhere_in_it() {
        let modules = ["eng/worker.py", "torch/nn/", "worker.py", "eng/", "setup.py"];
        let modules = Keys::new(modules.into_iter().zip(0..));
        let rows = |path: &str| {
            let mut rows: Vec<u32> = fitting(&modules, path).collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(rows("/srv/eng/worker.py"), [0, 2, 3]);
        assert_eq!(rows("eng/worker.py"), [0, 2, 3]);
        assert_eq!(rows("/srv/my-eng/worker.py"), [2]);
        assert_eq!(rows("/opt/pytorch/torch/x/torch/nn/functional.py"), [1]);
        assert_eq!(rows("/srv/eng/eng/x.py"), [3, 3]);
        assert_eq!(rows("/srv/eng/"), [3, 3]);
        assert!(rows("/torch/nn").is_empty() && rows("").is_empty() && rows("/srv/worker.py/x").is_empty());
    }
}
